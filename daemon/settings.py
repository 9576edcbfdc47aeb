"""The daemon's tables of klineage.toml. `gate.settings` and `library.settings` have the others.

docs/configuration.md shows all of them; the sentences under the fields are what it, and the file
that `klineage init` writes, say.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]


class WatchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which files are looked at, and how changes are noticed."""

    include: tuple[str, ...] = ("**/*.cl", "**/*.py")
    """Globs of the files that may hold kernels, from the worktree's root; `**` is any folders."""
    exclude: tuple[str, ...] = ()
    """Globs of files and folders to leave out, besides build products and environments."""
    poll: Literal["auto"] | bool = "auto"
    """Look for changes at intervals instead of being told: "auto" does so on network mounts."""
    poll_interval_s: Positive = 2.0
    """Seconds between two looks, where it polls."""
    workloads: dict[str, str] = {}
    """Workload file of a kernel file, where it is not the one beside it:
    `{"kernels/gemm.cl" = "workloads/gemm.py"}`."""


class DaemonSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The daemon itself."""

    idle_exit_min: Positive = 30.0
    """Minutes without a client and without a job after which it ends."""
    gate_at_start: Annotated[int, msgspec.Meta(ge=0)] = 20
    """A scan of the worktree that finds at most this many new kernels gates them unasked; with more,
    a kernel is gated when it is saved, or asked about."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe lines that go into its log."""


class RewriterSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who writes the candidates of skills without a mechanical transform. Yours alone to set."""

    kind: Literal["none", "openai", "command", "spool"] = "none"
    """"none"; an OpenAI-compatible "openai" endpoint; a "command" that reads the prompt from its
    standard input; or a "spool" folder of prompt and answer files."""
    endpoint: str = ""
    """For "openai": the base URL, hosted or local: "http://localhost:8000/v1"."""
    model: str = ""
    """For "openai": the model's name there."""
    key_variable: str = ""
    """For "openai": environment variable of the daemon that holds the key. The key itself is never
    written into a file."""
    command: tuple[str, ...] = ()
    """For "command": the program and its arguments."""
    spool: str = ""
    """For "spool": the folder."""
    timeout_s: Positive = 600.0
    """Seconds until an answer is given up."""


class BudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hard limits of what a rewriter may spend on one workload. Yours alone to set."""

    usd: NotNegative = 10.0
    """US dollars."""
    tokens: Annotated[int, msgspec.Meta(ge=0)] = 5_000_000
    """Tokens, in and out."""
    device_s: NotNegative = 7200.0
    """Seconds of the device."""


KeySettings = dict[str, str]
"""`[keys]`: action → key, several separated by commas. The window knows the actions' names."""

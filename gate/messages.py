"""Replies of the workers, as the parent reads them: typed, and an unknown shape is an error.

A candidate's worker runs code we do not trust; whatever it writes that does not fit is a broken
worker, never a value. `gate/worker/oracle.py` and `launcher.py` are the other side.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec

Kind = Literal[
    "build", "launch", "wrote_outside", "cannot_run", "workload", "environment", "raised"
]


class Reply(msgspec.Struct, frozen=True):
    """Base of all replies."""


R = TypeVar("R", bound=Reply)


class Problem(Reply, frozen=True):
    """Something was raised in the worker."""

    kind: Kind
    message: str
    log: str


class Envelope(msgspec.Struct, frozen=True):
    """What comes over the pipe: a result or an error, for request `id`."""

    id: int
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: Problem | None = None


class Loaded(Reply, frozen=True):
    """What a workload file declares."""

    shapes: list[dict[str, int]]
    mutates: list[str]
    reference: Literal["numpy", "torch"]
    tolerance_declared: bool


class CaseMade(Reply, frozen=True):
    """Inputs in files, and what outputs look like; both are for kernels' workers."""

    available: bool
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    """`name`, `dtype`, `shape` and `bytes` of each."""


class Controls(Reply, frozen=True):
    """Trivial outputs that the comparison accepts."""

    fooled_by: list[str]


class Judgement(Reply, frozen=True):
    """Whether outputs are right. None stands for a number that is not finite."""

    passed: bool
    message: str
    error: float | None
    max_abs: float | None


class Report(Reply, frozen=True):
    """A device, as gate.values.platform.Platform."""

    name: str
    device: str
    capabilities: dict[str, bool | int | float | str]
    toolchain: dict[str, str]
    can_run: bool


class Opened(Reply, frozen=True):
    """How a runner works."""

    trust: Literal["harness-launched", "python-hosted"]
    can_time: bool
    method: str


class Prepared(Reply, frozen=True):
    """A build, as gate.values.artifact.BuildArtifact, and the seconds it took."""

    digest: str
    ir: dict[str, str]
    resources: dict[str, int | None]
    log: str
    elapsed_s: float


class Ran(Reply, frozen=True):
    """Outputs in files, one list for each run; `launch` is what besides the binary decides."""

    runs: list[list[dict[str, Any]]]
    changed_inputs: list[str]
    launch: dict[str, Any]
    elapsed_s: float


class Outputs(Reply, frozen=True):
    """Outputs in files, as the latest launch left them."""

    outputs: list[dict[str, Any]]
    changed_inputs: list[str]


class Samples(Reply, frozen=True):
    """Latency of each launch, microseconds."""

    samples_us: list[float]


class ArgumentTraced(Reply, frozen=True):
    """As gate.values.trace.ArgumentTrace."""

    kind: Literal["pointer", "scalar", "constexpr"]
    dtype: str
    value: int | float | bool | str | None = None
    alignment_bytes: int | None = None
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    overlaps: tuple[str, ...] = ()


class Traced(Reply, frozen=True):
    """As gate.values.trace.LaunchTrace."""

    axes: dict[str, int]
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    options: dict[str, int | str]
    arguments: dict[str, ArgumentTraced]


class DeviceFound(Reply, frozen=True):
    """A device that some runtime found."""

    runtime: Literal["opencl", "cuda"]
    name: str
    detail: str = ""


class Probed(Reply, frozen=True):
    """What an interpreter has for kernels."""

    interpreter: str
    version: str
    packages: dict[str, str | None]
    tools: dict[str, str | None]
    devices: list[DeviceFound]
    problems: list[str]

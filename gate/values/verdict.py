"""Verdict: the gate's answer on a candidate, with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gate.values.artifact import BuildArtifact
from gate.values.workload import Axes


class Tier(StrEnum):
    """How much proof was asked for."""

    SCREEN = "screen"
    """Seconds, to rank and show: warm workers, one seed, a short timing run."""
    CONFIRM = "confirm"
    """Fresh processes, fresh seeds, every shape, an interval. One-key apply needs this."""
    ADMIT = "admit"
    """Confirm plus the sanitizer."""


class Status(StrEnum):
    """What the gate concluded."""

    FASTER = "faster"
    TIE = "tie"
    SLOWER = "slower"
    NOISY = "noisy"
    WRONG = "wrong"
    COMPILE_ERROR = "compile_error"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    SUSPICIOUS = "suspicious"
    FORBIDDEN = "forbidden"
    UNGATEABLE = "ungateable"
    UNMEASURED = "unmeasured"


class Outcome(StrEnum):
    """What became of one check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


class Equivalence(StrEnum):
    """What the candidate was shown to agree with."""

    REFERENCE = "reference"
    ORIGINAL = "original"


class Trust(StrEnum):
    """Who launched the kernel while it was judged."""

    HARNESS = "harness-launched"
    """Our runner did; no candidate host code ran."""
    HOSTED = "python-hosted"
    """The candidate's own Python did; a lower trust."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked, or was not and why."""

    name: str
    """`compile`, `correctness`, `poison`, `inputs unchanged`, `profile`, `sanitizer`, …"""
    outcome: Outcome
    detail: str
    """What was compared and the numbers that decided, or why it was not run."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Latency of baseline and candidate at one shape, measured interleaved."""

    axes: Axes
    baseline_us: float
    """In the middle observation, so that baseline over candidate is the speedup shown."""
    candidate_us: float
    speedup: float
    """Baseline over candidate; above 1 is faster."""
    speedup_low: float
    speedup_high: float
    confidence: float
    """Coverage of [speedup_low, speedup_high], e.g. 0.97."""
    method: str
    """Clock, order, cache state, processes and launches: all a reader needs to repeat it."""
    baseline_samples_us: tuple[float, ...] = ()
    candidate_samples_us: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The evidence record of one evaluation. Keyed by (closure, candidate, workload, platform)."""

    status: Status
    tier: Tier
    closure: str
    """Closure digest of the baseline kernel."""
    candidate: str
    """Candidate digest."""
    workload: str
    """Digest of the workload file."""
    platform: str
    """Platform name."""
    device: str
    message: str
    """One line for people: what happened, and for a failure what to look at."""
    checks: tuple[Check, ...] = ()
    timings: tuple[Timing, ...] = ()
    """One for each shape, the first declared shape first. Empty when nothing was measured."""
    baseline_artifact: BuildArtifact | None = None
    candidate_artifact: BuildArtifact | None = None
    equivalent_to: Equivalence = Equivalence.REFERENCE
    trust: Trust = Trust.HARNESS
    seeds: tuple[int, ...] = ()
    """Seeds of the inputs, revealed once the verdict stands."""
    toolchain: Mapping[str, str] = field(default_factory=dict)
    cost_s: float = 0.0
    """Wall-clock seconds the evaluation took."""
    log: str = ""
    """Compiler or worker output behind a failure, at most 16 KiB."""

    @property
    def headline(self) -> Timing | None:
        """The timing at the first declared shape, or None if nothing was measured."""
        return self.timings[0] if self.timings else None

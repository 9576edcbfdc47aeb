"""A gate that answers from a script, or waits until the test lets it: for faults and order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gate.errors import Cancelled
from gate.evaluate import Budget
from gate.values.candidate import Candidate
from gate.values.kernel import Kernel, Language
from gate.values.platform import Platform
from gate.values.trace import ArgumentTrace, LaunchTrace
from gate.values.verdict import Check, Outcome, Status, Tier, Timing, Verdict
from gate.values.workload import Workload

CPU = Platform(
    "pocl-cpu",
    "scripted CPU",
    {
        "device_type": "cpu",
        "compute_units": 2,
        "local_memory_bytes": 524288,
        "max_work_group_size": 4096,
        "preferred_vector_float": 8,
        "native_vector_float": 8,
    },
)
FASTEST = "opencl.coarsen-rows-8"
SPEEDUPS = {FASTEST: 4.0, "opencl.coarsen-rows-4": 2.5, "opencl.vector-columns-8": 2.0}
"""Skills that the script finds faster; all others tie."""


@dataclass(frozen=True)
class Asked:
    """One call of `evaluate`."""

    tier: Tier
    skill: str
    """Skill id; empty for a kernel as it stands."""
    baseline: Kernel
    candidate: Candidate
    workload: Workload


def timing(speedup: float = 2.0) -> Timing:
    axes = {"M": 256, "N": 256, "K": 256}
    low, high = speedup * 0.95, speedup * 1.05
    return Timing(axes, 100.0 * speedup, 100.0, speedup, low, high, 0.97, "scripted")


def make_verdict(
    asked: Asked | None = None,
    status: Status = Status.FASTER,
    speedup: float = 2.0,
    tier: Tier = Tier.SCREEN,
    message: str = "as scripted",
) -> Verdict:
    return Verdict(
        status=status,
        tier=asked.tier if asked else tier,
        closure=asked.baseline.closure if asked else "c" * 64,
        candidate=asked.candidate.digest if asked else "d" * 64,
        workload=asked.workload.digest if asked else "e" * 64,
        platform=CPU.name,
        device=CPU.device,
        message=message,
        checks=(Check("correctness", Outcome.PASSED, "scripted"),),
        timings=(timing(speedup),) if status in (Status.FASTER, Status.TIE, Status.SLOWER) else (),
        cost_s=0.5,
    )


def by_script(asked: Asked) -> Verdict:
    """Faster where SPEEDUPS says so."""
    speedup = SPEEDUPS.get(asked.skill, 1.0)
    return make_verdict(asked, Status.FASTER if speedup > 1 else Status.TIE, speedup)


@dataclass
class ScriptedGate:
    """The five methods of Gate that the daemon calls."""

    skills: Mapping[str, str] = field(default_factory=dict)
    """Card digest → skill id."""
    answer: Callable[[Asked], Verdict] = by_script
    """Gives a verdict, or raises."""
    asked: list[Asked] = field(default_factory=list)
    traced: list[tuple[Kernel, Workload]] = field(default_factory=list)
    probed: list[Language] = field(default_factory=list)
    platform_fails: Exception | None = None
    trace_fails: Exception | None = None
    holds: Callable[[Asked], bool] = lambda asked: False
    """Evaluations that wait for `let_go` or their stop event."""
    let_go: threading.Event = field(default_factory=threading.Event)
    cancelled: list[Asked] = field(default_factory=list)

    def platform(self, language: Language) -> Platform:
        self.probed.append(language)
        if self.platform_fails is not None:
            raise self.platform_fails
        return CPU

    def trace(
        self,
        kernel: Kernel,
        workload: Workload,
        stop: threading.Event,
        progress: Callable[[str], None],
    ) -> tuple[LaunchTrace, ...]:
        self.traced.append((kernel, workload))
        progress("tracing")
        if self.trace_fails is not None:
            raise self.trace_fails
        return launches(kernel)

    def evaluate(
        self,
        baseline: Kernel,
        candidate: Candidate,
        workload: Workload,
        platform: Platform,
        tier: Tier,
        budget: Budget,
        stop: threading.Event,
        progress: Callable[[str], None],
    ) -> Verdict:
        asked = Asked(tier, self.skills.get(candidate.skill, ""), baseline, candidate, workload)
        self.asked.append(asked)
        progress("timing")
        while self.holds(asked) and not self.let_go.is_set():
            # The stop event is the other thing that may end the wait.
            if stop.wait(0.002):
                self.cancelled.append(asked)
                raise Cancelled("stopped")
        return self.answer(asked)

    def release_idle(self) -> None:
        """Nothing is kept warm."""

    def close(self) -> None:
        """Nothing is left running."""

    def tiers(self, skill: str | None = None) -> list[str]:
        """Tiers asked for, in order; of one skill or of all."""
        return [asked.tier.value for asked in self.asked if skill in (None, asked.skill)]


def launches(kernel: Kernel) -> tuple[LaunchTrace, ...]:
    """What launches of the sample kernels pass, as the real gate sees them."""
    shapes: list[dict[str, int]] = [
        {"M": 256, "N": 256, "K": 256},
        {"M": 384, "N": 128, "K": 320},
        {"M": 200, "N": 136, "K": 96},
        {"M": 67, "N": 93, "K": 45},
    ]
    return tuple(
        LaunchTrace(
            axes,
            kernel.entry,
            (axes["N"], axes["M"]),
            (),
            {},
            {
                **{name: ArgumentTrace("pointer", "float32", None, 4096) for name in "ABC"},
                **{n: ArgumentTrace("scalar", "int32", axes[n]) for n in ("M", "N", "K")},
            },
        )
        for axes in shapes
    )

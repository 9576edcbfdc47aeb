"""Targets with made-up facts, so that a test shows only the facts that matter to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gate.values.kernel import Kernel, Language, Launch, LaunchKind, SourceFile
from gate.values.platform import Capability, Platform
from gate.values.workload import Axes
from library.card import (
    Card,
    Carrier,
    Effect,
    FeatureRef,
    Precondition,
    Provenance,
    Scope,
    TransformCarrier,
)
from library.fact import Answer, Argument, Known, Missing, Value
from library.target import Captures, Feature, Layer, Locus, Presence, Target
from library.trial import Trial, TrialTiming

SOURCE = b"kernel void scale(global float *x) { for (int k = 0; k < 64; ++k) x[k] *= 2; }\n"


def locus(text: str = "for", start: int = 37, path: str = "scale.cl") -> Locus:
    return Locus(path, start, start + len(text), 1, text)


def feature(
    id: str, presence: Presence = Presence.PRESENT, place: Locus | None = None, detail: str = ""
) -> Feature:
    return Feature(id, f"name of {id}", presence, Layer.SOURCE, place, detail)


@dataclass
class MadeUpAnalysis:
    """Answers from tables: names by axis or constant, calls by function name."""

    features: tuple[Feature, ...] = ()
    shapes: tuple[Axes, ...] = ()
    names: Mapping[str, Value] = field(default_factory=dict)
    calls: Mapping[str, Value | Answer] = field(default_factory=dict)
    matches: tuple[Captures, ...] = ({"kernel": (locus("kernel void scale", 0),)},)
    asked: list[tuple[str, tuple[Argument, ...]]] = field(default_factory=list)

    def anchors(self, query: str) -> tuple[Captures, ...]:
        return self.matches

    def name(self, name: str, axes: Axes | None) -> Answer:
        if axes and name in axes:
            return Known(axes[name], "SHAPES of workload.py")
        if name in self.names:
            return Known(self.names[name], f"#define {name}")
        return Missing(f"nothing gives {name}", f"declare {name} in SHAPES")

    def call(self, function: str, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
        self.asked.append((function, arguments))
        if function not in self.calls:
            return Missing(f"{function} is not known here", f"teach it {function}")
        value = self.calls[function]
        return value if isinstance(value, Known | Missing) else Known(value, "made up")


def platform(name: str = "pocl-cpu", **capabilities: Capability) -> Platform:
    return Platform(name, "cpu-haswell", capabilities)


def kernel(closure: str = "c" * 64, language: Language = Language.OPENCL) -> Kernel:
    file = SourceFile("scale.cl", SOURCE)
    launch = Launch(LaunchKind.NDRANGE, "workload.py", "launch")
    return Kernel(language, "scale.cl", "scale", (file,), launch, closure)


def target(
    analysis: MadeUpAnalysis | None = None,
    *,
    closure: str = "c" * 64,
    language: Language = Language.OPENCL,
    on: Platform | None = None,
    case: str = "scale",
) -> Target:
    return Target(kernel(closure, language), analysis or MadeUpAnalysis(), None, on, case)


def card(
    skill_id: str = "opencl.scale-wide",
    *,
    checks: Mapping[str, str | None] | None = None,
    category: str = "layout",
    carrier: Carrier | None = None,
    scope: Scope | None = None,
    requires: tuple[str, ...] = (),
    provides: tuple[str, ...] = (),
    conflicts: tuple[str, ...] = (),
    claims: tuple[float, float] | None = (1.2, 2.0),
    supersedes: str | None = None,
) -> Card:
    effects = (Effect("speedup", "up", *claims),) if claims else ()
    conditions = (checks or {}).items()
    return Card(
        skill_id,
        intent="Load eight floats at once so that fewer load instructions are issued.",
        anchors={"opencl": "(for_statement) @loop", "triton": "(for_statement) @loop"},
        carrier=carrier or TransformCarrier("opencl.scale-wide"),
        preconditions=tuple(
            Precondition(name, category, f"{name} must hold", check)  # type: ignore[arg-type]
            for name, check in conditions
        ),
        scope=scope or Scope(),
        provenance=Provenance("shipped"),
        requires=tuple(FeatureRef(name) for name in requires),
        provides=tuple(FeatureRef(name) for name in provides),
        conflicts=tuple(FeatureRef(name) for name in conflicts),
        effects=effects,
        supersedes=supersedes,
    )


def trial(
    card_digest: str,
    status: str = "faster",
    speedup: float | None = 2.0,
    *,
    id: str = "t1",
    tier: str = "confirm",
    platform: str = "pocl-cpu",
    closure: str = "d" * 64,
    held_out: bool = True,
    at: str = "2026-01-01T00:00:00Z",
    case: str = "scale",
    reason: str = "",
    cost_s: float = 1.0,
) -> Trial:
    timings: tuple[TrialTiming, ...] = ()
    if speedup is not None:
        low, high = speedup * 0.97, speedup * 1.03
        timings = (TrialTiming({"N": 64}, 100.0, 100.0 / speedup, speedup, low, high, 0.97, "m"),)
    return Trial(
        id,
        at,
        card_digest,
        case,
        "opencl",
        platform,
        "cpu-haswell",
        closure,
        "scale.cl::scale",
        status,
        tier,  # type: ignore[arg-type]
        reason,
        held_out,
        timings,
        cost_s=cost_s,
    )

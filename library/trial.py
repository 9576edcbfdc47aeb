"""Trial: one roundtrip of a skill on a target, with its verdict. Evidence is a set of trials.

On disk: `<skill folder>/evidence/<card digest>/<trial id>.json`, one file a trial, never rewritten,
unioned over all library roots.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class TrialTiming(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Speedup measured at one shape. Latencies in microseconds."""

    axes: dict[str, int]
    baseline_us: float
    candidate_us: float
    speedup: float
    speedup_low: float
    speedup_high: float
    confidence: float
    method: str


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What happened when a card was materialized on a target and gated, or judged by a person."""

    trial_id: str
    at: str
    """UTC, ISO 8601."""
    card: str
    """Card digest."""
    case: str
    language: str
    platform: str
    device: str
    closure: str
    """Closure digest of the kernel it was tried on."""
    kernel: str
    """`path::entry`, for people."""
    status: str
    """A gate status (`faster`, `wrong`, …), or `rejected` when a person said no."""
    tier: Literal["screen", "confirm", "admit", "human"]
    reason: str = ""
    """The person's reason for a rejection, or the gate's one-line message."""
    held_out: bool = False
    """True if the card was not learned from this kernel."""
    timings: tuple[TrialTiming, ...] = ()
    toolchain: dict[str, str] = msgspec.field(default_factory=dict)
    cost_s: float = 0.0

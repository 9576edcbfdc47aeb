"""The gain a card's evidence predicts, and the order offers are shown in.

The prediction shrinks what was measured toward what the card claims:

    ln(gain) = (PRIOR_TRIALS · ½ · ln √(low · high)  +  Σ ln(speedup_i)) / (PRIOR_TRIALS + n)

over the n latest confirmed trials of distinct kernels on the same platform. A trial that gave no
usable kernel (wrong, not built, crashed) counts as a speedup of 1. A claim counts half in the
logarithm, since claims are made where a skill shone; no claim is a gain of 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from library.card import Card, Effect
from library.evidence import CardStatus, Evidence, ratio, ratio_range

PRIOR_TRIALS = 1.0


@dataclass(frozen=True, slots=True)
class Expectation:
    """The gain predicted for a card on a platform; never a measurement of the kernel at hand."""

    gain: float
    """Speedup; 1 is no gain."""
    trials: int
    """Trials on this platform behind it."""
    cost_s: float
    """Median wall-clock seconds of those trials; 0 when untried."""
    text: str
    """For people, with the number of trials."""


def expect(card: Card, evidence: Evidence, platform: str | None) -> Expectation:
    """What to expect of a card on a platform (None: not known yet)."""
    effect = evidence.effect(platform) if platform else None
    speedups = effect.speedups if effect else ()
    failures = evidence.failures(platform) if platform else 0
    claim = claimed(card.effects)
    prior = 0.5 * math.log(math.sqrt(claim[0] * claim[1])) if claim else 0.0
    count = len(speedups) + failures
    total = PRIOR_TRIALS * prior + sum(map(math.log, speedups))
    gain = math.exp(total / (PRIOR_TRIALS + count))
    costs = sorted(trial.cost_s for trial in evidence.trials if trial.platform == platform)
    cost_s = costs[len(costs) // 2] if costs else 0.0
    return Expectation(gain, count, cost_s, _text(gain, count, platform, claim))


def claimed(effects: Sequence[Effect]) -> tuple[float, float] | None:
    """The speedup range a card claims, from its `speedup`, `throughput` or `latency` effect."""
    for effect in effects:
        if effect.low is None or effect.high is None or min(effect.low, effect.high) <= 0:
            continue
        if effect.metric in ("speedup", "throughput") and effect.direction == "up":
            return effect.low, effect.high
        if effect.metric == "latency" and effect.direction == "down":
            return 1 / effect.high, 1 / effect.low
    return None


def _text(gain: float, count: int, platform: str | None, claim: tuple[float, float] | None) -> str:
    if count:
        return f"{ratio(gain)}x ({count} {'trial' if count == 1 else 'trials'} on {platform})"
    if claim:
        return f"{ratio_range(*claim)} claimed, untried here"
    return "no gain claimed, untried here"


def ranking_line(expectation: Expectation, status: CardStatus) -> str:
    """How the place in the list came about, for people."""
    cost = f", about {expectation.cost_s:.0f} s to gate" if expectation.cost_s else ""
    return f"expected {expectation.text}; ranked by a predicted {ratio(expectation.gain)}x{cost}; {status} on this platform"

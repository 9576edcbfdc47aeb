"""What a card's trials say of it: status, verified scope, measured effect, negative facts.

Pure functions over trials; docs/skills.md states the rules in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from library.card import Card
from library.trial import Trial

CONFIRMED = frozenset({"confirm", "admit"})
MEASURED = frozenset({"faster", "tie", "slower"})
FAILED = frozenset({"wrong", "compile_error", "crashed", "timeout", "suspicious", "forbidden"})
REJECTED = "rejected"
"""Status of a trial in which a person said no."""


class CardStatus(StrEnum):
    """What evidence makes of a card on one platform."""

    HYPOTHESIS = "hypothesis"
    ADMITTED = "admitted"
    SUSPENDED = "suspended"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class VerifiedScope:
    """Where a card has been confirmed faster."""

    platform: str
    language: str
    case: str


@dataclass(frozen=True, slots=True)
class MeasuredEffect:
    """Confirmed speedups on one platform: the latest of each kernel, so that repeats do not count."""

    platform: str
    speedups: tuple[float, ...]
    """At the first declared shape; above 1 is faster. Ties and slowdowns are among them."""

    @property
    def text(self) -> str:
        """`pocl-cpu 2.8–3.4x (2)`."""
        return f"{self.platform} {ratio_range(min(self.speedups), max(self.speedups))} ({len(self.speedups)})"


@dataclass(frozen=True, slots=True)
class NegativeFact:
    """A place where a card failed, did not pay, or was refused by a person."""

    platform: str
    language: str
    case: str
    closure: str
    status: str
    reason: str
    trial_id: str

    def blocks(self, closure: str, platform: str) -> bool:
        """Whether it speaks against offering the card on this kernel again.

        A person's no, and a wrong answer, hold for the kernel on every platform; that it was not
        faster, or could not be built or run, holds for the platform it was tried on.
        """
        if closure != self.closure:
            return False
        return self.status in (REJECTED, "wrong") or platform == self.platform


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything derived from the trials of one card."""

    trials: tuple[Trial, ...] = ()
    """Oldest first."""
    verified: tuple[VerifiedScope, ...] = ()
    effects: tuple[MeasuredEffect, ...] = ()
    negative: tuple[NegativeFact, ...] = ()
    admitted_on: frozenset[str] = frozenset()
    suspended_on: frozenset[str] = frozenset()

    def status(self, platform: str) -> CardStatus:
        """The card's status on a platform. A platform without trials makes it a hypothesis."""
        if platform in self.suspended_on:
            return CardStatus.SUSPENDED
        return CardStatus.ADMITTED if platform in self.admitted_on else CardStatus.HYPOTHESIS

    @property
    def overall(self) -> CardStatus:
        """The best it has anywhere: admitted, else suspended, else a hypothesis."""
        if self.admitted_on - self.suspended_on:
            return CardStatus.ADMITTED
        return CardStatus.SUSPENDED if self.suspended_on else CardStatus.HYPOTHESIS

    def effect(self, platform: str) -> MeasuredEffect | None:
        """Confirmed speedups on a platform, or None if nothing was measured there."""
        return next((each for each in self.effects if each.platform == platform), None)

    def failures(self, platform: str) -> int:
        """Trials on a platform that gave no usable kernel: wrong, not built, crashed, …"""
        return sum(1 for t in self.trials if t.platform == platform and t.status in FAILED)

    @property
    def gains(self) -> str:
        """All measured ranges by platform, for people: `pocl-cpu 2.8–3.4x (2), sm_90a 1.1x (1)`."""
        return ", ".join(effect.text for effect in self.effects)


def derive(trials: Iterable[Trial]) -> Evidence:
    """What trials of one card say of it. The order they are given in does not matter."""
    ordered = sorted(trials, key=lambda trial: (trial.at, trial.trial_id))
    verified = tuple(dict.fromkeys(_scope(trial) for trial in ordered if _is_gain(trial)))
    return Evidence(
        tuple(ordered),
        verified,
        _effects(ordered),
        _negative_facts(ordered),
        frozenset(t.platform for t in ordered if _is_gain(t) and t.held_out),
        frozenset(t.platform for t in ordered if t.status == "wrong" and _scope(t) in verified),
    )


def superseded(cards: Sequence[Card]) -> frozenset[str]:
    """Digests of the cards that another card of the library replaces: they are retired."""
    return frozenset(card.supersedes for card in cards if card.supersedes)


def speedup_of(trial: Trial) -> float | None:
    """Speedup at the first declared shape, or None if nothing usable was measured."""
    value = trial.timings[0].speedup if trial.timings else None
    return value if value is not None and math.isfinite(value) and value > 0 else None


def ratio_range(low: float, high: float) -> str:
    """A range of ratios at two digits: `1.2–2x`, or `1.8x` where both read the same."""
    first, last = ratio(low), ratio(high)
    return f"{last}x" if first == last else f"{first}–{last}x"


def ratio(value: float) -> str:
    """A ratio as people read it: two decimals near 1, where they matter; one above 2."""
    digits = 2 if value < 2 else 1 if value < 20 else 0
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _is_gain(trial: Trial) -> bool:
    return trial.status == "faster" and trial.tier in CONFIRMED


def _is_measurement(trial: Trial) -> bool:
    return trial.status in MEASURED and trial.tier in CONFIRMED


def _scope(trial: Trial) -> VerifiedScope:
    return VerifiedScope(trial.platform, trial.language, trial.case)


def _effects(ordered: Sequence[Trial]) -> tuple[MeasuredEffect, ...]:
    latest: dict[tuple[str, str], float] = {}
    for trial in ordered:
        speedup = speedup_of(trial)
        if _is_measurement(trial) and speedup is not None:
            latest[trial.platform, trial.closure] = speedup
    by_platform = groupby(sorted(latest.items()), key=lambda item: item[0][0])
    return tuple(
        MeasuredEffect(platform, tuple(speedup for _, speedup in items))
        for platform, items in by_platform
    )


def _negative_facts(ordered: Sequence[Trial]) -> tuple[NegativeFact, ...]:
    """Failures and rejections stand; for ties and slowdowns the latest confirmation counts."""
    facts: dict[tuple[str, ...], NegativeFact] = {}
    for trial in ordered:
        measured = _is_measurement(trial)
        if not measured and trial.status not in FAILED and trial.status != REJECTED:
            continue
        kind = "measured" if measured else trial.status
        key = (trial.platform, trial.closure, kind)
        if trial.status == "faster":
            facts.pop(key, None)
        else:
            facts[key] = NegativeFact(
                trial.platform,
                trial.language,
                trial.case,
                trial.closure,
                trial.status,
                trial.reason or _measured_reason(trial),
                trial.trial_id,
            )
    return tuple(facts.values())


def _measured_reason(trial: Trial) -> str:
    speedup = speedup_of(trial)
    return f"measured {ratio(speedup)}x" if speedup is not None else trial.status

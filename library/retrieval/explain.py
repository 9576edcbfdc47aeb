"""Why a skill is or is not offered on a kernel, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from library.conditions import TargetFacts, Truth
from library.retrieval.consider import consider
from library.retrieval.offer import Answer, ConditionResult, Offer
from library.retrieval.ranking import ranking_line
from library.retrieval.retrieve import ORDER
from library.store import Entry
from library.target import Target

MOST_MATCHES = 5


@dataclass(frozen=True, slots=True)
class Explanation:
    """What `klineage skills why` prints."""

    answer: Answer
    lines: tuple[str, ...]
    conditions: tuple[ConditionResult, ...]
    """Of the match that comes closest."""


def explain(entry: Entry, target: Target) -> Explanation:
    """Every reason for and against a skill on a target, and what would make it apply.

    Asks anchors and conditions even when something else excludes the skill already.
    """
    offers = consider(entry, target, TargetFacts(target), thorough=True)
    best = min(offers, key=lambda offer: (ORDER[offer.answer], len(offer.against)))
    return Explanation(best.answer, tuple(_lines(entry, target, offers, best)), best.conditions)


def _lines(entry: Entry, target: Target, offers: tuple[Offer, ...], best: Offer) -> Iterator[str]:
    yield f"{entry.card.skill_id} {best.answer} {_on(best)} {target.kernel.path}::{target.kernel.entry}"
    yield from (reason.line for reason in best.reasons)
    yield from _near_miss(best)
    platform = target.platform.name if target.platform else None
    yield ranking_line(best.expectation, entry.status(platform))
    yield from (
        f"trial {trial.trial_id}: {trial.status} at {trial.tier} on {trial.kernel} ({trial.platform})"
        for trial in entry.evidence.trials[-MOST_MATCHES:]
    )
    others = [offer for offer in offers if offer is not best]
    for offer in others[:MOST_MATCHES]:
        place = f"line {offer.locus.line}" if offer.locus else "another match"
        yield f"also at {place}: {offer.answer}" + (f", {offer.reason}" if offer.reason else "")
    if len(others) > MOST_MATCHES:
        yield f"and at {len(others) - MOST_MATCHES} more places"


def _on(offer: Offer) -> str:
    preposition = {Answer.APPLIES: "to", Answer.BLOCKED: "on", Answer.EXCLUDED: "from"}
    return preposition[offer.answer]


def _near_miss(offer: Offer) -> Iterator[str]:
    """What would have to change, where it is little enough to say."""
    if offer.answer is Answer.APPLIES or len(offer.against) > 2:
        return
    texts = {result.precondition.id: result.precondition.text for result in offer.conditions}
    wishes = []
    for reason in offer.against:
        wish = texts.get(reason.about, reason.text)
        if reason.truth is Truth.UNKNOWN and reason.supply:
            wishes.append(f"{wish} (unknown: {reason.supply})")
        elif reason.about in texts:
            wishes.append(f"{wish} (now {reason.text})")
        else:
            return  # no edit of this kernel helps: wrong language, device or operator
    yield "would apply if " + ", and ".join(wishes)

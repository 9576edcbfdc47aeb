"""One card on one target: filters, anchor matches, conditions."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from library.card import Precondition
from library.conditions import Judgement, TargetFacts, Truth, judge, parse
from library.errors import ConditionError
from library.retrieval.filters import (
    WHOLE_KERNEL,
    evidence_reasons,
    feature_reasons,
    scope_reasons,
)
from library.retrieval.offer import Answer, ConditionResult, Offer, Reason, answer_of, offer_id
from library.retrieval.ranking import expect
from library.store import Entry
from library.target import Captures, Locus, Target

log = logging.getLogger(__name__)


def consider(
    entry: Entry, target: Target, facts: TargetFacts, thorough: bool = False
) -> tuple[Offer, ...]:
    """The offers of one card: one for each place it applies, or the one that comes closest.

    A card whose anchor captures `@kernel` acts on the whole kernel and gives one offer. `thorough`
    asks the anchors and conditions of an excluded card, too, and gives every match. A card that
    cannot be judged because of a fault of ours is excluded with that fault, and logged.
    """
    try:
        return _consider(entry, target, facts, thorough)
    except Exception as error:
        # Cards come from other people: one that trips an analysis must not cost all the others.
        kernel = f"{target.kernel.path}::{target.kernel.entry}"
        log.exception("%s (%s) on %s", entry.card.skill_id, entry.digest[:12], kernel)
        text = f"could not be judged: {type(error).__name__}: {error} (see the log)"
        return (_offer(entry, target, (Reason("fault", Truth.UNMET, text, excludes=True),), None),)


def _consider(
    entry: Entry, target: Target, facts: TargetFacts, thorough: bool
) -> tuple[Offer, ...]:
    card = entry.card
    general = (
        *scope_reasons(card, target),
        *feature_reasons(card, target, None),
        *evidence_reasons(entry, target),
    )
    query = card.anchors.get(target.kernel.language.value)
    if query is None or (answer_of(general) is Answer.EXCLUDED and not thorough):
        return (_offer(entry, target, general, None),)
    matches, problem = _matches(query, target)
    if not matches:
        text = problem or "nothing in the kernel has the shape it acts on"
        missing = Reason("anchor", Truth.UNMET, text, excludes=True)
        return (_offer(entry, target, (*general, missing), None),)
    offers = [
        _offer(entry, target, general, _Match(number, captures, _judged(entry, facts, captures)))
        for number, captures in enumerate(matches)
    ]
    return tuple(offers) if thorough else tuple(_worth_showing(offers, matches))


@dataclass(frozen=True, slots=True)
class _Match:
    number: int
    captures: Captures
    conditions: tuple[ConditionResult, ...]


def _matches(query: str, target: Target) -> tuple[tuple[Captures, ...], str]:
    """Distinct matches of an anchor, and what is wrong with it if it is no query."""
    try:
        found = target.analysis.anchors(query)
    except ValueError as error:  # tree_sitter.QueryError is one
        return (), f"its anchor is no valid query: {error}"
    distinct = {
        tuple(
            (name, tuple((p.path, p.start, p.end) for p in places)) for name, places in c.items()
        ): c
        for c in found
    }
    return tuple(distinct.values()), ""


def _worth_showing(offers: Sequence[Offer], matches: Sequence[Captures]) -> Iterator[Offer]:
    applying = [offer for offer in offers if offer.answer is Answer.APPLIES]
    if not applying:
        yield min(offers, key=lambda offer: (len(offer.against), offer.answer is Answer.EXCLUDED))
    elif all(WHOLE_KERNEL in captures for captures in matches):
        yield applying[0]
    else:
        yield from applying


def _offer(
    entry: Entry, target: Target, general: tuple[Reason, ...], match: _Match | None
) -> Offer:
    platform = target.platform.name if target.platform else None
    reasons = general
    if match is not None:
        placed = feature_reasons(entry.card, target, match.captures)
        reasons = (*general, *placed, *map(_reason, match.conditions))
    return Offer(
        offer_id(target.kernel, entry.digest, match.number if match else 0),
        entry,
        answer_of(reasons),
        reasons,
        expect(entry.card, entry.evidence, platform),
        match=match.captures if match else {},
        locus=_place(match.captures) if match else None,
        conditions=match.conditions if match else (),
    )


def _judged(entry: Entry, facts: TargetFacts, captures: Captures) -> tuple[ConditionResult, ...]:
    return tuple(
        ConditionResult(precondition, _judge(precondition, facts, captures))
        for precondition in entry.card.preconditions
    )


def _judge(precondition: Precondition, facts: TargetFacts, captures: Captures) -> Judgement:
    if precondition.check is None:
        because = "no fact decides it; it must be read and judged"
        return Judgement(Truth.UNKNOWN, because, "a person or a rewriter judges it")
    try:
        condition = parse(precondition.check)
    except ConditionError as error:
        return Judgement(Truth.UNKNOWN, str(error), "correct the condition in the card")
    # Cards of one library ask much the same of one kernel, and mostly at the same places.
    named = tuple((name, captures[name]) for name in sorted(condition.names & captures.keys()))
    judgement = facts.judgements.get((condition.text, named))
    if judgement is None:
        judgement = facts.judgements[condition.text, named] = judge(condition, facts, captures)
    return judgement


def _reason(result: ConditionResult) -> Reason:
    judgement, precondition = result.judgement, result.precondition
    unmet_check = precondition.check if judgement.truth is Truth.UNMET else None
    alone = unmet_check is not None and parse(unmet_check).about_platform_alone
    return Reason(
        precondition.id, judgement.truth, judgement.because, judgement.supply, excludes=alone
    )


def _place(captures: Captures) -> Locus | None:
    """The widest range captured, the kernel itself only if nothing else is."""
    inner = [p for name, places in captures.items() if name != WHOLE_KERNEL for p in places]
    ranges = inner or [place for places in captures.values() for place in places]
    return max(ranges, key=lambda place: (place.end - place.start, -place.start), default=None)

"""All skills of the library on one target, in the order they are shown."""

from __future__ import annotations

from dataclasses import replace

from library.conditions import TargetFacts, Truth
from library.retrieval.consider import consider
from library.retrieval.offer import Answer, Offer, Retrieval
from library.retrieval.ranking import score
from library.store import Store
from library.target import Target

ORDER = {Answer.APPLIES: 0, Answer.BLOCKED: 1, Answer.EXCLUDED: 2}


def retrieve(target: Target, store: Store) -> Retrieval:
    """Every card in force on a target: applies, blocked or excluded, each with its reasons.

    The same target and library give the same offers in the same order.
    """
    facts = TargetFacts(target)
    offers = [offer for entry in store.entries for offer in consider(entry, target, facts)]
    offers.sort(key=_key)
    return Retrieval(tuple(replace(offer, rank=rank) for rank, offer in enumerate(offers, 1)))


def _key(offer: Offer) -> tuple[int, float, float, str, str, int, str]:
    met = sum(1 for reason in offer.reasons if reason.truth is Truth.MET)
    start = offer.locus.start if offer.locus else 0
    return (
        ORDER[offer.answer],
        -score(offer.expectation, met, len(offer.reasons)),
        offer.expectation.cost_s,
        offer.entry.card.skill_id,
        offer.entry.digest,
        start,
        offer.id,
    )

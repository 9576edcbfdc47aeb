"""All skills of the library on one target, in the order they are shown."""

from __future__ import annotations

from dataclasses import replace

from library.conditions import TargetFacts
from library.retrieval.consider import consider
from library.retrieval.offer import Answer, Offer, Retrieval
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


def _key(offer: Offer) -> tuple[int, int, float, float, str, str, int, str]:
    """Nearest first, then the highest predicted gain, then the cheapest; ids make it one order."""
    return (
        ORDER[offer.answer],
        len(offer.against),
        -offer.expectation.gain,
        offer.expectation.cost_s,
        offer.entry.card.skill_id,
        offer.entry.digest,
        offer.locus.start if offer.locus else 0,
        offer.id,
    )

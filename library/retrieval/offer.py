"""Offer: a skill at one place of a kernel, with every reason for and against it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gate.values.kernel import Kernel
from library.card import Precondition, TransformCarrier
from library.conditions import Judgement, Truth
from library.retrieval.ranking import Expectation
from library.store import Entry
from library.target import Captures, Locus


class Answer(StrEnum):
    """What retrieval says of a skill at a place."""

    APPLIES = "applies"
    """Everything it asks for is met."""
    BLOCKED = "blocked"
    """It is meant for such a kernel, but some condition is unmet or unknown, or evidence speaks
    against it here."""
    EXCLUDED = "excluded"
    """It is not for this kernel or this device, or has already been done."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One line of why: something the skill asks for, and whether it holds here."""

    about: str
    """`language`, `platform`, `case`, `requires`, `conflicts`, `provides`, `anchor`, `evidence`, or
    the id of a precondition."""
    truth: Truth
    text: str
    supply: str = ""
    """For unknown: what would settle it."""
    excludes: bool = False
    """True if unmet here means that the skill is not for this target at all."""

    @property
    def line(self) -> str:
        """For people: `met      aligned-k: K=256 % 8 == 0`."""
        settle = f" — {self.supply}" if self.supply else ""
        return f"{self.truth:<8} {self.about}: {self.text}{settle}"


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """A precondition of a card with its judgement on a target."""

    precondition: Precondition
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Offer:
    """A skill at one place of a kernel. Excluded skills have one, too, without a place."""

    id: str
    """12 hex digits, stable for (kernel, closure, card, number of the match)."""
    entry: Entry
    answer: Answer
    reasons: tuple[Reason, ...]
    expectation: Expectation
    rank: int = 0
    """1 is best; 0 until ranked."""
    match: Captures = field(default_factory=dict)
    """Captures of the anchor match to act on; empty if it was not looked for or not found."""
    locus: Locus | None = None
    """Where to show it."""
    conditions: tuple[ConditionResult, ...] = ()

    @property
    def expected(self) -> str:
        """`1.8x (3 trials on pocl-cpu)`, or `1.2–2x claimed, untried here`."""
        return self.expectation.text

    @property
    def mechanical(self) -> bool:
        """Whether a transform can make the candidate; otherwise a rewriter must."""
        return isinstance(self.entry.card.carrier, TransformCarrier)

    @property
    def against(self) -> tuple[Reason, ...]:
        """The reasons that are not met."""
        return tuple(reason for reason in self.reasons if reason.truth is not Truth.MET)

    @property
    def reason(self) -> str:
        """One line on why it is blocked or excluded; empty if it applies."""
        if not self.against:
            return ""
        first = self.against[0]
        more = f" (and {len(self.against) - 1} more)" if len(self.against) > 1 else ""
        return f"{first.about} {first.truth}: {first.text}{more}"


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Every skill of the library on one target, best first."""

    offers: tuple[Offer, ...]
    """Applying ones, then blocked, then excluded; ranked within each."""

    def having(self, answer: Answer) -> tuple[Offer, ...]:
        """The offers with that answer, best first."""
        return tuple(offer for offer in self.offers if offer.answer is answer)

    def by_id(self) -> Mapping[str, Offer]:
        """Offer id → offer."""
        return {offer.id: offer for offer in self.offers}


def offer_id(kernel: Kernel, card: str, number: int) -> str:
    """Id of an offer: the same kernel, closure, card digest and match give the same id."""
    parts = (kernel.path, kernel.entry, kernel.closure, card, str(number))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def answer_of(reasons: tuple[Reason, ...]) -> Answer:
    """Excluded if anything excludes; blocked if anything is unmet or unknown; else it applies."""
    against = [reason for reason in reasons if reason.truth is not Truth.MET]
    if any(reason.excludes and reason.truth is Truth.UNMET for reason in against):
        return Answer.EXCLUDED
    return Answer.BLOCKED if against else Answer.APPLIES

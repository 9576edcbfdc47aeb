"""What decides before any condition is asked: scope, features already there, evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from gate.values.platform import Platform
from library.card import Card, FeatureRef
from library.conditions import Truth
from library.conditions.facts import ASK_DEVICE, presence
from library.evidence import REJECTED, CardStatus
from library.fact import Answer as FactAnswer
from library.fact import Missing
from library.features import NAMES
from library.retrieval.offer import Reason
from library.store import Entry
from library.target import Captures, Presence, Target

WHOLE_KERNEL = "kernel"
"""Locus, and capture name, that stands for the kernel as a whole."""


def scope_reasons(card: Card, target: Target) -> Iterator[Reason]:
    """Language, platform, case and prior actions the card is declared for."""
    language = target.kernel.language.value
    in_scope = _matches(language, card.scope.languages) and language in card.anchors
    languages = ", ".join(card.anchors)
    yield _decided("language", in_scope, f"{language} (the skill is for {languages})")
    if "*" not in card.scope.platforms:
        yield _platform(target.platform, card.scope.platforms)
    if "*" not in card.scope.cases:
        yield _case(target.case, card.scope.cases)
    for action in card.scope.prior_actions:
        if action not in NAMES:
            text = f"whether {action} was applied before is not recorded in the source"
            yield Reason("prior action", Truth.UNKNOWN, text, "judge it from the kernel's history")
        else:
            yield from _required(FeatureRef(action), target, {}, "prior action")


def feature_reasons(card: Card, target: Target, match: Captures | None) -> Iterator[Reason]:
    """Features that must be there, must not be there, and those the card would add.

    `match` None: those that speak of the whole kernel. Otherwise those placed elsewhere, judged in
    the range the match captured under the name of their locus, if it captured one.
    """
    captures = match or {}

    def due(feature: FeatureRef) -> bool:
        return (feature.locus != WHOLE_KERNEL) is (match is not None)

    for feature in filter(due, card.requires):
        yield from _required(feature, target, captures, "requires")
    for feature in filter(due, card.conflicts):
        answer = _presence(feature, target, captures, Presence.ABSENT)
        yield _feature_reason("conflicts", answer)
    placed = any(feature.locus != WHOLE_KERNEL for feature in card.provides)
    if card.provides and placed is (match is not None):
        yield _provided(card.provides, target, captures)


def evidence_reasons(entry: Entry, target: Target) -> Iterator[Reason]:
    """What trials say against the card on this kernel and this platform."""
    platform = target.platform.name if target.platform else None
    if platform is not None or entry.retired:
        status = entry.status(platform)
        if status is CardStatus.SUSPENDED:
            wrong = next(
                t for t in entry.evidence.trials if t.status == "wrong" and t.platform == platform
            )
            text = f"suspended on {platform}: it gave a wrong answer on {wrong.kernel} (trial {wrong.trial_id})"
            yield Reason("evidence", Truth.UNMET, text, excludes=True)
        elif status is CardStatus.RETIRED:
            yield Reason(
                "evidence", Truth.UNMET, "retired: another card replaces it", excludes=True
            )
    for fact in entry.evidence.negative:
        if fact.blocks(target.kernel.closure, platform or ""):
            verb = (
                "rejected here"
                if fact.status == REJECTED
                else f"{fact.status} here on {fact.platform}"
            )
            yield Reason("evidence", Truth.UNMET, f"{verb}: {fact.reason} (trial {fact.trial_id})")


def _platform(platform: Platform | None, patterns: Sequence[str]) -> Reason:
    wanted = ", ".join(patterns)
    if platform is None:
        text = f"no device has been asked yet (the skill is for {wanted})"
        return Reason("platform", Truth.UNKNOWN, text, ASK_DEVICE)
    holds = _matches(platform.name, patterns)
    return _decided("platform", holds, f"{platform.name} (the skill is for {wanted})")


def _case(case: str, cases: Sequence[str]) -> Reason:
    wanted = ", ".join(cases)
    if not case:
        text = f"the operator is not declared (the skill is for {wanted})"
        return Reason("case", Truth.UNKNOWN, text, "declare OPERATOR in the workload file")
    return _decided("case", _matches(case, cases), f"{case} (the skill is for {wanted})")


def _required(
    feature: FeatureRef, target: Target, captures: Captures, about: str
) -> Iterator[Reason]:
    answer = _presence(feature, target, captures, Presence.PRESENT)
    yield _feature_reason(about, answer)


def _provided(provided: Sequence[FeatureRef], target: Target, captures: Captures) -> Reason:
    """Unmet only if every feature is there: a kernel that has them all needs no such skill."""
    answers = [_presence(feature, target, captures, Presence.PRESENT) for feature in provided]
    missing = next(
        (
            feature
            for feature, answer in zip(provided, answers, strict=True)
            if isinstance(answer, Missing) or not answer.value
        ),
        None,
    )
    if missing is not None:
        return Reason("provides", Truth.MET, f"{_label(missing)} is not there yet")
    because = "; ".join(a.because for a in answers if not isinstance(a, Missing))
    return Reason("provides", Truth.UNMET, f"already there: {because}", excludes=True)


def _presence(
    feature: FeatureRef, target: Target, captures: Captures, wanted: Presence
) -> FactAnswer:
    return presence(target.analysis.features, feature.name, captures.get(feature.locus, ()), wanted)


def _feature_reason(about: str, answer: FactAnswer) -> Reason:
    if isinstance(answer, Missing):
        return Reason(about, Truth.UNKNOWN, answer.reason, answer.supply)
    truth = Truth.MET if answer.value else Truth.UNMET
    return Reason(about, truth, answer.because, excludes=True)


def _label(feature: FeatureRef) -> str:
    return f"{feature.name} {NAMES.get(feature.name, '')}".strip()


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _decided(about: str, holds: bool, text: str) -> Reason:
    return Reason(about, Truth.MET if holds else Truth.UNMET, text, excludes=True)

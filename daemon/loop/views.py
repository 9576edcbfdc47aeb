"""The board as the flat types of daemon.protocol."""

from __future__ import annotations

from collections.abc import Mapping

from daemon.loop.board import Board, FileState, KernelState, Suggestion
from daemon.loop.gate_queue import Job
from daemon.protocol import (
    CheckView,
    ConditionView,
    EntryView,
    FeatureView,
    FileView,
    JobView,
    KernelView,
    SkillView,
    SuggestionView,
    TimingView,
    VerdictView,
)
from daemon.transaction import Change
from gate.values.artifact import BuildArtifact
from gate.values.verdict import Timing, Verdict
from gate.values.workload import shape_label
from library.card import TransformCarrier
from library.conditions import Judgement
from library.fact import Known
from library.retrieval import ConditionResult
from library.store import Entry
from library.target import Feature


def file_view(file: FileState, board: Board) -> FileView:
    """A file with its kernels."""
    kernels = tuple(kernel_view(board.kernels[id]) for id in file.kernels)
    return FileView(path=file.path, kernels=kernels, problems=file.problems)


def kernel_view(state: KernelState) -> KernelView:
    """A kernel with its features."""
    return KernelView(
        id=state.id,
        path=state.kernel.path,
        entry=state.kernel.entry,
        language=state.kernel.language.value,
        line=state.line,
        closure=state.kernel.closure,
        workload=state.workload.path if state.workload and state.kernel.launch else None,
        features=tuple(feature_view(feature) for feature in state.features),
        applicable=sum(s.stage not in ("blocked", "rejected", "manual") for s in state.suggestions),
    )


def feature_view(feature: Feature) -> FeatureView:
    """A row of state."""
    return FeatureView(
        id=feature.id,
        name=feature.name,
        presence=feature.presence.value,
        layer=feature.layer.value,
        line=feature.locus.line if feature.locus else None,
        detail=feature.detail,
    )


def suggestion_views(state: KernelState) -> tuple[SuggestionView, ...]:
    """A kernel's suggestions, ranked from 1."""
    return tuple(
        suggestion_view(suggestion, state, rank)
        for rank, suggestion in enumerate(state.suggestions, start=1)
    )


def suggestion_view(suggestion: Suggestion, state: KernelState, rank: int = 0) -> SuggestionView:
    """A suggestion; its rank is looked up when it is not given."""
    if not rank:
        ids = [s.id for s in state.suggestions]
        rank = ids.index(suggestion.id) + 1
    offer, card = suggestion.offer, suggestion.offer.entry.card
    verdict = suggestion.verdict
    return SuggestionView(
        id=suggestion.id,
        kernel=suggestion.kernel,
        path=state.kernel.path,
        line=offer.locus.line if offer.locus else state.line,
        skill=card.skill_id,
        card=offer.entry.digest,
        intent=card.intent,
        stage=suggestion.stage,
        rank=rank,
        expected=offer.expected,
        reason=suggestion.reason,
        conditions=tuple(condition_view(result) for result in offer.conditions),
        risks=card.risks,
        verdict=verdict_view(verdict, suggestion.verdict_at) if verdict else None,
        files=tuple(e.path for e in suggestion.candidate.edits) if suggestion.candidate else (),
    )


def condition_view(result: ConditionResult) -> ConditionView:
    """A precondition with the facts that decided it."""
    return ConditionView(
        id=result.precondition.id,
        category=result.precondition.category,
        text=result.precondition.text,
        truth=result.judgement.truth.value,
        because=_because(result.judgement),
        supply=result.judgement.supply,
    )


def _because(judgement: Judgement) -> str:
    """The condition with its values, and the lines of source that its facts were read from."""
    known = [fact.answer.because for fact in judgement.facts if isinstance(fact.answer, Known)]
    lines = [because for because in dict.fromkeys(known) if because.startswith("line ")]
    return "; ".join([judgement.because, *lines[:2]])


def verdict_view(verdict: Verdict, at: str) -> VerdictView:
    """A verdict without its raw samples."""
    return VerdictView(
        status=verdict.status.value,
        tier=verdict.tier.value,
        message=verdict.message,
        at=at,
        platform=verdict.platform,
        device=verdict.device,
        trust=verdict.trust.value,
        equivalent_to=verdict.equivalent_to.value,
        checks=tuple(CheckView(c.name, c.outcome.value, c.detail) for c in verdict.checks),
        timings=tuple(timing_view(timing) for timing in verdict.timings),
        resources_before=_resources(verdict.baseline_artifact),
        resources_after=_resources(verdict.candidate_artifact),
        log=verdict.log,
        cost_s=verdict.cost_s,
    )


def timing_view(timing: Timing) -> TimingView:
    """A timing without its samples."""
    return TimingView(
        shape=shape_label(timing.axes),
        before_us=timing.baseline_us,
        after_us=timing.candidate_us,
        speedup=timing.speedup,
        speedup_low=timing.speedup_low,
        speedup_high=timing.speedup_high,
        confidence=timing.confidence,
        method=timing.method,
    )


def gain_text(timing: Timing | None) -> str:
    """`3.12x [2.98, 3.30] at M=256 …`, as history shows it; empty when nothing was measured."""
    if timing is None:
        return ""
    interval = f"[{timing.speedup_low:.3g}, {timing.speedup_high:.3g}]"
    return f"{timing.speedup:.3g}x {interval} at {shape_label(timing.axes)}"


def job_view(job: Job) -> JobView:
    """A job of the gate. A trace, and a kernel gated alone, show as a screen."""
    tier = job.tier if job.tier in ("screen", "confirm", "admit") else "screen"
    return JobView(id=job.id, suggestion=job.subject, tier=tier, state=job.state, step=job.step)  # type: ignore[arg-type]


def entry_view(change: Change) -> EntryView:
    """A line of history."""
    return EntryView(
        id=change.id,
        at=change.at,
        kind=change.kind.value,
        suggestion=change.meta.suggestion,
        skill=change.meta.skill,
        kernel=change.meta.kernel,
        files=change.files,
        gain=change.meta.gain,
        note=change.note,
        undoable=change.undoable,
    )


def skill_view(entry: Entry) -> SkillView:
    """A card with what its evidence says."""
    card = entry.card
    carrier = card.carrier
    kind = f"transform {carrier.name}" if isinstance(carrier, TransformCarrier) else "rewriter"
    return SkillView(
        skill_id=card.skill_id,
        digest=entry.digest,
        intent=card.intent,
        languages=card.scope.languages,
        platforms=card.scope.platforms,
        status=entry.status(None).value,
        place=entry.place,
        trials=len(entry.evidence.trials),
        gains=entry.evidence.gains,
        carrier=kind,
        path=str(entry.folder),
    )


def _resources(artifact: BuildArtifact | None) -> dict[str, int | None]:
    resources: Mapping[str, int | None] = artifact.resources if artifact else {}
    return dict(resources)

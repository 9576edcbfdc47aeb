"""Changing: apply, reject, undo, redo. The files are re-read first; the watcher is not waited for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from daemon.errors import NotConfirmed, NotFound, Stale
from daemon.journal import Journal
from daemon.loop.board import Board, KernelState, Suggestion
from daemon.loop.devices import Devices
from daemon.loop.evaluating import Evaluating
from daemon.loop.gate_queue import GateQueue
from daemon.loop.publishing import Publisher
from daemon.loop.trials import Trials
from daemon.loop.views import entry_view, gain_text
from daemon.protocol import Applied, Apply, Ok, Reject
from daemon.transaction import Change, ChangeLog, ChangeMeta
from gate.values.verdict import Status, Tier, Verdict

Refresh = Callable[[Iterable[str]], Awaitable[None]]
"""Read these files from disk now and bring the board up to date."""


class Changing:
    """What a person does to their files through us."""

    def __init__(
        self,
        changes: ChangeLog,
        evaluating: Evaluating,
        devices: Devices,
        queue: GateQueue,
        board: Board,
        publisher: Publisher,
        journal: Journal,
        trials: Trials,
        refresh: Refresh,
    ) -> None:
        self._changes = changes
        self._evaluating = evaluating
        self._devices = devices
        self._queue = queue
        self._board = board
        self._publisher = publisher
        self._journal = journal
        self._trials = trials
        self._refresh = refresh

    async def apply(self, request: Apply) -> Applied:
        """Apply a suggestion confirmed faster for the code as it is on disk now."""
        if done := self._done_with(request.key):
            return done
        try:
            return await self._apply(request)
        except (NotConfirmed, NotFound, Stale):
            # The same request may have come twice, and the other have been carried out meanwhile.
            if done := self._done_with(request.key):
                return done
            raise

    def _done_with(self, key: str) -> Applied | None:
        change = self._changes.done_with(key) if key else None
        if change is None:
            return None
        return Applied(entry=entry_view(change), message=f"applied already: entry {change.id}")

    async def _apply(self, request: Apply) -> Applied:
        suggestion, state = await self._current(request.suggestion)
        verdict = suggestion.verdict
        if suggestion.stage == "rejected":
            raise NotConfirmed(_why_not(suggestion))
        if not suggestion.is_confirmed_faster:
            if not request.confirm or not _may_confirm(suggestion):
                raise NotConfirmed(_why_not(suggestion))
            verdict = await self._evaluating.suggestion(suggestion.id, Tier.CONFIRM)
            suggestion, state = await self._current(request.suggestion)
            if not suggestion.is_confirmed_faster:
                raise NotConfirmed(
                    f"confirmed first, and it is {verdict.status}: {verdict.message}"
                )
        assert verdict is not None
        assert suggestion.candidate is not None
        meta = ChangeMeta(
            suggestion.id,
            suggestion.offer.entry.card.skill_id,
            state.id,
            gain_text(verdict.headline),
            state.kernel.closure,
            request.key,
        )
        change = self._changes.apply(suggestion.candidate.edits, meta)
        return await self._done(change, f"applied {meta.skill} to {state.id}: {meta.gain}")

    async def reject(self, request: Reject) -> Ok:
        """Remember a no and its reason, here and as evidence of the skill."""
        suggestion = self._board.suggestion(request.suggestion)
        if suggestion is None:
            raise NotFound(f"no suggestion {request.suggestion}; the code may have changed since")
        state = self._board.kernels[suggestion.kernel]
        card = suggestion.offer.entry.card
        self._journal.rejections.put(suggestion.id, card.skill_id, state.id, request.reason)
        platform = self._devices.platforms.get(state.kernel.language)
        self._trials.of_rejection(
            suggestion,
            state,
            request.reason,
            platform.name if platform else "",
            platform.device if platform else "",
        )
        meta = ChangeMeta(suggestion.id, card.skill_id, state.id, closure=state.kernel.closure)
        change = self._changes.record_rejection(meta, request.reason)
        self._board.update(
            replace(suggestion, stage="rejected", reason=f"rejected: {request.reason}")
        )
        self._queue.cancel(lambda job: job.subject == suggestion.id, "it was rejected")
        self._publisher.kernel(state.id)
        self._publisher.change(change)
        return Ok(f"rejected {card.skill_id} on {state.id}; the reason is kept with the skill")

    async def undo(self, entry: int) -> Applied:
        """Take an applied change back, to identical bytes."""
        change = self._changes.undo(entry or None)
        return await self._done(change, f"undone {change.meta.skill} on {change.meta.kernel}")

    async def redo(self, entry: int) -> Applied:
        """Bring an undone change back."""
        change = self._changes.redo(entry or None)
        return await self._done(change, f"redone {change.meta.skill} on {change.meta.kernel}")

    async def _done(self, change: Change, message: str) -> Applied:
        self._publisher.change(change)
        self._publisher.message("info", message)
        await self._refresh(change.files)
        return Applied(entry=entry_view(change), message=message)

    async def _current(self, id: str) -> tuple[Suggestion, KernelState]:
        """The suggestion over the bytes that are on disk at this moment. Raises Stale, NotFound."""
        known = self._board.suggestion(id)
        if known is None:
            raise NotFound(
                f"no suggestion {id}; the code may have changed since: `klineage suggest`"
            )
        state = self._board.kernels[known.kernel]
        await self._refresh([file.path for file in state.kernel.files])
        suggestion = self._board.suggestion(id)
        if suggestion is None:
            raise Stale(
                f"{known.kernel} changed on disk since this was suggested; nothing was written. "
                "Suggestions for the code as it is now are on their way"
            )
        return suggestion, self._board.kernels[suggestion.kernel]


def _may_confirm(suggestion: Suggestion) -> bool:
    """Whether confirming could make it applicable: screened faster, or not yet screened."""
    verdict = suggestion.verdict
    if suggestion.candidate is None or suggestion.stage in ("blocked", "rejected", "manual"):
        return False
    return verdict is None or verdict.status in (Status.FASTER, Status.NOISY)


def _why_not(suggestion: Suggestion) -> str:
    skill, verdict = suggestion.offer.entry.card.skill_id, suggestion.verdict
    if suggestion.stage == "rejected":
        return f"{skill} was {suggestion.reason}"
    if suggestion.stage in ("blocked", "manual"):
        return f"{skill} is {suggestion.stage}: {suggestion.reason}"
    if verdict is None:
        return f"{skill} has not been measured yet ({suggestion.stage})"
    return _not_applicable(skill, verdict)


def _not_applicable(skill: str, verdict: Verdict) -> str:
    if verdict.status is Status.FASTER:
        return f"{skill} is only screened; confirm it first (apply with --confirm)"
    return f"{skill} is {verdict.status}, not faster: {verdict.message}"

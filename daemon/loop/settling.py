"""Settling: what is known already of a fresh suggestion, from the journal and the queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from daemon.journal import Journal
from daemon.loop.board import Basis, KernelState, Suggestion
from daemon.loop.devices import Devices
from daemon.loop.gate_queue import GateQueue
from daemon.protocol import Stage
from gate.values.trace import LaunchTrace
from gate.values.verdict import Tier, Verdict


class Settling:
    """Gives a suggestion that ranking made its stage, its verdict and its reason."""

    def __init__(
        self, journal: Journal, queue: GateQueue, devices: Devices, trusted: Callable[[], bool]
    ) -> None:
        self._journal = journal
        self._queue = queue
        self._devices = devices
        self._trusted = trusted
        self._obstacles: dict[Basis, str] = {}

    def settle(self, suggestion: Suggestion, state: KernelState) -> Suggestion:
        """The suggestion with its rejection, its verdict, its running job, or why it has none."""
        rejection = self._journal.rejections.get(suggestion.id)
        if rejection is not None:
            return replace(suggestion, stage="rejected", reason=f"rejected: {rejection.reason}")
        if suggestion.candidate is None:
            return suggestion
        suggestion = replace(suggestion, stage="queued", reason="", verdict=None, verdict_at="")
        known = self.known_verdict(suggestion, state)
        if known is not None:
            suggestion = with_verdict(suggestion, known[1], known[0])
        if (stage := self._running_stage(suggestion)) is not None:
            return replace(suggestion, stage=stage)
        return suggestion if known else replace(suggestion, reason=self.obstacle(state))

    def known_verdict(
        self, suggestion: Suggestion, state: KernelState
    ) -> tuple[str, Verdict] | None:
        """(when, verdict) of the most thorough evaluation on the present device, if there is one."""
        platform = self._devices.platforms.get(state.kernel.language)
        if platform is None or state.workload is None:
            return None
        closure, workload = state.basis
        for tier in (Tier.ADMIT, Tier.CONFIRM, Tier.SCREEN):
            known = self._journal.verdicts.newest(
                closure, suggestion.after_closure, workload, platform.name, tier
            )
            if known is not None:
                return known
        return None

    def traces_of(self, state: KernelState) -> tuple[LaunchTrace, ...]:
        """Launches of this kernel that were traced on the present device, if any."""
        platform = self._devices.platforms.get(state.kernel.language)
        if platform is None or state.workload is None:
            return ()
        return self._journal.traces.get(*state.basis, platform.name) or ()

    def hinder(self, basis: Basis, why: str) -> None:
        """Remember why a kernel is not measured, as long as it has this basis."""
        self._obstacles[basis] = f"not gated: {why}"

    def clear(self, basis: Basis) -> None:
        """It is tried again."""
        self._obstacles.pop(basis, None)

    def obstacle(self, state: KernelState) -> str:
        """Why a kernel's suggestions are not measured; empty if they are about to be."""
        if state.workload is None or state.kernel.launch is None:
            return "not gated: no workload says how to call this kernel (docs/workloads.md)"
        if not self._trusted():
            return "not gated: this worktree is not trusted yet"
        if state.kernel.language in self._devices.lacking:
            return f"not gated: {self._devices.lacking[state.kernel.language]}"
        return self._obstacles.get(state.basis, "")

    def _running_stage(self, suggestion: Suggestion) -> Stage | None:
        for tier in STAGES:
            job = self._queue.find(suggestion.id, tier)
            if job is not None and job.state == "running":
                return STAGES[tier]
        return None


STAGES: dict[str, Stage] = {"admit": "confirming", "confirm": "confirming", "screen": "screening"}
"""Tier of a job → stage of its suggestion while it runs."""


def with_verdict(suggestion: Suggestion, verdict: Verdict, at: str) -> Suggestion:
    """The suggestion once it is judged; `at` is UTC in ISO 8601."""
    stage: Stage = "screened" if verdict.tier is Tier.SCREEN else "confirmed"
    return replace(suggestion, stage=stage, verdict=verdict, verdict_at=at, reason=verdict.message)

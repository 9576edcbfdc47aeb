"""Evaluating: one question to the gate, and its answer put where it belongs.

The answer goes to the board, the journal and the library's evidence once a job, whoever waits for
it: a client that asked and left, two that asked for the same, or nobody.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from daemon.errors import NotFound, RpcError, Stale, Unavailable, Untrusted
from daemon.journal import Journal
from daemon.loop.board import Board, KernelState, Suggestion
from daemon.loop.devices import Devices
from daemon.loop.gate_queue import Done, GateQueue, Job, Priority, Superseded
from daemon.loop.publishing import Publisher
from daemon.loop.refusals import refusal
from daemon.loop.settling import STAGES, Settling, with_verdict
from daemon.loop.trials import Trials
from gate.errors import GateError
from gate.evaluate import Budget, Gate
from gate.values.candidate import Candidate
from gate.values.kernel import Kernel
from gate.values.platform import Platform
from gate.values.trace import LaunchTrace
from gate.values.verdict import Tier, Verdict
from gate.values.workload import Workload

log = logging.getLogger(__name__)

Ranked = Callable[[Iterable[str]], Awaitable[None]]
"""Wait until the kernels of these files have their suggestions over the bytes of now."""


class Evaluating:
    """Asks the gate about kernels and suggestions of the board."""

    def __init__(
        self,
        gate: Gate,
        queue: GateQueue,
        board: Board,
        publisher: Publisher,
        journal: Journal,
        trials: Trials,
        devices: Devices,
        settling: Settling,
        trusted: Callable[[], bool],
        ranked: Ranked,
    ) -> None:
        self._gate = gate
        self._queue = queue
        self._board = board
        self._publisher = publisher
        self._journal = journal
        self._trials = trials
        self._devices = devices
        self._settling = settling
        self._trusted = trusted
        self._ranked = ranked

    async def suggestion(
        self, id: str, tier: Tier, priority: Priority = Priority.ASKED, order: int = 0
    ) -> Verdict:
        """Gate a suggestion's candidate against its kernel.

        Raises NotFound, Stale if the kernel changes meanwhile, or what stands in the way.
        """
        _, state = self._find(id)
        platform = await self._device(state)
        await self._ranked([state.kernel.path])
        suggestion, state = self._find(id)
        self._check(state)
        candidate, workload = suggestion.candidate, state.workload
        if candidate is None or workload is None:
            raise Unavailable(f"{suggestion.offer.entry.card.skill_id}: {suggestion.reason}")
        work = self._work(state.kernel, candidate, workload, platform, tier)
        ended = partial(self._ended, suggestion, state)
        job = self._queue.submit(id, state.basis, tier.value, priority, work, order, ended)
        verdict: Verdict = await self._answer(job, state)
        return verdict

    async def kernel(
        self, state: KernelState, baseline: Kernel, candidate: Candidate, tier: Tier
    ) -> Verdict:
        """Gate a kernel as it stands, or against an earlier state of it."""
        platform = await self._device(state)
        assert state.workload is not None
        # The workload as the baseline knew it: a chain of changes may have edited its launch.
        path = state.workload.path
        files = {file.path: file.data for file in baseline.files}
        workload = Workload(path, files.get(path, state.workload.data))
        work = self._work(baseline, candidate, workload, platform, tier)
        subject = f"{state.id}@{baseline.closure[:12]}"
        job = self._queue.submit(
            subject, state.basis, tier.value, Priority.ASKED, work, ended=self._keep
        )
        verdict: Verdict = await self._answer(job, state)
        return verdict

    async def trace(self, state: KernelState, priority: Priority = Priority.TRACE) -> None:
        """Run the kernel once a shape, and keep what its launches passed. Raises as the rest."""
        platform = await self._device(state)
        kernel, workload, basis = state.kernel, state.workload, state.basis
        assert workload is not None

        def work(stop: threading.Event, step: Callable[[str], None]) -> tuple[LaunchTrace, ...]:
            return self._gate.trace(kernel, workload, stop, step)

        job = self._queue.submit(state.id, basis, "trace", priority, work)
        traces: tuple[LaunchTrace, ...] = await self._answer(job, state)
        try:
            self._journal.traces.put(*basis, platform.name, traces)
        except RpcError as error:
            # What applies without it can be gated all the same.
            self._publisher.message("warning", f"what launches pass is not kept: {error}")

    def job_changed(self, job: Job) -> None:
        """A job moved on: show it, and its suggestion's stage with it."""
        self._publisher.job(job)
        suggestion = self._board.suggestion(job.subject)
        stage = STAGES.get(job.tier)
        if job.state == "running" and stage and suggestion and suggestion.stage != stage:
            self._show(replace(suggestion, stage=stage))

    # ---- what stands in the way ----------------------------------------------------------------

    def _find(self, id: str) -> tuple[Suggestion, KernelState]:
        suggestion = self._board.suggestion(id)
        if suggestion is None:
            raise NotFound(
                f"no suggestion {id}; `klineage suggest` lists those of the code as it is"
            )
        return suggestion, self._board.kernels[suggestion.kernel]

    async def _device(self, state: KernelState) -> Platform:
        """The device to gate on. Raises what stands in the way."""
        self._check(state)
        platform = await self._devices.of(state.kernel.language)
        self._check(state)  # the answer may have been taken back meanwhile
        return platform

    def _check(self, state: KernelState) -> None:
        if not self._trusted():
            raise Untrusted(
                "this worktree is not trusted, so nothing of it is run; "
                "answer the question in the window once"
            )
        if state.workload is None or state.kernel.launch is None:
            problems = self._board.files[state.kernel.path].problems
            raise Unavailable(
                f"{state.id} cannot be gated: {problems[0]}"
                if problems
                else f"{state.id} has no workload that says how to call it; see docs/workloads.md"
            )

    def _work(
        self,
        baseline: Kernel,
        candidate: Candidate,
        workload: Workload,
        platform: Platform,
        tier: Tier,
    ) -> Callable[[threading.Event, Callable[[str], None]], Verdict]:
        def work(stop: threading.Event, step: Callable[[str], None]) -> Verdict:
            return self._gate.evaluate(
                baseline, candidate, workload, platform, tier, Budget(), stop, step
            )

        return work

    # ---- answers -------------------------------------------------------------------------------

    async def _answer(self, job: Job, state: KernelState) -> Any:
        """The job's result. Raises Stale if it was stopped, or the gate's failure as a refusal."""
        try:
            return await asyncio.shield(job.done)
        except Superseded as error:
            raise Stale(f"{state.id} was not gated: {error}") from error
        except GateError as error:
            raise refusal(error) from error

    def _ended(self, suggestion: Suggestion, state: KernelState, done: Done) -> None:
        """A suggestion's job is over, well or not."""
        error = done.exception()
        if error is None:
            self._record(suggestion, state, done.result())
            return
        present = self._board.suggestion(suggestion.id)
        if present is None:
            return
        present = self._settling.settle(present, self._board.kernels[present.kernel])
        if present.verdict is None and not isinstance(error, Superseded):
            present = replace(present, reason=f"not gated: {error}")
        self._show(present)

    def _record(self, suggestion: Suggestion, state: KernelState, verdict: Verdict) -> None:
        """Keep a verdict for this basis, and show it where the kernel still has that."""
        self._trials.of_verdict(suggestion, state, verdict)
        key = suggestion.after_closure, state.basis.workload
        kept = self._put(replace(verdict, candidate=key[0], workload=key[1]))
        present = self._board.suggestion(suggestion.id)
        if present is None:
            return
        now = self._board.kernels[present.kernel]
        if now.basis != state.basis:
            return
        # From the journal, so that a screening does not hide a confirmation.
        self._show(
            self._settling.settle(present, now)
            if kept
            else with_verdict(present, verdict, self._trials.now())
        )

    def _keep(self, done: Done) -> None:
        """A kernel's own job is over."""
        if done.exception() is None:
            self._put(done.result())

    def _put(self, verdict: Verdict) -> bool:
        """Write a verdict down; False, and a message, where that cannot be."""
        try:
            self._journal.verdicts.put(verdict)
        except RpcError as error:
            # It was measured and is shown; a restart will measure it again.
            self._publisher.message("warning", f"a verdict is not kept: {error}")
            return False
        return True

    def _show(self, suggestion: Suggestion) -> None:
        before = [s.id for s in self._board.kernels[suggestion.kernel].suggestions]
        state = self._board.update(suggestion)
        self._publisher.suggestion(suggestion)
        if [s.id for s in state.suggestions] != before:
            self._publisher.kernel(state.id)

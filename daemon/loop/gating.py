"""Gating: what the device is asked about a kernel, in which order, and what its answers mean.

One task a kernel and closure: ask the device what it is, trace a launch, screen everything that
applies, confirm the best. A newer save has another closure: the task's jobs are cancelled, it ends.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace

from daemon.errors import NotFound, RpcError, Stale, Unavailable, Untrusted
from daemon.journal import Journal
from daemon.loop.board import Board, KernelState, Suggestion
from daemon.loop.gate_queue import GateQueue, Job, Priority, Superseded
from daemon.loop.publishing import Publisher
from daemon.loop.trials import Trials
from gate.errors import EnvironmentLacks, GateError
from gate.evaluate import Budget, Gate
from gate.values.candidate import Candidate
from gate.values.kernel import Kernel, Language
from gate.values.platform import Platform
from gate.values.trace import LaunchTrace
from gate.values.verdict import Status, Tier, Verdict
from gate.values.workload import Workload

log = logging.getLogger(__name__)

Relook = Callable[[Iterable[str]], Awaitable[None]]
"""Rank the suggestions of these files again, with what is now known of devices and launches."""


@dataclass(eq=False, slots=True)
class Course:
    """The work under way for one kernel as it is."""

    closure: str
    task: asyncio.Task[None] | None = None
    screened: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when nothing more will be screened, whatever the reason."""


class Gating:
    """Asks the gate, and puts its answers on the board."""

    def __init__(
        self,
        gate: Gate,
        queue: GateQueue,
        board: Board,
        publisher: Publisher,
        journal: Journal,
        trials: Trials,
        tasks: asyncio.TaskGroup,
        trusted: Callable[[], bool],
        relook: Relook,
    ) -> None:
        self._gate = gate
        self._queue = queue
        self._board = board
        self._publisher = publisher
        self._journal = journal
        self._trials = trials
        self._tasks = tasks
        self._trusted = trusted
        self._relook = relook
        self._courses: dict[str, Course] = {}
        self._obstacles: dict[str, str] = {}
        self._probes: dict[Language, asyncio.Task[None]] = {}
        self.platforms: dict[Language, Platform] = {}
        self.lacking: dict[Language, str] = {}
        """Languages no device could be asked for, with what would fix it."""

    # ---- what is wanted ------------------------------------------------------------------------

    def probe(self, language: Language) -> None:
        """Ask the language's device what it is, once. Runs nothing of the repository."""
        if language not in self._probes:
            self._probes[language] = self._tasks.create_task(self._probe(language))

    def want(self, id: str) -> Course | None:
        """Screen what applies to a kernel and confirm the best. None if it cannot be gated."""
        state = self._board.kernels.get(id)
        if (
            state is None
            or not self._trusted()
            or state.workload is None
            or not state.kernel.launch
        ):
            return None
        course = self._courses.get(id)
        if course is not None and course.closure == state.kernel.closure and not _ended(course):
            return course
        course = Course(state.kernel.closure)
        self._courses[id] = course
        course.task = self._tasks.create_task(self._follow(id, course), name=f"gating {id}")
        return course

    def drop_stale(self) -> None:
        """Cancel what is queued or running for closures no kernel has any more."""
        present = self._board.closures()
        self._queue.cancel(
            lambda job: bool(job.closure) and job.closure not in present,
            "superseded by a newer save",
        )
        self._courses = {
            id: course for id, course in self._courses.items() if id in self._board.kernels
        }

    async def until_screened(self, ids: Iterable[str]) -> None:
        """Wait until nothing of these kernels is left to screen."""
        for id in ids:
            while (course := self.want(id)) is not None and not course.screened.is_set():
                await course.screened.wait()
                current = self._board.kernels.get(id)
                if current is not None and current.kernel.closure == course.closure:
                    break

    def close(self) -> None:
        """Stop everything; jobs end as interrupted, and are marked so by the queue."""
        for task in (*(c.task for c in self._courses.values()), *self._probes.values()):
            if task is not None:
                task.cancel()

    # ---- settling: what is known already -------------------------------------------------------

    def settle(self, suggestion: Suggestion, state: KernelState) -> Suggestion:
        """A fresh suggestion with what the journal and the queue know of it."""
        rejection = self._journal.rejections.get(suggestion.id)
        if rejection is not None:
            return replace(suggestion, stage="rejected", reason=f"rejected: {rejection.reason}")
        if suggestion.candidate is None or state.workload is None:
            return suggestion
        known = self._known_verdict(suggestion, state)
        if known is not None:
            suggestion = _with_verdict(suggestion, known[1], known[0])
        for tier, stage in (("confirm", "confirming"), ("screen", "screening")):
            job = self._queue.find(suggestion.id, tier)
            if job is not None and job.state == "running":
                return replace(suggestion, stage=stage)  # type: ignore[arg-type]
        if known is None:
            return replace(suggestion, reason=self._obstacle(state))
        return suggestion

    def traces_of(self, kernel: Kernel, workload: Workload | None) -> tuple[LaunchTrace, ...]:
        """Launches of this closure that were traced on the present device, if any."""
        platform = self.platforms.get(kernel.language)
        if workload is None or platform is None:
            return ()
        return self._journal.traces.get(kernel.closure, workload.digest, platform.name) or ()

    def _known_verdict(
        self, suggestion: Suggestion, state: KernelState
    ) -> tuple[str, Verdict] | None:
        platform = self.platforms.get(state.kernel.language)
        if platform is None or state.workload is None:
            return None
        for tier in (Tier.ADMIT, Tier.CONFIRM, Tier.SCREEN):
            known = self._journal.verdicts.newest(
                state.kernel.closure,
                suggestion.after_closure,
                state.workload.digest,
                platform.name,
                tier,
            )
            if known is not None:
                return known
        return None

    def _obstacle(self, state: KernelState) -> str:
        """Why a kernel's suggestions are not measured; empty if they are about to be."""
        if state.workload is None or state.kernel.launch is None:
            return "not gated: no workload says how to call this kernel (docs/workloads.md)"
        if not self._trusted():
            return "not gated: this worktree is not trusted yet"
        if state.kernel.language in self.lacking:
            return f"not gated: {self.lacking[state.kernel.language]}"
        return self._obstacles.get(state.kernel.closure, "")

    # ---- the course of one kernel --------------------------------------------------------------

    async def _follow(self, id: str, course: Course) -> None:
        try:
            await self._prepare(id, course)
            state = self._present(id, course)
            waiting = [s for s in state.suggestions if s.stage == "queued"]
            await asyncio.gather(*(self._screen(s.id, order) for order, s in enumerate(waiting)))
            course.screened.set()
            best = next(iter(self._present(id, course).suggestions), None)
            if best is not None and best.stage == "screened" and _is_faster(best.verdict):
                await self.confirm(best.id, Priority.CONFIRM)
        except (Superseded, Stale):
            log.debug("%s changed; its gating ends", id)
        except RpcError as error:
            self._hinder(id, course, error.message)
        except GateError as error:
            self._hinder(id, course, str(error))
        except Exception as error:
            # Our own failure on one kernel must not end the daemon for all others.
            log.exception("gating %s failed", id)
            self._hinder(id, course, f"{error!r}; the daemon's log has more")
        finally:
            course.screened.set()

    def _hinder(self, id: str, course: Course, why: str) -> None:
        """Say why a kernel is not measured, once, on the kernel and to the person."""
        self._obstacles[course.closure] = f"not gated: {why}"
        state = self._board.kernels.get(id)
        if state is None or state.kernel.closure != course.closure:
            return
        self._publisher.message("warning", f"{id}: {why}")
        for suggestion in state.suggestions:
            if suggestion.stage == "queued":
                self._board.update(replace(suggestion, reason=self._obstacles[course.closure]))
        self._publisher.kernel(id)

    async def _prepare(self, id: str, course: Course) -> None:
        """Know the device and what a launch passes, so that facts about both are known."""
        state = self._present(id, course)
        language = state.kernel.language
        self.probe(language)
        await asyncio.shield(self._probes[language])
        if language not in self.platforms:
            raise Unavailable(self.lacking[language])
        state = self._present(id, course)
        workload = state.workload
        if state.traced or workload is None:
            return
        kernel = state.kernel

        def work(stop: threading.Event, step: Callable[[str], None]) -> tuple[LaunchTrace, ...]:
            return self._gate.trace(kernel, workload, stop, step)

        job = self._queue.submit(id, kernel.closure, "trace", Priority.TRACE, work)
        traces: tuple[LaunchTrace, ...] = await job.done
        platform = self.platforms[language].name
        self._journal.traces.put(kernel.closure, workload.digest, platform, traces)
        await self._relook([kernel.path])

    def _present(self, id: str, course: Course) -> KernelState:
        state = self._board.kernels.get(id)
        if state is None or state.kernel.closure != course.closure:
            raise Superseded("superseded by a newer save")
        return state

    async def _screen(self, id: str, order: int) -> None:
        try:
            await self.evaluate(id, Tier.SCREEN, Priority.SCREEN, order)
        except GateError as error:
            # Our machine failed on one candidate; the others may still be screened.
            self._publisher.message("warning", f"screening {id}: {error}")

    async def _probe(self, language: Language) -> None:
        def work(stop: threading.Event, step: Callable[[str], None]) -> Platform:
            step(f"asking the {language} device what it is")
            return self._gate.platform(language)

        try:
            self.platforms[language] = await self._queue.submit(
                language.value, "", "probe", Priority.TRACE, work
            ).done
        except EnvironmentLacks as error:
            self.lacking[language] = str(error)
            self._publisher.message("warning", f"{language} kernels are shown, not gated: {error}")
        except GateError as error:
            self.lacking[language] = str(error)
            self._publisher.message("error", f"asking the {language} device failed: {error}")
        except Superseded:
            return
        except Exception as error:
            log.exception("asking the %s device failed", language)
            self.lacking[language] = f"{error!r}; the daemon's log has more"
        paths = {
            state.kernel.path
            for state in self._board.kernels.values()
            if state.kernel.language is language
        }
        await self._relook(sorted(paths))

    # ---- single evaluations --------------------------------------------------------------------

    async def confirm(self, id: str, priority: Priority = Priority.ASKED) -> Verdict:
        """Confirm a suggestion: fresh processes, fresh seeds, an interval. Raises Stale if the
        kernel changes meanwhile."""
        return await self.evaluate(id, Tier.CONFIRM, priority)

    async def evaluate(self, id: str, tier: Tier, priority: Priority, order: int = 0) -> Verdict:
        """Gate one suggestion and put the verdict on the board, in the journal and in evidence."""
        suggestion, state = self._suggestion(id)
        candidate, workload = suggestion.candidate, state.workload
        if candidate is None:
            raise Unavailable(f"{suggestion.offer.entry.card.skill_id}: {suggestion.reason}")
        platform = await self._ready(state)
        assert workload is not None
        work = self._work(state.kernel, candidate, workload, platform, tier)
        job = self._queue.submit(id, state.kernel.closure, tier.value, priority, work, order)
        try:
            verdict: Verdict = await asyncio.shield(job.done)
        except Superseded as error:
            if (present := self._board.suggestion(id)) is not None:
                self._show(self.settle(replace(present, stage="queued", verdict=None), state))
            raise Stale(f"{state.id} changed while it was gated; look at it again") from error
        self._record(id, verdict)
        return verdict

    async def evaluate_kernel(
        self, state: KernelState, baseline: Kernel, candidate: Candidate, tier: Tier
    ) -> Verdict:
        """Gate a kernel as it stands, or against an earlier state of it."""
        platform = await self._ready(state)
        assert state.workload is not None
        # The workload as the baseline knew it: a chain of changes may have edited its launch.
        path = state.workload.path
        files = {file.path: file.data for file in baseline.files}
        workload = Workload(path, files.get(path, state.workload.data))
        work = self._work(baseline, candidate, workload, platform, tier)
        subject = f"{state.id}@{baseline.closure[:12]}"
        job = self._queue.submit(subject, state.kernel.closure, tier.value, Priority.ASKED, work)
        try:
            verdict: Verdict = await asyncio.shield(job.done)
        except Superseded as error:
            raise Stale(f"{state.id} changed while it was gated; look at it again") from error
        self._journal.verdicts.put(verdict)
        return verdict

    async def _ready(self, state: KernelState) -> Platform:
        """The device to gate on. Raises what stands in the way."""
        if not self._trusted():
            raise Untrusted(
                "this worktree is not trusted, so nothing of it is run; "
                "answer the question in the window once"
            )
        if state.workload is None or state.kernel.launch is None:
            raise Unavailable(
                f"{state.id} has no workload that says how to call it; see docs/workloads.md"
            )
        language = state.kernel.language
        self.probe(language)
        await asyncio.shield(self._probes[language])
        if language not in self.platforms:
            raise Unavailable(self.lacking[language])
        return self.platforms[language]

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

    def _suggestion(self, id: str) -> tuple[Suggestion, KernelState]:
        suggestion = self._board.suggestion(id)
        if suggestion is None:
            raise NotFound(
                f"no suggestion {id}; `klineage suggest` lists those of the code as it is"
            )
        return suggestion, self._board.kernels[suggestion.kernel]

    def _record(self, id: str, verdict: Verdict) -> None:
        suggestion = self._board.suggestion(id)
        if suggestion is None:
            return
        state = self._board.kernels[suggestion.kernel]
        self._journal.verdicts.put(replace(verdict, candidate=suggestion.after_closure))
        self._trials.of_verdict(suggestion, state, verdict)
        self._show(_with_verdict(suggestion, verdict, self._trials.now()))

    def _show(self, suggestion: Suggestion) -> None:
        before = [s.id for s in self._board.kernels[suggestion.kernel].suggestions]
        state = self._board.update(suggestion)
        self._publisher.suggestion(suggestion)
        if [s.id for s in state.suggestions] != before:
            self._publisher.kernel(state.id)

    def job_changed(self, job: Job) -> None:
        """A job moved on: show it, and its suggestion's stage with it."""
        self._publisher.job(job)
        stage = {"screen": "screening", "confirm": "confirming", "admit": "confirming"}.get(
            job.tier
        )
        suggestion = self._board.suggestion(job.subject)
        if job.state == "running" and stage and suggestion and suggestion.stage != stage:
            self._show(replace(suggestion, stage=stage))  # type: ignore[arg-type]


def _ended(course: Course) -> bool:
    return course.task is not None and course.task.done()


def _is_faster(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.status is Status.FASTER


def _with_verdict(suggestion: Suggestion, verdict: Verdict, at: str) -> Suggestion:
    stage = "screened" if verdict.tier is Tier.SCREEN else "confirmed"
    return replace(
        suggestion,
        stage=stage,  # type: ignore[arg-type]
        verdict=verdict,
        verdict_at=at,
        reason=verdict.message,
    )

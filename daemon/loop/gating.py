"""Gating: what the device is asked about a kernel unasked, and in which order.

One task a kernel and basis: ask the device what it is, trace a launch, screen everything that
applies, confirm the best. A newer save has another basis: the task's jobs are cancelled, it ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from daemon.errors import NotFound, RpcError, Stale, Unavailable
from daemon.loop.board import Basis, Board, KernelState
from daemon.loop.devices import Devices
from daemon.loop.evaluating import Evaluating
from daemon.loop.gate_queue import SUPERSEDED, GateQueue, Priority
from daemon.loop.publishing import Publisher
from daemon.loop.settling import Settling
from gate.values.verdict import Tier

log = logging.getLogger(__name__)

Relook = Callable[[Iterable[str]], Awaitable[None]]
"""Rank the suggestions of these files again, with what is now known of devices and launches."""


@dataclass(eq=False, slots=True)
class Course:
    """The work under way for one kernel as it is."""

    basis: Basis
    task: asyncio.Task[None] | None = None
    screened: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when nothing more will be screened, whatever the reason."""
    awaited: bool = False
    """Whether a person waits for it."""
    saved: bool = False
    """Whether it is what a person is working on, and not merely found."""

    def priority(self, otherwise: Priority) -> Priority:
        """What its jobs go by."""
        if self.awaited:
            return Priority.ASKED
        return Priority.SAVED if self.saved else otherwise


class Gating:
    """Decides what is gated of the kernels on the board."""

    def __init__(
        self,
        evaluating: Evaluating,
        devices: Devices,
        settling: Settling,
        queue: GateQueue,
        board: Board,
        publisher: Publisher,
        tasks: asyncio.TaskGroup,
        trusted: Callable[[], bool],
        relook: Relook,
    ) -> None:
        self._evaluating = evaluating
        self._devices = devices
        self._settling = settling
        self._queue = queue
        self._board = board
        self._publisher = publisher
        self._tasks = tasks
        self._trusted = trusted
        self._relook = relook
        self._courses: dict[str, Course] = {}

    def want(self, id: str, saved: bool = False) -> Course | None:
        """Screen what applies to a kernel and confirm the best. None if it cannot be gated.

        `saved`: a person is working on it, so it goes before kernels that were merely found.

        Asking again while that is under way changes nothing; afterwards, it tries again what failed.
        """
        state = self._board.kernels.get(id)
        if (
            state is None
            or not self._trusted()
            or state.workload is None
            or not state.kernel.launch
            or state.kernel.language in self._devices.lacking
        ):
            return None
        course = self._courses.get(id)
        if course is not None and course.basis == state.basis and not _ended(course):
            return course
        course = Course(state.basis, saved=saved)
        self._courses[id] = course
        course.task = self._tasks.create_task(self._follow(id, course), name=f"gating {id}")
        return course

    def drop_stale(self) -> None:
        """Cancel what is queued or running for a basis that no kernel has any more."""
        present = self._board.bases()
        self._queue.cancel(
            lambda job: bool(job.basis.closure) and job.basis not in present, SUPERSEDED
        )
        self._courses = {
            id: course
            for id, course in self._courses.items()
            if id in self._board.kernels or not _ended(course)
        }

    def halt(self, why: str) -> None:
        """Cancel everything that runs code of the repository."""
        self._queue.cancel(lambda job: bool(job.basis.closure), why)

    async def until_screened(self, ids: Iterable[str]) -> None:
        """Wait until nothing of these kernels is left to screen. They go before all others."""
        for id in ids:
            while (course := self.want(id)) is not None and not course.screened.is_set():
                course.awaited = True
                self._queue.hasten({id, *(s.id for s in self._board.kernels[id].suggestions)})
                await course.screened.wait()
                current = self._board.kernels.get(id)
                if current is not None and current.basis == course.basis:
                    break

    def close(self) -> None:
        """Stop everything; jobs end as interrupted, and are marked so by the queue."""
        self._devices.close()
        for course in self._courses.values():
            if course.task is not None:
                course.task.cancel()

    # ---- the course of one kernel --------------------------------------------------------------

    async def _follow(self, id: str, course: Course) -> None:
        try:
            self._settling.clear(course.basis)
            if not await self._has_device(self._present(id, course)):
                return  # said once, where it was asked
            state = await self._prepare(id, course)
            waiting = [s.id for s in state.suggestions if s.stage == "queued"]
            priority = course.priority(otherwise=Priority.SCREEN)
            await asyncio.gather(*(self._screen(s, priority, n) for n, s in enumerate(waiting)))
            course.screened.set()
            best = next(iter(self._present(id, course).suggestions), None)
            if best is not None and best.stage == "screened" and best.is_faster:
                await self._evaluating.suggestion(best.id, Tier.CONFIRM, Priority.CONFIRM)
        except (Stale, NotFound) as error:
            log.debug("the gating of %s ends: %s", id, error)
        except RpcError as error:
            self._hinder(id, course, error.message)
        except Exception as error:
            # Our own failure on one kernel must not end the daemon for all others.
            log.exception("gating %s failed", id)
            self._hinder(id, course, f"{error!r}; the daemon's log has more")
        finally:
            course.screened.set()

    async def _has_device(self, state: KernelState) -> bool:
        try:
            await self._devices.of(state.kernel.language)
        except Unavailable:
            return False
        return True

    async def _prepare(self, id: str, course: Course) -> KernelState:
        """The kernel, ranked with what its launches pass."""
        state = self._present(id, course)
        if not state.traced:
            await self._evaluating.trace(state, course.priority(otherwise=Priority.TRACE))
            await self._relook([state.kernel.path])
        return self._present(id, course)

    async def _screen(self, id: str, priority: Priority, order: int) -> None:
        try:
            await self._evaluating.suggestion(id, Tier.SCREEN, priority, order)
        except RpcError as error:
            # It is on the suggestion; the others may still be screened.
            log.info("screening %s: %s", id, error)
        except Exception as error:
            log.exception("screening %s failed", id)
            self._publisher.message(
                "error", f"screening {id} failed: {error!r}; the daemon's log has more"
            )

    def _present(self, id: str, course: Course) -> KernelState:
        state = self._board.kernels.get(id)
        if state is None or state.basis != course.basis:
            raise Stale(SUPERSEDED)
        return state

    def _hinder(self, id: str, course: Course, why: str) -> None:
        """Say why a kernel is not measured, once, on the kernel and to the person."""
        self._settling.hinder(course.basis, why)
        state = self._board.kernels.get(id)
        if state is None or state.basis != course.basis:
            return
        self._publisher.message("warning", f"{id}: {why}")
        for suggestion in state.suggestions:
            self._board.update(self._settling.settle(suggestion, state))
        self._publisher.kernel(id)


def _ended(course: Course) -> bool:
    return course.task is not None and course.task.done()

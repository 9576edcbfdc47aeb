"""GateQueue: jobs for the device, one at a time, the most wanted first."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

from daemon.errors import RpcError
from daemon.journal_jobs import Ended, JobLog
from daemon.loop.board import Basis

log = logging.getLogger(__name__)

Work = Callable[[threading.Event, Callable[[str], None]], Any]
"""Blocking work: gets a stop event to watch and a place to report its steps; runs in a thread."""

Done = asyncio.Future[Any]
"""Of a job: everyone who awaits it shields it, so that one who leaves does not end it for others."""

State = Literal["queued", "running"] | Ended

SUPERSEDED = "it was superseded by a newer save"


class Priority(IntEnum):
    """What goes first on the device."""

    ASKED = 0
    """A person waits for it."""
    SAVED = 1
    """Of a kernel a person is working on: saved, applied or undone a moment ago."""
    TRACE = 2
    SCREEN = 3
    CONFIRM = 4
    """The best of a kernel's screened suggestions, confirmed ahead of being asked."""


class Superseded(Exception):
    """The job was cancelled, and why: it was our word, never the kernel's fault."""


@dataclass(eq=False, slots=True)
class Job:
    """One piece of work and who it is for."""

    id: str
    subject: str
    """Suggestion id, or kernel id for a trace or a kernel gated alone."""
    basis: Basis
    """What it was made for; it is cancelled when no kernel has that basis any more."""
    tier: str
    priority: Priority
    work: Work
    done: Done
    order: int = 0
    """Within one priority: smaller first."""
    stop: threading.Event = field(default_factory=threading.Event)
    why_stopped: str = ""
    gives_way: bool = False
    """Stopped only to let one through that a person waits for; it is queued again."""
    state: State = "queued"
    step: str = ""
    record: int | None = None
    """Its number in the journal, once it runs."""


class GateQueue:
    """Runs jobs in one thread. All methods are called from the event loop's thread."""

    def __init__(self, changed: Callable[[Job], None], journal: JobLog) -> None:
        """`changed` is told of every change of a job's state or step, on the event loop; `journal`
        gets what runs, so that a daemon started after a crash can say what was cut off."""
        self._changed = changed
        self._journal = journal
        self._queued: list[Job] = []
        self._running: Job | None = None
        self._wake = asyncio.Event()
        self._ids = itertools.count(1)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The running job, then the queued ones in the order they will run."""
        running = (self._running,) if self._running else ()
        return (*running, *sorted(self._queued, key=_first))

    def find(self, subject: str, tier: str) -> Job | None:
        """The queued or running job of this tier for this subject, if it was not stopped."""
        running = [self._running] if self._running else []
        for job in running + self._queued:
            kept = job.gives_way or not job.stop.is_set()
            if job.subject == subject and job.tier == tier and kept:
                return job
        return None

    def submit(
        self,
        subject: str,
        basis: Basis,
        tier: str,
        priority: Priority,
        work: Work,
        order: int = 0,
        ended: Callable[[Done], None] | None = None,
    ) -> Job:
        """Queue work. The job's `done` gives its result, raises what it raised, or Superseded.

        `ended` is called with `done` once, before anyone who awaits it goes on, whether or not
        anyone does. A job of the same subject, tier and basis is not queued twice: the one that is
        there is moved up if that is sooner, and `ended` is not called.
        """
        job = self.find(subject, tier)
        if job is not None and job.basis == basis:
            job.priority = min(job.priority, priority)
            self._make_way()
            return job
        done: Done = asyncio.get_running_loop().create_future()
        # A job nobody waits for may fail or be superseded: that is reported through `changed`,
        # and asyncio need not complain about an exception that was never retrieved.
        done.add_done_callback(lambda future: future.cancelled() or future.exception())
        if ended is not None:
            done.add_done_callback(ended)
        job = Job(f"job-{next(self._ids)}", subject, basis, tier, priority, work, done, order)
        self._queued.append(job)
        self._changed(job)
        self._wake.set()
        self._make_way()
        return job

    def hasten(self, subjects: Collection[str]) -> None:
        """Move what is queued for these up: a person waits for it now."""
        for job in self._queued:
            if job.subject in subjects:
                job.priority = Priority.ASKED
        self._make_way()

    def _make_way(self) -> None:
        """Stop what nobody asked for while somebody's own work waits; it is queued again."""
        running = self._running
        if running is None or running.priority < Priority.SCREEN or running.stop.is_set():
            return
        if any(job.priority <= Priority.SAVED for job in self._queued):
            running.gives_way = True
            running.stop.set()

    def cancel(self, stale: Callable[[Job], bool], why: str) -> None:
        """Drop queued jobs and stop the running one where `stale` says so."""
        for job in [job for job in self._queued if stale(job)]:
            self._queued.remove(job)
            self._finish(job, "cancelled", Superseded(why))
        running = self._running
        if running is not None and not running.stop.is_set() and stale(running):
            running.why_stopped = why
            running.stop.set()
        elif running is not None and running.gives_way and stale(running):
            running.gives_way = False
            running.why_stopped = why

    async def run(self) -> None:
        """Work until cancelled; the running job is stopped and waited for before that returns."""
        loop = asyncio.get_running_loop()
        try:
            with ThreadPoolExecutor(1, "gate") as thread:
                while True:
                    while not self._queued:
                        self._wake.clear()
                        await self._wake.wait()
                    await self._run(min(self._queued, key=_first), loop, thread)
        finally:
            for job in self._queued:
                self._finish(job, "interrupted", Superseded("the daemon is closing"))
            self._queued.clear()

    async def _run(
        self, job: Job, loop: asyncio.AbstractEventLoop, thread: ThreadPoolExecutor
    ) -> None:
        def step(text: str) -> None:
            loop.call_soon_threadsafe(self._step, job, text)

        self._queued.remove(job)
        self._running = job
        job.state = "running"
        job.record = self._begin(job)
        self._changed(job)
        working = loop.run_in_executor(thread, job.work, job.stop, step)
        try:
            result = await asyncio.shield(working)
        except asyncio.CancelledError:
            # The daemon is closing. A thread cannot be cancelled: ask it to stop, and wait, so
            # that no worker process outlives us.
            job.stop.set()
            await asyncio.wait([working])
            working.exception()
            self._finish(job, "interrupted", Superseded("the daemon is closing"))
            raise
        except Exception as error:
            if job.gives_way:
                self._queue_again(job)
            elif job.stop.is_set():
                self._finish(job, "cancelled", Superseded(job.why_stopped))
            else:
                self._finish(job, "failed", error)
        else:
            job.done.set_result(result)
            self._end(job, "done", "")
        finally:
            self._running = None

    def _queue_again(self, job: Job) -> None:
        self._end(job, "cancelled", "gave way to what a person waits for")
        job.gives_way = False
        job.stop = threading.Event()
        job.state, job.step, job.record = "queued", "", None
        self._queued.append(job)
        self._changed(job)

    def _step(self, job: Job, text: str) -> None:
        if job.state == "running":
            job.step = text
            self._changed(job)

    def _finish(self, job: Job, state: Ended, error: BaseException) -> None:
        job.done.set_exception(error)
        self._end(job, state, str(error))

    def _begin(self, job: Job) -> int | None:
        """Its number in the journal; None where it could not be written down."""
        try:
            return self._journal.begin(job.subject, job.basis.closure, job.tier)
        except RpcError as error:
            # A full disk must not stop the gate; only a crash now could not be told of later.
            log.warning("%s", error)
            return None

    def _end(self, job: Job, state: Ended, step: str) -> None:
        job.state, job.step = state, step
        if job.record is not None:
            try:
                self._journal.end(job.record, state, step)
            except RpcError as error:
                log.warning("%s", error)
        self._changed(job)


def _first(job: Job) -> tuple[int, int]:
    return job.priority, job.order

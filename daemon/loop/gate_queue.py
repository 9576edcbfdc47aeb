"""GateQueue: jobs for the device, one at a time, the most wanted first."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

Work = Callable[[threading.Event, Callable[[str], None]], Any]
"""Blocking work: gets a stop event to watch and a place to report its steps; runs in a thread."""


class Priority(IntEnum):
    """What goes first on the device."""

    ASKED = 0
    """A person waits for it."""
    TRACE = 1
    SCREEN = 2
    CONFIRM = 3
    """The best of a kernel's screened suggestions, confirmed ahead of being asked."""


class Superseded(Exception):
    """The job was cancelled: what it was about has changed. Our word, never the kernel's fault."""


@dataclass(eq=False, slots=True)
class Job:
    """One piece of work and who it is for."""

    id: str
    subject: str
    """Suggestion id, or kernel id for a trace or a kernel gated alone."""
    closure: str
    """Closure digest it was made for; it is cancelled when no kernel has that closure any more."""
    tier: str
    priority: Priority
    work: Work
    done: asyncio.Future[Any]
    order: int = 0
    """Within one priority: smaller first."""
    stop: threading.Event = field(default_factory=threading.Event)
    state: str = "queued"
    step: str = ""


class GateQueue:
    """Runs jobs in one thread. All methods are called from the event loop's thread."""

    def __init__(self, changed: Callable[[Job], None]) -> None:
        """`changed` is told of every change of a job's state or step, on the event loop."""
        self._changed = changed
        self._queued: list[Job] = []
        self._running: Job | None = None
        self._wake = asyncio.Event()
        self._ids = itertools.count(1)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The running job, then the queued ones in the order they will run."""
        running = (self._running,) if self._running else ()
        return (*running, *sorted(self._queued, key=lambda job: (job.priority, job.order)))

    def find(self, subject: str, tier: str) -> Job | None:
        """The queued or running job of this tier for this subject, if it was not stopped."""
        for job in self.jobs:
            if job.subject == subject and job.tier == tier and not job.stop.is_set():
                return job
        return None

    def submit(
        self, subject: str, closure: str, tier: str, priority: Priority, work: Work, order: int = 0
    ) -> Job:
        """Queue work. The job's `done` gives its result, raises what it raised, or Superseded.

        A job of the same subject and tier is not queued twice: it is moved up if that is sooner.
        """
        job = self.find(subject, tier)
        if job is not None and job.closure == closure:
            job.priority = min(job.priority, priority)
            return job
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # A job nobody waits for may fail or be superseded: that is reported through `changed`,
        # and asyncio need not complain about an exception that was never retrieved.
        done.add_done_callback(lambda future: future.cancelled() or future.exception())
        job = Job(f"job-{next(self._ids)}", subject, closure, tier, priority, work, done, order)
        self._queued.append(job)
        self._changed(job)
        self._wake.set()
        return job

    def cancel(self, stale: Callable[[Job], bool], why: str) -> None:
        """Drop queued jobs and stop the running one where `stale` says so."""
        for job in [job for job in self._queued if stale(job)]:
            self._queued.remove(job)
            self._finish(job, "cancelled", Superseded(why))
        if self._running is not None and stale(self._running):
            self._running.stop.set()

    async def run(self) -> None:
        """Work until cancelled; the running job is stopped and waited for before that returns."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "gate") as thread:
            while True:
                while not self._queued:
                    self._wake.clear()
                    await self._wake.wait()
                job = min(self._queued, key=lambda job: (job.priority, job.order))
                self._queued.remove(job)
                self._running = job
                job.state = "running"
                self._changed(job)
                try:
                    await self._run(job, loop, thread)
                finally:
                    self._running = None

    async def _run(
        self, job: Job, loop: asyncio.AbstractEventLoop, thread: ThreadPoolExecutor
    ) -> None:
        def step(text: str) -> None:
            loop.call_soon_threadsafe(self._step, job, text)

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
            if job.stop.is_set():
                self._finish(job, "cancelled", Superseded("superseded by a newer save"))
            else:
                self._finish(job, "failed", error)
        else:
            job.state = "done"
            job.step = ""
            if not job.done.done():
                job.done.set_result(result)
            self._changed(job)

    def _step(self, job: Job, text: str) -> None:
        if job.state == "running":
            job.step = text
            self._changed(job)

    def _finish(self, job: Job, state: str, error: BaseException) -> None:
        job.state = state
        job.step = str(error)
        if not job.done.done():
            job.done.set_exception(error)
        self._changed(job)

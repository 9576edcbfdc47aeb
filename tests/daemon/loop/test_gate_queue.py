"""The queue of the device, with a real thread and a real journal."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from daemon.journal import Journal
from daemon.loop.board import Basis
from daemon.loop.gate_queue import GateQueue, Job, Priority, Superseded
from gate.errors import Cancelled

BASIS = Basis("c" * 64, "w" * 64)


@dataclass
class Device:
    """A queue that runs, with everything it told."""

    queue: GateQueue
    journal: Journal
    running: asyncio.Task[None]
    told: list[tuple[str, str, str]] = field(default_factory=list)
    """(subject, state, step) of each change."""
    order: list[str] = field(default_factory=list)
    """Subjects as their work began."""
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def submit(
        self,
        subject: str,
        priority: Priority = Priority.SCREEN,
        *,
        tier: str = "screen",
        basis: Basis = BASIS,
        order: int = 0,
        until: threading.Event | None = None,
        error: Exception | None = None,
        ended: Callable[[asyncio.Future[Any]], None] | None = None,
    ) -> Job:
        """Work that notes its start, waits for `until` (or its stop), and fails or gives its name."""

        def work(stop: threading.Event, step: Callable[[str], None]) -> str:
            self.order.append(subject)
            step(f"at {subject}")
            while until is not None and not until.is_set():
                if stop.wait(0.002):
                    raise Cancelled("stopped")
            if error is not None:
                raise error
            return subject

        return self.queue.submit(subject, basis, tier, priority, work, order, ended)

    def blocker(self) -> threading.Event:
        """Occupies the device until set, so that what follows queues up."""
        let_go = threading.Event()
        self.submit("blocker", Priority.ASKED, until=let_go)
        return let_go

    async def until_running(self) -> None:
        """Wait until a job runs that is not over."""
        while not any(job.state == "running" for job in self.queue.jobs):
            self.news.clear()
            await self.news.wait()

    async def end(self) -> None:
        self.running.cancel()
        with suppress(asyncio.CancelledError):
            await self.running


@asynccontextmanager
async def device(state: Path) -> AsyncIterator[Device]:
    journal = Journal(state / "journal.db")
    told: list[tuple[str, str, str]] = []
    news = asyncio.Event()

    def changed(job: Job) -> None:
        told.append((job.subject, job.state, job.step))
        news.set()

    queue = GateQueue(changed, journal.jobs)
    made = Device(queue, journal, asyncio.create_task(queue.run()), told, news=news)
    try:
        yield made
    finally:
        await made.end()
        journal.close()


async def test_the_most_wanted_job_runs_next_and_equals_run_in_their_order(tmp_path: Path) -> None:
    async with device(tmp_path) as made:
        let_go = made.blocker()
        jobs = [
            made.submit("confirmed", Priority.CONFIRM),
            made.submit("second", Priority.SCREEN, order=2),
            made.submit("first", Priority.SCREEN, order=1),
            made.submit("traced", Priority.TRACE),
            made.submit("asked", Priority.ASKED),
        ]
        listed = [job.subject for job in made.queue.jobs]
        let_go.set()
        await asyncio.gather(*(job.done for job in jobs))
        wanted = ["asked", "traced", "first", "second", "confirmed"]
        assert made.order == ["blocker", *wanted]
        assert listed[-5:] == wanted


async def test_the_same_subject_and_tier_is_queued_once_and_moved_up(tmp_path: Path) -> None:
    async with device(tmp_path) as made:
        let_go = made.blocker()
        other = made.submit("other", Priority.SCREEN)
        job = made.submit("kernel", Priority.CONFIRM)
        assert made.submit("kernel", Priority.ASKED) is job
        assert made.submit("kernel", Priority.CONFIRM) is job
        assert made.submit("kernel", tier="confirm") is not job
        let_go.set()
        await asyncio.gather(job.done, other.done)
        assert made.order[:3] == ["blocker", "kernel", "other"]


async def test_hastened_jobs_go_before_all_that_nobody_waits_for(tmp_path: Path) -> None:
    async with device(tmp_path) as made:
        let_go = made.blocker()
        jobs = [made.submit("trace", Priority.TRACE), made.submit("screen", Priority.SCREEN)]
        made.queue.hasten({"screen"})
        let_go.set()
        await asyncio.gather(*(job.done for job in jobs))
        assert made.order == ["blocker", "screen", "trace"]


async def test_a_newer_save_drops_what_is_queued_and_stops_what_runs(tmp_path: Path) -> None:
    newer = Basis("n" * 64, "w" * 64)
    async with device(tmp_path) as made:
        never = threading.Event()
        running = made.submit("running", until=never)
        queued = made.submit("queued")
        kept = made.submit("kept", basis=newer)
        await made.until_running()
        made.queue.cancel(lambda job: job.basis != newer, "superseded")
        for job in (running, queued):
            with pytest.raises(Superseded, match="superseded"):
                await job.done
        assert await kept.done == "kept"
        assert running.stop.is_set()
        assert made.order == ["running", "kept"]
        states = {subject: state for subject, state, _ in made.told}
        assert states == {"running": "cancelled", "queued": "cancelled", "kept": "done"}


async def test_a_stopped_job_is_not_taken_for_one_that_is_asked_for_again(tmp_path: Path) -> None:
    async with device(tmp_path) as made:
        stopped = made.submit("kernel", until=threading.Event())
        await made.until_running()
        made.queue.cancel(lambda job: True, "rejected")
        again = made.submit("kernel")
        assert again is not stopped
        assert await again.done == "kernel"


async def test_a_failure_reaches_who_waits_and_the_progress(tmp_path: Path) -> None:
    async with device(tmp_path) as made:
        job = made.submit("kernel", error=RuntimeError("no device"))
        with pytest.raises(RuntimeError, match="no device"):
            await job.done
        assert made.told[-1] == ("kernel", "failed", "no device")
        assert await made.submit("next").done == "next"


async def test_steps_are_told_while_a_job_runs(tmp_path: Path) -> None:
    async with device(tmp_path) as made:
        await made.submit("kernel").done
        assert ("kernel", "running", "at kernel") in made.told


async def test_the_end_of_a_job_is_told_before_anyone_who_waits_goes_on(tmp_path: Path) -> None:
    seen: list[str] = []
    async with device(tmp_path) as made:
        job = made.submit("kernel", ended=lambda done: seen.append(f"ended {done.result()}"))
        await job.done
        seen.append("waiter")
        assert seen == ["ended kernel", "waiter"]


async def test_closing_waits_for_the_thread_and_marks_everything_interrupted(
    tmp_path: Path,
) -> None:
    async with device(tmp_path) as made:
        running = made.submit("running", until=threading.Event())
        queued = made.submit("queued")
        await made.until_running()
        await made.end()
        for job in (running, queued):
            with pytest.raises(Superseded, match="closing"):
                await job.done
        states = {subject: state for subject, state, _ in made.told}
        assert states == {"running": "interrupted", "queued": "interrupted"}
        assert [t.name for t in threading.enumerate() if t.name.startswith("gate")] == []


async def test_the_journal_says_what_ran_and_how_it_ended(tmp_path: Path) -> None:
    async with device(tmp_path) as made:
        await made.submit("good").done
        with pytest.raises(RuntimeError):
            await made.submit("bad", error=RuntimeError("no device")).done
        made.submit("cut off", until=threading.Event())
        await made.until_running()
        await made.end()
        records = {r.subject: (r.closure, r.tier, r.state) for r in made.journal.jobs.newest(9)}
        assert records == {
            "good": (BASIS.closure, "screen", "done"),
            "bad": (BASIS.closure, "screen", "failed"),
            "cut off": (BASIS.closure, "screen", "interrupted"),
        }


async def test_after_a_crash_the_journal_says_what_was_running(tmp_path: Path) -> None:
    never = threading.Event()
    async with device(tmp_path) as made:
        made.submit("0123456789ab", until=never)
        await made.until_running()
        second = Journal(tmp_path / "journal.db")
        try:
            (line,) = second.recover()
        finally:
            second.close()
        assert line == "interrupted: screen of 0123456789ab was running when the daemon ended"


async def test_a_journal_that_cannot_be_written_does_not_stop_the_gate(tmp_path: Path) -> None:
    async with device(tmp_path) as made:
        made.journal.connection.execute("PRAGMA query_only=ON")
        assert await made.submit("kernel").done == "kernel"


async def test_a_confirmation_nobody_asked_for_gives_way_and_runs_again(tmp_path: Path) -> None:
    async with device(tmp_path) as on:
        unasked = on.submit(
            "best", Priority.CONFIRM, tier="confirm", until=(let_go := threading.Event())
        )
        await on.until_running()
        asked = on.submit("wanted", Priority.ASKED, tier="confirm")
        assert await asked.done == "wanted"
        assert not unasked.done.done()
        let_go.set()
        assert await unasked.done == "best"
        assert on.order == ["best", "wanted", "best"]


async def test_a_confirmation_somebody_joined_does_not_give_way(tmp_path: Path) -> None:
    async with device(tmp_path) as on:
        let_go = threading.Event()
        joined = on.submit("best", Priority.CONFIRM, tier="confirm", until=let_go)
        await on.until_running()
        assert on.submit("best", Priority.ASKED, tier="confirm") is joined
        other = on.submit("wanted", Priority.ASKED, tier="confirm")
        let_go.set()
        assert await joined.done == "best"
        assert await other.done == "wanted"
        assert on.order == ["best", "wanted"]


async def test_a_confirmation_that_gives_way_can_still_be_superseded(tmp_path: Path) -> None:
    async with device(tmp_path) as on:
        unasked = on.submit("best", Priority.CONFIRM, tier="confirm", until=threading.Event())
        await on.until_running()
        on.submit("wanted", Priority.ASKED, tier="confirm")
        on.queue.cancel(lambda job: job.subject == "best", "superseded by a newer save")
        with pytest.raises(Superseded, match="a newer save"):
            await unasked.done


async def test_what_was_just_saved_goes_before_what_was_merely_found(tmp_path: Path) -> None:
    async with device(tmp_path) as on:
        unasked = on.submit(
            "best", Priority.CONFIRM, tier="confirm", until=(go := threading.Event())
        )
        await on.until_running()
        found = on.submit("found", Priority.SCREEN)
        saved = on.submit("saved", Priority.SAVED)
        assert await saved.done == "saved"
        go.set()
        await asyncio.gather(found.done, unasked.done)
        assert on.order == ["best", "saved", "found", "best"]


async def test_a_screening_gives_way_to_a_saved_kernel_and_not_to_its_like(tmp_path: Path) -> None:
    async with device(tmp_path) as on:
        found = on.submit("found", Priority.SCREEN, until=(go := threading.Event()))
        await on.until_running()
        other = on.submit("other", Priority.SCREEN, order=-1)
        saved = on.submit("saved", Priority.SAVED)
        assert await saved.done == "saved"
        assert await other.done == "other"
        go.set()
        assert await found.done == "found"
        assert on.order == ["found", "saved", "other", "found"]

"""Supervisor: builds every object of the daemon, once, and keeps them until it is time to end."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import msgspec

from daemon.configuration import Configuration, load_configuration
from daemon.handlers import Handlers
from daemon.handshake import reply
from daemon.idle import IdleTimer
from daemon.instance import Instance
from daemon.journal import Journal
from daemon.journal_database import utc_now
from daemon.log import LogHandler
from daemon.loop.board import Board
from daemon.loop.changing import Changing
from daemon.loop.detecting import Detector
from daemon.loop.devices import Devices
from daemon.loop.evaluating import Evaluating
from daemon.loop.gate_queue import GateQueue, Job
from daemon.loop.gating import Gating
from daemon.loop.loop import Loop
from daemon.loop.publishing import Publisher
from daemon.loop.settling import Settling
from daemon.loop.trials import Trials
from daemon.notices import Notices
from daemon.protocol import Hello, HelloReply
from daemon.runtime_dir import socket_path
from daemon.scratch import scratch_folder
from daemon.server import Server
from daemon.transaction import ChangeLog
from daemon.trust import Trust
from daemon.watcher import Batch, Watcher
from daemon.worktree import journal_path, lock_path, log_path
from gate.evaluate import Gate
from gate.values.kernel import Language
from library.store import Store, places

log = logging.getLogger(__name__)

WARM_S = 300.0
"""Idle workers of the gate keep their device context for this long, then give it back."""


async def serve(root: Path, *, poll: bool = False) -> None:
    """Be the daemon of a worktree until asked to stop, or until nobody needs it.

    `poll` looks for changes at intervals, whatever the configuration says.

    Raises ConfigurationError, Busy if another daemon serves this worktree, IoFailed.
    """
    configuration = load_configuration(root)
    if poll:
        watch = msgspec.structs.replace(configuration.watch, poll=True)
        configuration = replace(configuration, watch=watch)
    with ExitStack() as resources:
        instance = Instance(lock_path(root), socket_path(root))
        resources.callback(instance.release)
        journal = Journal(journal_path(root))
        resources.callback(journal.close)
        scratch = resources.enter_context(scratch_folder(root))
        gate = Gate(root, configuration.gate, scratch)
        resources.callback(gate.close)
        supervisor = Supervisor(root, configuration, journal, gate)
        await supervisor.run()


class Supervisor:
    """The daemon's objects, wired."""

    def __init__(
        self, root: Path, configuration: Configuration, journal: Journal, gate: Gate
    ) -> None:
        self._root = root
        self._configuration = configuration
        self._journal = journal
        self._gate = gate
        self._stop = asyncio.Event()
        self._trust = Trust(root)
        self._notices = Notices(journal.events)
        self._board = Board()
        self._publisher = Publisher(self._notices, self._board)
        self._store = Store(places(root, configuration.library), configuration.library.disabled)
        self._store.load()
        self._watcher = Watcher(root, configuration.watch, on_mode=self._mode_changed)
        self._changes = ChangeLog(journal, root, announce=self._watcher.expect)
        self._queue = GateQueue(self._job_changed, journal.jobs)
        self._idle: IdleTimer
        self._working = ExitStack()
        self._cooling: asyncio.TimerHandle | None = None
        self._recovered: tuple[str, ...] = ()
        self._devices: Devices
        self._evaluating: Evaluating
        self._gating: Gating
        self._handlers: Handlers

    async def run(self) -> None:
        """Serve until stopped."""
        running = asyncio.get_running_loop()
        self._idle = IdleTimer(
            self._configuration.daemon.idle_exit_min * 60,
            lambda: self._end("nobody needed it for a while"),
            running.call_later,
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            running.add_signal_handler(number, self._end, f"received {number.name}")
        self._recovered = (*self._journal.recover(), *self._changes.recover())
        for line in self._recovered:
            log.warning("%s", line)
        async with asyncio.TaskGroup() as tasks:
            loop = self._build(tasks)
            background = [
                tasks.create_task(self._queue.run(), name="gate queue"),
                tasks.create_task(loop.run(), name="ranking"),
                tasks.create_task(self._watcher.run(self._guarded(loop)), name="watcher"),
            ]
            try:
                await self._server.serve(self._stop)
            finally:
                self._idle.cancel()
                for task in background:
                    task.cancel()
                self._gating.close()
                loop.close()

    def _build(self, tasks: asyncio.TaskGroup) -> Loop:
        detector = Detector(self._root, self._configuration.watch.workloads, self._store)
        trials = Trials(self._store, self._publisher, utc_now)

        async def learned(language: Language) -> None:
            self._notices.publish("status.changed", status=self._handlers.status_view())
            await loop.relook_language(language)

        self._devices = Devices(self._gate, self._queue, self._publisher, tasks, learned)
        settling = Settling(self._journal, self._queue, self._devices, lambda: self._trust.trusted)
        loop = Loop(
            self._root,
            self._board,
            detector,
            self._publisher,
            self._devices,
            settling,
            self._configuration.daemon.gate_at_start,
        )
        self._evaluating = Evaluating(
            self._gate,
            self._queue,
            self._board,
            self._publisher,
            self._journal,
            trials,
            self._devices,
            settling,
            lambda: self._trust.trusted,
            loop.ranked,
        )
        self._gating = loop.gating = Gating(
            self._evaluating,
            self._devices,
            settling,
            self._queue,
            self._board,
            self._publisher,
            tasks,
            lambda: self._trust.trusted,
            loop.relook,
        )
        changing = Changing(
            self._changes,
            self._evaluating,
            self._devices,
            self._queue,
            self._board,
            self._publisher,
            self._journal,
            trials,
            loop.refresh,
        )
        self._handlers = Handlers(
            self._root,
            self._configuration,
            self._board,
            loop,
            detector,
            self._devices,
            settling,
            self._evaluating,
            self._gating,
            changing,
            self._changes,
            self._queue,
            self._store,
            self._watcher,
            self._trust,
            self._notices,
            lambda: self._server.clients,
            self._end,
            self._warnings,
        )
        self._server = Server(
            self._root,
            socket_path(self._root),
            self._handlers.by_method(),
            self._hello,
            self._notices,
            presence=self._idle.busy,
        )
        return loop

    def _guarded(self, loop: Loop) -> Callable[[Batch], Awaitable[None]]:
        async def deliver(batch: Batch) -> None:
            try:
                await loop.deliver(batch)
            except Exception as error:
                # One batch that our code cannot take must not end the watching of all others.
                log.exception("a batch of changes was not taken")
                self._publisher.message(
                    "error", f"changes were not taken: {error!r}; the daemon's log has more"
                )

        return deliver

    def _hello(self, said: Hello) -> HelloReply:
        return reply(
            said,
            self._root,
            trusted=self._trust.trusted,
            seq=self._notices.seq,
            warnings=self._warnings(),
        )

    def _warnings(self) -> tuple[str, ...]:
        unread = tuple(str(problem) for problem in self._store.problems)
        lacking = tuple(
            f"{language} kernels are shown, not gated: {why}"
            for language, why in self._devices.lacking.items()
        )
        return (*self._recovered, *lacking, *self._ignored_settings(), *unread)

    def _ignored_settings(self) -> tuple[str, ...]:
        kind = self._configuration.rewriter.kind
        if kind == "none":
            return ()
        return (
            f'[rewriter] kind = "{kind}" has no effect: no rewriter is built in yet, so skills '
            "without a mechanical transform are shown, not made",
        )

    def _mode_changed(self, mode: str) -> None:
        if hasattr(self, "_handlers"):
            self._notices.publish("status.changed", status=self._handlers.status_view())
        log.info("watching: %s", mode)

    def _job_changed(self, job: Job) -> None:
        """Hold off the idle exit while jobs are there; let workers cool when none is."""
        self._evaluating.job_changed(job)
        running = asyncio.get_running_loop()
        if self._cooling is not None:
            self._cooling.cancel()
            self._cooling = None
        self._working.close()
        if any(job.state in ("queued", "running") for job in self._queue.jobs):
            self._working.enter_context(self._idle.busy())
        else:
            self._cooling = running.call_later(
                WARM_S, lambda: running.run_in_executor(None, self._gate.release_idle)
            )

    def _end(self, why: str) -> None:
        if not self._stop.is_set():
            log.info("ending: %s", why)
            self._notices.publish("closing", reason=why)
            self._stop.set()


def configure_log(root: Path, level: str) -> None:
    """Lines to standard error, which the starter points at the worktree's log file."""
    logging.basicConfig(level=level.upper(), handlers=[LogHandler(log_path(root))])
    logging.getLogger("watchdog").setLevel(logging.WARNING)

"""Workers, and the folders they live in: forked or started when needed, all ended at last."""

from __future__ import annotations

import itertools
import logging
import os
import shutil
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from gate.child import Start, started_worker
from gate.environment import worker_environment
from gate.errors import Cancelled, EnvironmentLacks
from gate.fork_server import TICK_S, ForkServer, ServerLost
from gate.settings import GateSettings
from gate.worker_process import WorkerProcess

log = logging.getLogger(__name__)

ATTEMPTS = 2
"""A server that was lost is started once more; then workers are started by themselves."""

NEVER = threading.Event()
"""For what is too short to be stopped."""


class WorkerPool:
    """Starts workers under one scratch folder. Safe to use from several threads.

    Workers of a language are forked by a server that has its runtime imported. Where that cannot
    be, each is started by itself, and `unforked` says why.
    """

    def __init__(self, settings: GateSettings, scratch: Path, own: Mapping[str, str]) -> None:
        """`own` is the environment that workers inherit an allow-list of."""
        self._settings = settings
        self._scratch = scratch
        self._own = dict(own)
        self._numbers = itertools.count(1)
        self._running: list[WorkerProcess] = []
        self._servers: dict[str, ForkServer] = {}
        self._here: dict[str, bool] = {}
        self._preloaded: set[str] = set()
        self.unforked: dict[str, str] = {}
        """Why a language's workers are not forked, by language."""
        # The daemon ends workers from another thread than the one that starts them.
        self._lock = threading.Lock()
        self._serving = threading.Lock()

    @property
    def python(self) -> str:
        """The interpreter that kernels run in."""
        return self._settings.python or sys.executable

    def probe(self) -> WorkerProcess:
        """A worker that looks around; started by itself, so that it meets what a person would."""
        return self._started("probe", "")

    def oracle(self, language: str, stop: threading.Event = NEVER) -> WorkerProcess:
        """A fresh oracle for workloads of a language. Raises EnvironmentLacks, Cancelled."""
        return self._forked("oracle", language, stop)

    def runner(self, language: str, stop: threading.Event = NEVER) -> WorkerProcess:
        """A fresh kernel worker. Raises EnvironmentLacks, Cancelled."""
        return self._forked("runner", language, stop)

    def expect(self, language: str, here: bool) -> None:
        """Say whether a language's launches run on a device `here`, or are interpreted.

        The server then imports what they will need.
        """
        before = self._here.get(language)
        if before is not here:
            self._here[language] = here
            self._preloaded.discard(language)
        if before is not None and before is not here:
            self._forget_server(language, "")

    def end(self, worker: WorkerProcess) -> None:
        """End a worker and remove its folder."""
        worker.end()
        with self._lock:
            if worker in self._running:
                self._running.remove(worker)
        shutil.rmtree(worker.folder, ignore_errors=True)

    def end_all(self) -> None:
        """End every worker and every server there is."""
        with self._lock:
            running = list(self._running)
        for worker in running:
            self.end(worker)
        for language in list(self._servers):
            self._forget_server(language, "")
        self.unforked.clear()

    # ---- starting ---------------------------------------------------------------------------

    def _forked(self, role: str, language: str, stop: threading.Event) -> WorkerProcess:
        """A worker of the language's server; where there can be none, one started by itself."""
        for attempt in range(ATTEMPTS):
            try:
                server = self._server(language, stop)
                if server is None:
                    break
                return self._worker(role, partial(self._fork, server, role, stop))
            except ServerLost as lost:
                log.warning("the server that forks %s workers is gone: %s", language, lost)
                self._forget_server(language, str(lost) if attempt + 1 == ATTEMPTS else "")
        return self._started(role, language)

    def _fork(self, server: ForkServer, role: str, stop: threading.Event, folder: Path) -> Start:
        return server.worker(role, self._environment(folder), folder, stop)

    def _started(self, role: str, language: str) -> WorkerProcess:
        def program(folder: Path) -> Start:
            environment, file_bytes = self._environment(folder), self._settings.file_bytes
            return started_worker(self.python, role, language, environment, folder, file_bytes)

        return self._worker(role, program)

    def _worker(self, role: str, start_in: Callable[[Path], Start]) -> WorkerProcess:
        folder = self._new_folder()
        try:
            worker = WorkerProcess(role, start_in(folder), folder, self._settings.log_bytes)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                raise self._unusable(error) from error
            raise
        with self._lock:
            self._running.append(worker)
        return worker

    def _server(self, language: str, stop: threading.Event) -> ForkServer | None:
        """The language's server, ready to fork; None if it cannot be forked from.

        Raises ServerLost, EnvironmentLacks, Cancelled.
        """
        while not self._serving.acquire(timeout=TICK_S):
            if stop.is_set():
                raise Cancelled("cancelled while a worker was started")
        try:
            if language in self.unforked:
                return None
            if language not in self._servers:
                self._servers[language] = self._new_server(language)
            server = self._servers[language]
            if not server.alive:
                raise ServerLost(server.loss())
            if language in self._preloaded:
                return server
            here = self._here.get(language, False)
            refusal = server.preload(here, self._settings.deadlines.start_s, stop)
            self._preloaded.add(language)
        finally:
            self._serving.release()
        if refusal:
            log.warning("%s workers are started one by one: %s", language, refusal)
            self._forget_server(language, refusal)
        return None if refusal else server

    def _new_server(self, language: str) -> ForkServer:
        folder = self._new_folder()
        environment, file_bytes = self._environment(folder), self._settings.file_bytes
        try:
            return ForkServer(self.python, language, environment, folder, file_bytes)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise self._unusable(error) from error

    def _forget_server(self, language: str, unforked: str) -> None:
        """End a server; `unforked` is why there will be no other, or empty."""
        with self._serving:
            server = self._servers.pop(language, None)
            self._preloaded.discard(language)
            if unforked:
                self.unforked[language] = unforked
        if server is not None:
            server.end()
            shutil.rmtree(server.folder, ignore_errors=True)

    def _new_folder(self) -> Path:
        folder = self._scratch / f"worker-{next(self._numbers)}"
        folder.mkdir(parents=True)
        return folder

    def _environment(self, folder: Path) -> dict[str, str]:
        return worker_environment(self._own, self._settings.environment, folder)

    def _unusable(self, error: OSError) -> EnvironmentLacks:
        return EnvironmentLacks(
            f"cannot run {self.python}: {error.strerror}", "set python in [gate]"
        )


def exchange_folder(scratch: Path, shared_memory: Path = Path("/dev/shm")) -> Path:  # noqa: S108
    """A private folder for arrays: in shared memory if half a GiB is free there, else in scratch.

    Folders that dead daemons left in shared memory are removed: nothing else would.
    """
    if not shared_memory.is_dir() or shutil.disk_usage(shared_memory).free < 512 * 1024**2:
        folder = scratch / "exchange"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
    prefix = f"klineage-{os.getuid()}-"
    for left in shared_memory.glob(f"{prefix}*"):
        owner = left.name.removeprefix(prefix).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(left, ignore_errors=True)
    for number in itertools.count():
        folder = shared_memory / f"{prefix}{os.getpid()}-{number}"
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise AssertionError("count() ends")

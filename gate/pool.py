"""Workers, and the folders they live in: started when needed, one kept ready, all ended at last."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from gate.environment import worker_environment
from gate.errors import EnvironmentLacks
from gate.settings import GateSettings
from gate.worker_process import WorkerProcess


class WorkerPool:
    """Starts workers under one scratch folder."""

    def __init__(self, settings: GateSettings, scratch: Path, own: Mapping[str, str]) -> None:
        """`own` is the environment that workers inherit an allow-list of."""
        self._settings = settings
        self._scratch = scratch
        self._own = dict(own)
        self._numbers = itertools.count(1)
        self._running: list[WorkerProcess] = []
        self._ready: dict[str, WorkerProcess] = {}
        # The daemon ends workers from another thread than the one that starts them.
        self._lock = threading.Lock()

    @property
    def python(self) -> str:
        """The interpreter that kernels run in."""
        return self._settings.python or sys.executable

    def oracle(self) -> WorkerProcess:
        """A fresh oracle worker."""
        return self._start("oracle", "")

    def probe(self) -> WorkerProcess:
        """A fresh probe worker."""
        return self._start("probe", "")

    def runner(self, language: str) -> WorkerProcess:
        """A fresh kernel worker, started ahead of need if there was time.

        A worker that has run a candidate is never handed out again: it may have been tampered with.
        """
        with self._lock:
            ready = self._ready.pop(language, None)
        if ready is not None and ready.alive:
            return ready
        return self._start("runner", language)

    def make_ready(self, language: str) -> None:
        """Start the next kernel worker now; importing its runtime takes from 0.2 s to 5 s."""
        with self._lock:
            present = language in self._ready
        if not present:
            worker = self._start("runner", language)
            with self._lock:
                self._ready[language] = worker

    def end(self, worker: WorkerProcess) -> None:
        """End a worker and remove its folder."""
        worker.end()
        with self._lock:
            if worker in self._running:
                self._running.remove(worker)
        shutil.rmtree(worker.folder, ignore_errors=True)

    def end_all(self) -> None:
        """End every worker there is."""
        with self._lock:
            running, self._ready = list(self._running), {}
        for worker in running:
            self.end(worker)

    def _start(self, role: str, language: str) -> WorkerProcess:
        folder = self._scratch / f"worker-{next(self._numbers)}"
        folder.mkdir(parents=True)
        settings = self._settings
        try:
            worker = WorkerProcess(
                role,
                language,
                self.python,
                worker_environment(self._own, settings.environment, folder),
                folder,
                settings.log_bytes,
                settings.file_bytes,
            )
        except OSError as error:
            folder.rmdir()
            raise EnvironmentLacks(
                f"cannot run {self.python}: {error.strerror}", "set python in [gate]"
            ) from error
        with self._lock:
            self._running.append(worker)
        return worker


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

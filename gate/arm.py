"""An arm of a comparison: one kernel, baseline or candidate, in a worker of its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gate.cases import Case
from gate.messages import Opened, Outputs, Prepared, Ran, Samples, Traced
from gate.pool import WorkerPool
from gate.settings import DeadlineSettings
from gate.values.artifact import BuildArtifact
from gate.values.kernel import Kernel, Launch, SourceFile
from gate.values.workload import shape_label
from gate.worker_process import WorkerProcess


@dataclass(frozen=True, slots=True)
class StagedKernel:
    """A kernel whose files were copied to scratch: later saves in the worktree change nothing."""

    language: str
    path: str
    entry: str
    launch: Launch
    root: Path
    files: dict[str, Path]
    """Relative path → staged copy."""
    folder: Path
    """The kernel's own, with its compile cache: shared by its processes and no other kernel's."""
    device: str
    """Device selection from the settings."""

    def request(self) -> dict[str, object]:
        """Parameters of `open`."""
        source = {
            "root": str(self.root),
            "overlay": {path: str(file) for path, file in self.files.items()},
            "path": self.path,
            "entry": self.entry,
            "launch_kind": self.launch.kind.value,
            "launch_path": self.launch.path,
            "launch_symbol": self.launch.symbol,
        }
        return {
            "language": self.language,
            "source": source,
            "scratch": str(self.folder),
            "device": self.device,
        }


def stage(
    kernel: Kernel,
    launch: Launch,
    files: Sequence[SourceFile],
    root: Path,
    folder: Path,
    device: str,
) -> StagedKernel:
    """Write `files` under `folder`, read-only."""
    staged = {}
    for file in files:
        target = folder / "files" / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.data)
        target.chmod(0o400)
        staged[file.path] = target
    return StagedKernel(
        kernel.language.value, kernel.path, kernel.entry, launch, root, staged, folder, device
    )


@dataclass(slots=True)
class Arm:
    """A staged kernel in a running worker. All methods raise WorkerFailure and Cancelled."""

    name: str
    """`baseline` or `candidate`."""
    kernel: StagedKernel
    pool: WorkerPool
    deadlines: DeadlineSettings
    exchange: Path
    """Where its outputs are left: its own."""
    worker: WorkerProcess | None = None
    opened: Opened | None = None
    prepared: Prepared | None = None
    slowest_build_s: float = 0.0
    slowest_run_s: float = 0.0
    built_for: set[str] = field(default_factory=set)
    """Labels of the shapes it was built for, in this process or an earlier one."""

    def fresh(self, name: str) -> Arm:
        """The same kernel for a process of its own, with a folder `name` beside this arm's."""
        return replace(
            self,
            exchange=self.exchange.parent / name,
            worker=None,
            opened=None,
            prepared=None,
            built_for=set(self.built_for),
        )

    def start(self, stop: threading.Event) -> None:
        """Start a worker if none runs, and do not wait for it."""
        if self.worker is None or not self.worker.alive:
            self.close()
            self.worker = self.pool.runner(self.kernel.language, stop)

    def open(self, stop: threading.Event) -> Opened:
        """Wait until the worker has taken the kernel on."""
        self.start(stop)
        if self.opened is None:
            request, limit_s = self.kernel.request(), self.deadlines.start_s
            self.opened = self._worker.call("open", request, Opened, limit_s, stop)
        return self.opened

    def prepare(
        self,
        case: Case,
        mutates: Sequence[str],
        deadline_s: float,
        stop: threading.Event,
    ) -> Prepared:
        """Build for a case and place its inputs."""
        params = {
            "axes": dict(case.plan.axes),
            "inputs": case.made.inputs,
            "outputs": case.made.outputs,
            "mutates": list(mutates),
        }
        self.open(stop)
        self.prepared = self._worker.call("prepare", params, Prepared, deadline_s, stop)
        self.slowest_build_s = max(self.slowest_build_s, self.prepared.elapsed_s)
        self.built_for.add(shape_label(case.plan.axes))
        return self.prepared

    def run(self, slot: int, deadline_s: float, stop: threading.Event) -> Ran:
        """Launch once (twice for integer outputs) and get the outputs, until the slot's next."""
        params = {"folder": str(self.exchange / str(slot))}
        ran = self._worker.call("run", params, Ran, deadline_s, stop)
        self.slowest_run_s = max(self.slowest_run_s, ran.elapsed_s)
        return ran

    def trace(self, stop: threading.Event) -> Traced:
        """The launch that `run` made."""
        return self._worker.call("trace", {}, Traced, self.deadlines.run_floor_s, stop)

    def time(self, launches: int, deadline_s: float, stop: threading.Event) -> list[float]:
        """Latency of each launch, microseconds."""
        params = {"launches": launches}
        return self._worker.call("time", params, Samples, deadline_s, stop).samples_us

    def outputs(self, stop: threading.Event) -> Outputs:
        """What the latest timed launch left."""
        params = {"folder": str(self.exchange / "timed")}
        return self._worker.call("outputs", params, Outputs, self.deadlines.run_floor_s, stop)

    def close(self) -> None:
        """End the worker. The next `open` gets a fresh one."""
        if self.worker is not None:
            self.pool.end(self.worker)
        self.worker = self.opened = self.prepared = None

    @property
    def artifact(self) -> BuildArtifact | None:
        """The latest build, as the verdict carries it."""
        if self.prepared is None:
            return None
        return BuildArtifact(
            self.prepared.digest,
            self.prepared.ir,
            self.prepared.resources,
            self.prepared.log[: 16 * 1024],
        )

    @property
    def _worker(self) -> WorkerProcess:
        if self.worker is None:
            raise RuntimeError(f"{self.name} has no worker")
        return self.worker

"""Loop: what happens when files change, from the watcher's batch to the gate's work list."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from daemon.loop.board import Board, FileState, KernelState, ranked
from daemon.loop.detecting import Detector, Sighting, Traces, kernel_id, unanalysed
from daemon.loop.gating import Gating
from daemon.loop.publishing import Publisher
from daemon.watcher import Batch, Change
from gate.values.kernel import Language, digest
from gate.values.platform import Platform
from library.detect import MAX_BYTES

log = logging.getLogger(__name__)

PORTION = 32
"""Files looked at in one go of the analysis thread; between two, other requests are answered."""


class Loop:
    """Keeps the board true to the worktree. Everything but looking runs on the event loop."""

    def __init__(
        self,
        root: Path,
        board: Board,
        detector: Detector,
        publisher: Publisher,
        gate_at_start: int,
    ) -> None:
        """`gate_at_start`: a scan that finds at most this many kernels gates them unasked."""
        self._root = root
        self._board = board
        self._detector = detector
        self._publisher = publisher
        self._gate_at_start = gate_at_start
        self._thread = ThreadPoolExecutor(1, "analysis")
        self._one_at_a_time = asyncio.Lock()
        self._scanned = asyncio.Event()
        self._scan_found: set[str] = set()
        self.gating: Gating
        """Set once by whoever builds both; each needs the other."""

    async def scanned(self) -> None:
        """Wait until the worktree has been looked through once."""
        await self._scanned.wait()

    def close(self) -> None:
        """End the analysis thread."""
        self._thread.shutdown()

    async def deliver(self, batch: Batch) -> None:
        """Take what the watcher found."""
        async with self._one_at_a_time:
            changed = await self._take(batch.changes)
        self.gating.drop_stale()
        if not batch.rescan:
            for id in changed:
                self.gating.want(id)
            return
        self._scan_found.update(changed)
        if not batch.more:
            found, self._scan_found = self._scan_found, set()
            if len(found) <= self._gate_at_start:
                for id in sorted(found):
                    self.gating.want(id)
            self._scanned.set()

    async def refresh(self, paths: Iterable[str]) -> None:
        """Read files from disk now, and do what a save of those that changed would do."""
        async with self._one_at_a_time:
            changed = await self._take([self._read(path) for path in paths])
        self.gating.drop_stale()
        for id in changed:
            self.gating.want(id)

    async def relook(self, paths: Iterable[str]) -> None:
        """Rank files again over the bytes on disk, with what is newly known of device and launch."""
        async with self._one_at_a_time:
            await self._look([change for path in paths if (change := self._read(path)).data])

    # ---- taking changes ------------------------------------------------------------------------

    async def _take(self, changes: Sequence[Change]) -> list[str]:
        """Bring the board up to date; ids of kernels that are new or have another closure."""
        looked: list[Change] = []
        for change in changes:
            known = self._board.files.get(change.path)
            if change.gone:
                self._forget(change.path)
            elif change.problem is not None:
                self._report(change.path, change.problem)
            elif known is None or known.digest != change.digest:
                looked.append(change)
        paths = {change.path for change in changes}
        dependants = self._board.depending_on(paths) | self._waiting_for_workload(paths)
        looked += [
            change
            for path in sorted(dependants - paths)
            if (change := self._read(path)).data is not None
        ]
        return await self._look(looked)

    async def _look(self, changes: Sequence[Change]) -> list[str]:
        """Detect, rank and publish, a portion at a time."""
        changed: list[str] = []
        running = asyncio.get_running_loop()
        for start in range(0, len(changes), PORTION):
            portion = changes[start : start + PORTION]
            sightings = await running.run_in_executor(self._thread, self._find, portion)
            platforms = dict(self.gating.platforms)
            traces = {
                kernel_id(kernel): self.gating.traces_of(kernel, sighting.workload)
                for sighting in sightings
                for kernel in sighting.found.kernels
            }
            rank = partial(self._rank, sightings, platforms, traces)
            looked = await running.run_in_executor(self._thread, rank)
            for file, kernels in looked:
                changed += self._put(file, kernels)
        return changed

    def _find(self, changes: Sequence[Change]) -> list[Sighting]:
        sightings = []
        for change in changes:
            if change.data is None:
                continue
            try:
                sightings.append(self._detector.find(change.path, change.data))
            except Exception as error:
                # Source nobody foresaw must not hide the other files of a save.
                log.exception("%s could not be analysed", change.path)
                sightings.append(unanalysed(change, error))
        return sightings

    def _rank(
        self, sightings: Sequence[Sighting], platforms: Mapping[Language, Platform], traces: Traces
    ) -> list[tuple[FileState, tuple[KernelState, ...]]]:
        return [self._detector.rank(sighting, platforms, traces) for sighting in sightings]

    def _put(self, file: FileState, kernels: tuple[KernelState, ...]) -> list[str]:
        """Publish what differs from what was known; ids of kernels whose closure is new."""
        before = self._board.files.get(file.path)
        if before is None and not kernels and not file.problems:
            return []  # a file that has nothing to do with kernels
        closures = {
            kernel.id: self._board.kernels[kernel.id].kernel.closure
            for kernel in kernels
            if kernel.id in self._board.kernels
        }
        gone = self._board.put(file, kernels)
        for kernel in kernels:
            settled = ranked(self.gating.settle(s, kernel) for s in kernel.suggestions)
            self._board.kernels[kernel.id] = replace(kernel, suggestions=settled)
            self.gating.probe(kernel.kernel.language)
        if before is None or (before.digest, before.problems) != (file.digest, file.problems):
            self._publisher.file(file.path)
        for id in gone:
            self._publisher.kernel_gone(id)
        for kernel in kernels:
            self._publisher.kernel(kernel.id)
        return [kernel.id for kernel in kernels if closures.get(kernel.id) != kernel.kernel.closure]

    def _forget(self, path: str) -> None:
        if path not in self._board.files:
            return
        for id in self._board.drop(path):
            self._publisher.kernel_gone(id)
        self._publisher.file_gone(path)

    def _report(self, path: str, problem: str) -> None:
        """A file that cannot be read keeps its place, with the reason in place of kernels."""
        file = FileState(path, "", problems=(problem,), depends=frozenset({path}))
        for id in self._board.put(file, ()):
            self._publisher.kernel_gone(id)
        self._publisher.file(path)

    def _waiting_for_workload(self, paths: Iterable[str]) -> set[str]:
        """Kernel files that might be judged by a workload file among `paths`."""
        folders = set()
        for path in map(PurePosixPath, paths):
            if path.name.endswith("workload.py"):
                folders.add(path.parent)
        return {
            file.path
            for file in self._board.files.values()
            if not folders.isdisjoint(list(PurePosixPath(file.path).parents)[:2])
        }

    def _read(self, path: str) -> Change:
        """The file as it is on disk at this moment."""
        try:
            with (self._root / path).open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return Change(path, gone=True)
        except OSError as error:
            return Change(path, problem=f"cannot be read: {error.strerror}")
        return Change(path, data=data, digest=digest(data))

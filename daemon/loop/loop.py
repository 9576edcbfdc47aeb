"""Loop: what happens when files change, from the watcher's batch to the gate's work list."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from daemon.errors import RpcError
from daemon.loop.board import Board, FileState, KernelState, ranked
from daemon.loop.detecting import Detector, unanalysed
from daemon.loop.devices import Devices
from daemon.loop.gating import Gating
from daemon.loop.publishing import Publisher
from daemon.loop.settling import Settling
from daemon.watcher import Batch, Change
from gate.values.kernel import Language, digest
from gate.values.platform import Platform
from gate.values.trace import LaunchTrace
from library.detect import MAX_BYTES

log = logging.getLogger(__name__)

PORTION = 32
"""Files looked at in one go of the analysis thread; between two, other requests are answered. A
batch of more is a checkout or a scan, and its files are told before any of them is ranked."""

RANKED_AT_ONCE = 4
"""Files of such a batch ranked in one go: a save meanwhile waits for one go at most."""

Looked = tuple[FileState, tuple[KernelState, ...]]
_Asked = tuple[KernelState, Platform | None, tuple[LaunchTrace, ...]]
Result = TypeVar("Result")


class Loop:
    """Keeps the board true to the worktree. Everything but looking runs on the event loop."""

    def __init__(
        self,
        root: Path,
        board: Board,
        detector: Detector,
        publisher: Publisher,
        devices: Devices,
        settling: Settling,
        gate_at_start: int,
    ) -> None:
        """`gate_at_start`: a scan that finds at most this many kernels gates them unasked."""
        self._root = root
        self._board = board
        self._detector = detector
        self._publisher = publisher
        self._devices = devices
        self._settling = settling
        self._gate_at_start = gate_at_start
        self._thread = ThreadPoolExecutor(1, "analysis")
        self._one_at_a_time = asyncio.Lock()
        self._scanned = asyncio.Event()
        self._scan_found: set[str] = set()
        self._unranked: dict[str, None] = {}
        self._rank_some = asyncio.Event()
        self._looking: set[asyncio.Task[None]] = set()
        self.gating: Gating
        """Set once by whoever builds both; each needs the other."""

    async def run(self) -> None:
        """Rank what was told unranked, a little at a time, until cancelled."""
        while True:
            await self._rank_some.wait()
            async with self._one_at_a_time:
                if not self._unranked:
                    self._rank_some.clear()
                    continue
                try:
                    self._tell(await self._rank(list(self._unranked)[:RANKED_AT_ONCE]))
                except RpcError as error:
                    # The journal could not be read; the files after these may still be ranked.
                    self._publisher.message("error", f"not ranked: {error}")

    async def scanned(self) -> None:
        """Wait until the worktree has been looked through once."""
        await self._scanned.wait()

    def close(self) -> None:
        """End the analysis thread."""
        for looking in self._looking:
            looking.cancel()
        self._thread.shutdown()

    async def deliver(self, batch: Batch) -> None:
        """Take what the watcher found."""
        async with self._one_at_a_time:
            changed = await self._take(batch.changes)
        self.gating.drop_stale()
        if not batch.rescan and len(batch.changes) <= PORTION:
            for id in changed:
                self.gating.want(id, saved=True)
            return
        self._scan_found.update(changed)
        if batch.more:
            return
        found, self._scan_found = self._scan_found, set()
        if len(found) <= self._gate_at_start:
            for id in sorted(found):
                self.gating.want(id)
        if batch.rescan:
            self._scanned.set()

    async def refresh(self, paths: Iterable[str]) -> None:
        """Read files from disk now, with what is known to belong to them, and do what a save of
        those that changed would do."""
        # Not in the caller's own task: a client that leaves would leave half a look behind, which
        # the watcher, finding the bytes known, would not make good.
        looking = asyncio.create_task(self._refresh(list(paths)), name="looking")
        self._looking.add(looking)
        looking.add_done_callback(self._looking.discard)
        await asyncio.shield(looking)

    async def _refresh(self, paths: Sequence[str]) -> None:
        read = dict.fromkeys(paths)
        for path in paths:
            if path in self._board.files:
                # A workload may have been saved so lately that the watcher has not told of it.
                read |= dict.fromkeys(sorted(self._board.files[path].depends))
        async with self._one_at_a_time:
            changed = await self._take([self._read(path) for path in read])
            self._tell(await self._rank(paths))
        self.gating.drop_stale()
        for id in changed:
            self.gating.want(id, saved=True)

    async def ranked(self, paths: Iterable[str]) -> None:
        """Wait until the kernels of these files have suggestions over the bytes last looked at."""
        async with self._one_at_a_time:
            self._tell(await self._rank(paths))

    async def relook(self, paths: Iterable[str]) -> None:
        """Rank files again, with what is newly known of the library, of devices and launches."""
        listed = [path for path in paths if path in self._board.files]
        self._rank_later(listed)
        if len(listed) <= PORTION:
            await self.ranked(listed)

    async def relook_language(self, language: Language) -> None:
        """Rank every kernel of a language again."""
        kernels = self._board.kernels.values()
        paths = {state.kernel.path for state in kernels if state.kernel.language is language}
        await self.relook(sorted(paths))

    # ---- taking changes ------------------------------------------------------------------------

    async def _take(self, changes: Sequence[Change]) -> list[str]:
        """Bring the board up to date; ids of kernels that are new or have another basis."""
        looked: dict[str, Change] = {}
        present: dict[str, str | None] = {}
        for change in changes:
            known = self._board.files.get(change.path)
            if known is not None and known.digest and known.digest == change.digest:
                continue
            present[change.path] = change.digest
            if change.gone:
                self._forget(change.path)
            elif change.problem is not None:
                self._report(change.path, change.problem)
            else:
                looked[change.path] = change
        for path in sorted(self._board.depending_on(present) - present.keys()):
            looked[path] = self._read(path)
        return await self._look([change for change in looked.values() if change.data is not None])

    async def _look(self, changes: Sequence[Change]) -> list[str]:
        """Detect, rank and publish, a portion at a time; many files are ranked afterwards."""
        changed: list[str] = []
        for portion in _portions(changes, PORTION):
            platforms = dict(self._devices.platforms)
            found = await self._in_thread(self._find, portion, platforms)
            placed = [self._place(file, kernels) for file, kernels in found]
            self._rank_later(one.path for one in placed if one.kernels)
            ranked_ids = (
                [] if len(changes) > PORTION else await self._rank(one.path for one in placed)
            )
            for one in placed:
                changed += one.changed
                if one.tell:
                    self._publisher.file(one.path)
            self._tell(ranked_ids)
        return changed

    def _find(
        self, changes: Sequence[Change], platforms: Mapping[Language, Platform]
    ) -> list[Looked]:
        found: list[Looked] = []
        for change in changes:
            assert change.data is not None
            try:
                found.append(self._detector.look(change.path, change.data, platforms))
            except Exception as error:
                # Source nobody foresaw must not hide the other files of a save.
                log.exception("%s could not be analysed", change.path)
                found.append((unanalysed(change, error), ()))
        return found

    def _place(self, file: FileState, kernels: tuple[KernelState, ...]) -> _Placed:
        """Put what was found on the board. A kernel with the same basis keeps its suggestions until
        it is ranked again."""
        before = self._board.files.get(file.path)
        if before is None and not kernels and not file.problems:
            return _Placed(file.path)  # a file that has nothing to do with kernels
        known = {id: self._board.kernels[id] for id in (before.kernels if before else ())}
        if before == file and all(_is_same(known[kernel.id], kernel) for kernel in kernels):
            return _Placed(file.path)
        changed = tuple(
            kernel.id
            for kernel in kernels
            if kernel.id not in known or known[kernel.id].basis != kernel.basis
        )
        kept = [
            kernel if kernel.id in changed else _with_suggestions_of(known[kernel.id], kernel)
            for kernel in kernels
        ]
        for id in self._board.put(file, kept):
            self._publisher.kernel_gone(id)
        for kernel in kernels:
            self._devices.ask(kernel.kernel.language)
        content = (file.digest, file.problems)
        tell = before is None or bool(changed) or (before.digest, before.problems) != content
        return _Placed(file.path, file.kernels, changed, tell)

    # ---- ranking -------------------------------------------------------------------------------

    def _rank_later(self, paths: Iterable[str]) -> None:
        self._unranked |= dict.fromkeys(paths)
        if self._unranked:
            self._rank_some.set()

    async def _rank(self, paths: Iterable[str]) -> list[str]:
        """Give the kernels of those files that are unranked their suggestions; ids of the kernels."""
        chosen = [path for path in paths if path in self._unranked]
        for path in chosen:
            del self._unranked[path]
        asked = [
            (
                state,
                self._devices.platforms.get(state.kernel.language),
                self._settling.traces_of(state),
            )
            for path in chosen
            if path in self._board.files
            for state in map(self._board.kernels.__getitem__, self._board.files[path].kernels)
        ]
        try:
            states = await self._in_thread(self._rank_each, asked) if asked else []
        except asyncio.CancelledError:
            self._rank_later(chosen)  # whoever asked has left; they are still to be ranked
            raise
        for state in states:
            settled = ranked(self._settling.settle(s, state) for s in state.suggestions)
            self._board.place(replace(state, suggestions=settled))
        return [state.id for state, _, _ in asked]

    def _rank_each(self, asked: Sequence[_Asked]) -> list[KernelState]:
        states = []
        for state, platform, traces in asked:
            try:
                states.append(self._detector.rank(state, platform, traces))
            except Exception:
                # A card or an analysis that fails on one kernel must not hide the others.
                log.exception("%s could not be ranked", state.id)
                states.append(replace(state, suggestions=()))
        return states

    def _tell(self, kernels: Iterable[str]) -> None:
        for id in kernels:
            self._publisher.kernel(id)

    async def _in_thread(self, work: Callable[..., Result], *arguments: object) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    # ---- single files --------------------------------------------------------------------------

    def _forget(self, path: str) -> None:
        if path not in self._board.files:
            return
        for id in self._board.drop(path):
            self._publisher.kernel_gone(id)
        self._publisher.file_gone(path)

    def _report(self, path: str, problem: str) -> None:
        """A file that cannot be read keeps its place, with the reason in place of kernels."""
        file = FileState(path, "", problems=(problem,))
        for id in self._board.put(file, ()):
            self._publisher.kernel_gone(id)
        self._publisher.file(path)

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


@dataclass(frozen=True, slots=True)
class _Placed:
    """What putting a file on the board meant."""

    path: str
    kernels: tuple[str, ...] = ()
    """To be ranked."""
    changed: tuple[str, ...] = ()
    """Of those, the new ones and those with another basis."""
    tell: bool = False


def _is_same(known: KernelState, found: KernelState) -> bool:
    return (known.kernel, known.workload, known.features) == (
        found.kernel,
        found.workload,
        found.features,
    )


def _with_suggestions_of(known: KernelState, found: KernelState) -> KernelState:
    return replace(found, suggestions=known.suggestions, traced=known.traced)


def _portions(changes: Sequence[Change], size: int) -> Iterator[Sequence[Change]]:
    for start in range(0, len(changes), size):
        yield changes[start : start + size]

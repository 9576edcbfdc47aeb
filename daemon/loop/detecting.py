"""Detector: from the bytes of a file to its kernels, targets and ranked suggestions.

Pure given the library and what it is told of devices and launches; runs in a thread, since a file
may take tens of milliseconds and `klineage status` must not wait for it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from daemon.loop.board import FileState, KernelState, Suggestion, ranked
from daemon.watcher import Change
from gate.values.candidate import Candidate
from gate.values.kernel import Kernel, Language, digest
from gate.values.platform import Platform
from gate.values.trace import LaunchTrace
from gate.values.workload import Workload
from library.detect import MAX_BYTES, detect, target_for
from library.edits import Refusal
from library.errors import LibraryError
from library.languages import Found, ReadFile
from library.materialize import materialize
from library.retrieval import Answer, Offer, retrieve
from library.store import Store
from library.target import Target
from library.workload_source import find_workload

log = logging.getLogger(__name__)

Traces = Mapping[str, tuple[LaunchTrace, ...]]
"""Kernel id → what launches of it were seen to pass."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """The kernels a file holds, before anything is asked of the library."""

    path: str
    digest: str
    found: Found
    workload: Workload | None
    problems: tuple[str, ...]
    depends: frozenset[str]


class Detector:
    """Looks at files of one worktree. Reads the worktree, runs nothing of it."""

    def __init__(self, root: Path, workloads: Mapping[str, str], store: Store) -> None:
        """`workloads`: kernel file → workload file, as configured."""
        self._root = root
        self._workloads = workloads
        self._store = store

    def find(self, path: str, data: bytes) -> Sighting:
        """Kernels and problems of a file as it is now."""
        read = self._reader({path: data})
        workload = find_workload(path, read, self._workloads)
        found = detect(path, data, read, self._workloads)
        depends = {path} | {file.path for kernel in found.kernels for file in kernel.files}
        if workload is not None:
            depends.add(workload.path)
        problems = tuple(
            f"line {p.line}: {p.message}" if p.line else p.message for p in found.problems
        )
        return Sighting(path, digest(data), found, workload, problems, frozenset(depends))

    def rank(
        self, sighting: Sighting, platforms: Mapping[Language, Platform], traces: Traces
    ) -> tuple[FileState, tuple[KernelState, ...]]:
        """State and suggestions of every kernel that was found."""
        kernels = tuple(
            self._kernel(kernel, sighting.workload, platforms.get(kernel.language), traces)
            for kernel in sighting.found.kernels
        )
        file = FileState(
            sighting.path,
            sighting.digest,
            tuple(kernel.id for kernel in kernels),
            sighting.problems,
            sighting.depends,
        )
        return file, kernels

    def _kernel(
        self,
        kernel: Kernel,
        workload: Workload | None,
        platform: Platform | None,
        traces: Traces,
    ) -> KernelState:
        id = kernel_id(kernel)
        seen = traces.get(id, ())
        target = target_for(kernel, workload, platform, seen)
        offers = [
            offer
            for offer in retrieve(target, self._store).offers
            if offer.answer is not Answer.EXCLUDED
        ]
        return KernelState(
            id,
            kernel,
            line_of(kernel),
            workload,
            target.analysis.features,
            ranked(self._suggestion(id, offer, target) for offer in offers),
            traced=bool(seen),
        )

    def _suggestion(self, kernel: str, offer: Offer, target: Target) -> Suggestion:
        if offer.answer is Answer.BLOCKED:
            return Suggestion(offer.id, kernel, offer, "blocked", offer.reason)
        try:
            candidate = materialize(offer.entry.card, offer.match, target)
        except LibraryError as error:
            # A transform at fault spoils its own suggestion and no other.
            log.exception("a transform failed on %s", kernel)
            return Suggestion(offer.id, kernel, offer, "manual", str(error))
        if isinstance(candidate, Refusal):
            return Suggestion(offer.id, kernel, offer, "manual", candidate.reason)
        after = self.closure_after(target.kernel, candidate)
        if after is None:
            reason = "its transform made source that does not parse; it is not offered"
            return Suggestion(offer.id, kernel, offer, "manual", reason)
        if after == target.kernel.closure:
            reason = "its transform changed nothing that matters; it is not offered"
            return Suggestion(offer.id, kernel, offer, "manual", reason)
        return Suggestion(
            offer.id, kernel, offer, "queued", candidate=candidate, after_closure=after
        )

    def closure_after(self, kernel: Kernel, candidate: Candidate) -> str | None:
        """Closure digest the kernel would have with a candidate's edits; None if it would not parse."""
        after = {edit.path: edit.after for edit in candidate.edits}
        read = self._reader(after)
        data = read(kernel.path)
        if data is None:
            return None
        found = detect(kernel.path, data, read, self._workloads)
        if found.problems:
            return None
        return next((k.closure for k in found.kernels if k.entry == kernel.entry), None)

    def kernel_with(self, kernel: Kernel, files: Mapping[str, bytes]) -> Kernel | None:
        """The same entry with other bytes in some files (a state of the past); None if it is gone."""
        read = self._reader(dict(files))
        data = read(kernel.path)
        if data is None:
            return None
        found = detect(kernel.path, data, read, self._workloads)
        return next((k for k in found.kernels if k.entry == kernel.entry), None)

    def _reader(self, over: Mapping[str, bytes]) -> ReadFile:
        """Reads the worktree's files, with some bytes standing in for what is on disk."""

        def read(path: str) -> bytes | None:
            if path in over:
                return over[path]
            file = self._root / path
            try:
                if not file.resolve().is_relative_to(self._root) or not file.is_file():
                    return None
                with file.open("rb") as handle:
                    data = handle.read(MAX_BYTES + 1)
            except OSError:
                # A dependency that vanished or may not be read is one that is not there.
                return None
            return data if len(data) <= MAX_BYTES else None

        return read


def kernel_id(kernel: Kernel) -> str:
    """`path::entry`."""
    return f"{kernel.path}::{kernel.entry}"


def line_of(kernel: Kernel) -> int:
    """1-based line on which the kernel's name is first followed by a parameter list."""
    data = kernel.file(kernel.path).data
    match = re.search(rb"\b" + re.escape(kernel.entry.encode()) + rb"\s*\(", data)
    if match is None:
        match = re.search(rb"\b" + re.escape(kernel.entry.encode()) + rb"\b", data)
    return data.count(b"\n", 0, match.start()) + 1 if match else 1


def unanalysed(change: Change, error: Exception) -> Sighting:
    """What is told of a file our analysis failed on: the reason, where its kernels would be."""
    problem = f"could not be analysed: {error!r}; the daemon's log has more"
    return Sighting(
        change.path, change.digest or "", Found(()), None, (problem,), frozenset({change.path})
    )

"""Detector: from the bytes of a file to its kernels, targets and ranked suggestions.

Pure given the library and what it is told of devices and launches; runs in a thread, since a file
may take tens of milliseconds and `klineage status` must not wait for it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from daemon.loop.board import Basis, FileState, KernelState, Suggestion, ranked
from daemon.watcher import Change
from gate.values.candidate import Candidate, FileEdit
from gate.values.kernel import Kernel, Language, digest
from gate.values.platform import Platform
from gate.values.trace import LaunchTrace
from library.detect import MAX_BYTES, detect, target_for
from library.edits import Refusal
from library.errors import LibraryError
from library.languages import Problem, ReadFile
from library.materialize import materialize
from library.retrieval import Answer, Offer, retrieve
from library.store import Store
from library.target import Target
from library.workload_digest import judging_digest
from library.workload_source import find_workload

log = logging.getLogger(__name__)

CANDIDATES_KEPT = 512
"""Candidates whose closure is remembered: a kernel is ranked again once its device and its launch
are known, mostly with the same candidates, and parsing each takes a millisecond."""


class Detector:
    """Looks at files of one worktree. Reads the worktree, runs nothing of it."""

    def __init__(self, root: Path, workloads: Mapping[str, str], store: Store) -> None:
        """`workloads`: kernel file → workload file, as configured."""
        self._root = root
        self._real_root = root.resolve()
        self._workloads = workloads
        self._store = store
        self._closure_with = lru_cache(CANDIDATES_KEPT)(self._read_closure_with)

    def look(
        self, path: str, data: bytes, platforms: Mapping[Language, Platform]
    ) -> tuple[FileState, tuple[KernelState, ...]]:
        """A file as it is now: its problems, and its kernels with their state."""
        known: dict[str, bytes | None] = {path: data}
        read = self._reader(known)
        found = detect(path, data, read, self._workloads)
        workload = find_workload(path, read, self._workloads) if found.kernels else None
        judged_by = judging_digest(workload) if workload is not None else ""
        kernels = tuple(
            KernelState(
                kernel_id(kernel),
                kernel,
                line_of(kernel),
                workload,
                Basis(kernel.closure, judged_by),
                target_for(kernel, workload, platforms.get(kernel.language)).analysis.features,
            )
            for kernel in found.kernels
        )
        problems = tuple(_problem_text(problem, path) for problem in found.problems)
        ids = tuple(kernel.id for kernel in kernels)
        depends = {name: None if read is None else digest(read) for name, read in known.items()}
        return FileState(path, depends[path] or "", ids, problems, depends), kernels

    def rank(
        self, state: KernelState, platform: Platform | None, traces: tuple[LaunchTrace, ...]
    ) -> KernelState:
        """The kernel with its suggestions, as the library has them now."""
        target = target_for(state.kernel, state.workload, platform, traces)
        offers = [
            offer
            for offer in retrieve(target, self._store).offers
            if offer.answer is not Answer.EXCLUDED
        ]
        suggestions = ranked(self._suggestion(state.id, offer, target) for offer in offers)
        return replace(state, suggestions=suggestions, traced=bool(traces))

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
        """Closure digest the kernel would have with a candidate's edits; None if it would not parse.

        Of the kernel's own files no byte is read from disk: a save in between must not give the
        verdict on this candidate another's key.
        """
        return self._closure_with(kernel, candidate.edits)

    def _read_closure_with(self, kernel: Kernel, edits: tuple[FileEdit, ...]) -> str | None:
        known: dict[str, bytes | None] = {file.path: file.data for file in kernel.files}
        read = self._reader(known | {edit.path: edit.after for edit in edits})
        found = detect(kernel.path, read(kernel.path) or b"", read, self._workloads)
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

    def _reader(self, known: dict[str, bytes | None]) -> ReadFile:
        """Reads the worktree's files, each once; what is in `known` stands in for what is on disk.

        Everything asked for is in `known` afterwards, None for what is not there.
        """

        def read(path: str) -> bytes | None:
            if path not in known:
                known[path] = self._on_disk(path)
            return known[path]

        return read

    def _on_disk(self, path: str) -> bytes | None:
        file = self._root / path
        try:
            # Most of what is asked for is a workload file that might be there and is not.
            if not file.is_file() or not file.resolve().is_relative_to(self._real_root):
                return None
            with file.open("rb") as handle:
                data = handle.read(MAX_BYTES + 1)
        except OSError:
            # A dependency that vanished or may not be read is one that is not there.
            return None
        return data if len(data) <= MAX_BYTES else None


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


def unanalysed(change: Change, error: Exception) -> FileState:
    """What is told of a file our analysis failed on: the reason, where its kernels would be."""
    problem = f"could not be analysed: {error!r}; the daemon's log has more"
    return FileState(change.path, change.digest or "", problems=(problem,))


def _problem_text(problem: Problem, path: str) -> str:
    """`line 12: …`, after the name of the file if that is another than the one looked at."""
    file = "" if problem.path == path else f"{problem.path} "
    line = f"line {problem.line}: " if problem.line else ""
    return file + line + problem.message

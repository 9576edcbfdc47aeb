"""Byte-range edits, and the candidate they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from gate.values.candidate import Candidate, FileEdit
from gate.values.kernel import Kernel


@dataclass(frozen=True, slots=True)
class ByteEdit:
    """Replace bytes [start, end) of one file. start == end inserts."""

    path: str
    start: int
    end: int
    replacement: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a transform could not edit this target. A verdict of sorts, not an exception."""

    reason: str


def splice(data: bytes, edits: Iterable[ByteEdit]) -> bytes:
    """`data` with all edits made at once; offsets refer to `data` as given.

    Bytes outside the ranges are untouched, so formatting and comments survive.
    Raises ValueError if two ranges overlap or one lies outside the file.
    """
    out = bytearray()
    cursor = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if not cursor <= edit.start <= edit.end <= len(data):
            raise ValueError(
                f"edit [{edit.start}, {edit.end}) of {edit.path} overlaps or is outside"
            )
        out += data[cursor : edit.start] + edit.replacement
        cursor = edit.end
    return bytes(out + data[cursor:])


def candidate_from(kernel: Kernel, skill: str, edits: Iterable[ByteEdit]) -> Candidate:
    """The candidate that `edits` make of `kernel`; `skill` is the card digest.

    Raises ValueError as `splice` does, and KeyError if an edit leaves the kernel's closure.
    """
    by_path: dict[str, list[ByteEdit]] = defaultdict(list)
    for edit in edits:
        by_path[edit.path].append(edit)
    files = []
    for path, ranges in sorted(by_path.items()):
        before = kernel.file(path)
        files.append(FileEdit(path, before.digest, splice(before.data, ranges)))
    return Candidate(skill, tuple(files))

"""A diff ready to draw: hunks over highlighted lines. Made off the event loop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from daemon.protocol import FileDiff
from klineage_tui.diff.align import Hunk, hunks
from klineage_tui.diff.highlight import plain_lines, source_lines
from klineage_tui.paint import Line, width_of

SHOWN_BYTES = 2_000_000
"""Larger files are named, not shown."""
SHOWN_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class FilePatch:
    """One file's hunks; `note` says what is not shown and why."""

    path: str
    before: tuple[Line, ...]
    after: tuple[Line, ...]
    hunks: tuple[Hunk, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """All files of one candidate."""

    files: tuple[FilePatch, ...] = ()
    widest: int = 0
    """Cells of the longest line in any hunk."""

    @property
    def hunk_count(self) -> int:
        return sum(len(file.hunks) for file in self.files)


def document(diffs: Iterable[FileDiff]) -> Document:
    """Aligned and highlighted files, capped in size; each cap is said in the file's note."""
    files = tuple(_file(diff) for diff in diffs)
    widths = (
        width_of(lines[number])
        for file in files
        for hunk in file.hunks
        for row in hunk
        for lines, number in ((file.before, row.left), (file.after, row.right))
        if number is not None
    )
    return Document(files, max(widths, default=0))


def _file(diff: FileDiff) -> FilePatch:
    size = max(len(diff.before), len(diff.after))
    if size > SHOWN_BYTES:
        note = f"not shown: {size / 1e6:.1f} MB; save patch writes it to a file"
        return FilePatch(diff.path, (), (), (), note)
    before = plain_lines(diff.before)
    after = plain_lines(diff.after)
    found = hunks(before, after)
    kept = _capped(found)
    note = ""
    if kept is not found:
        note = f"first {SHOWN_ROWS:,} rows shown; save patch writes the whole"
    if not found:
        note = "no line differs"
    return FilePatch(
        diff.path,
        source_lines(diff.path, diff.before),
        source_lines(diff.path, diff.after),
        kept,
        note,
    )


def _capped(found: tuple[Hunk, ...]) -> tuple[Hunk, ...]:
    left = SHOWN_ROWS
    kept: list[Hunk] = []
    for hunk in found:
        if len(hunk) > left:
            if left:
                kept.append(hunk[:left])
            return tuple(kept)
        kept.append(hunk)
        left -= len(hunk)
    return found

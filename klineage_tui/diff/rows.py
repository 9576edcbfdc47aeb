"""Diff rows as lines at a width: gutter, sign, code clipped with a mark or wrapped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from rich.cells import cell_len

from klineage_tui.diff.align import Range, Row
from klineage_tui.diff.document import Document, FilePatch
from klineage_tui.paint import Line, Span

Ground = Literal["same", "removed", "added", "note"]


@dataclass(frozen=True, slots=True)
class Side:
    """One line of code of one side, with the words that changed."""

    number: int | None
    ground: Ground
    code: Line = ()
    marks: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the view: a heading, or one or two sides."""

    sides: tuple[Side, ...]
    opens_hunk: bool = False


def entries(document: Document, *, split: bool) -> Iterator[Entry]:
    """Every line of the view: a heading for each file, a rule for each hunk, and its rows."""
    for file in document.files:
        note = f"  {file.note}" if file.note else ""
        yield Entry((Side(None, "note", (Span(file.path, "strong"), Span(note, "warn"))),))
        for hunk in file.hunks:
            first = hunk[0]
            number = (first.left if first.left is not None else first.right) or 0
            yield Entry((Side(None, "note", (Span(f"@@ line {number + 1}", "accent"),)),), True)
            rows = _split(file, hunk) if split else _unified(file, hunk)
            yield from rows


def _split(file: FilePatch, hunk: tuple[Row, ...]) -> Iterator[Entry]:
    for row in hunk:
        yield Entry((_left(file, row), _right(file, row)))


def _unified(file: FilePatch, hunk: tuple[Row, ...]) -> Iterator[Entry]:
    """Removed lines of a region before its added ones, as patches have them."""
    added: list[Side] = []
    for row in hunk:
        if row.kind == "same":
            yield from (Entry((side,)) for side in added)
            added = []
            yield Entry((_right(file, row),))
            continue
        if row.left is not None:
            yield Entry((_left(file, row),))
        if row.right is not None:
            added.append(_right(file, row))
    yield from (Entry((side,)) for side in added)


def _left(file: FilePatch, row: Row) -> Side:
    if row.left is None:
        return Side(None, "same")
    ground: Ground = "same" if row.kind == "same" else "removed"
    return Side(row.left + 1, ground, file.before[row.left], row.left_marks)


def _right(file: FilePatch, row: Row) -> Side:
    if row.right is None:
        return Side(None, "same")
    ground: Ground = "same" if row.kind == "same" else "added"
    return Side(row.right + 1, ground, file.after[row.right], row.right_marks)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of code in one tone, marked or not."""

    span: Span
    marked: bool


def pieces(side: Side) -> list[Piece]:
    """The side's code cut where a mark begins or ends."""
    cut: list[Piece] = []
    position = 0
    edges = sorted({edge for mark in side.marks for edge in mark})
    for text, tone in side.code:
        end = position + len(text)
        inner = [position, *(edge for edge in edges if position < edge < end), end]
        for start, stop in pairwise(inner):
            marked = any(low <= start < high for low, high in side.marks)
            cut.append(Piece(Span(text[start - position : stop - position], tone), marked))
        position = end
    return cut


def folded(cut: list[Piece], width: int) -> list[list[Piece]]:
    """The pieces over as many lines of `width` cells as they need; one, maybe empty, at least."""
    lines: list[list[Piece]] = [[]]
    room = width
    for piece in cut:
        text, tone = piece.span
        while cell_len(text) > room:
            taken = _take(text, room)
            if taken:
                lines[-1].append(Piece(Span(taken, tone), piece.marked))
            text = text[len(taken) :]
            lines.append([])
            room = width
        if text:
            lines[-1].append(Piece(Span(text, tone), piece.marked))
            room -= cell_len(text)
    return lines


def _take(text: str, cells: int) -> str:
    """The longest start of `text` of at most `cells` cells, at least one character on a full line."""
    if cell_len(text[:cells]) <= cells:
        return text[:cells]
    taken = ""
    for character in text:
        if cell_len(taken + character) > cells:
            break
        taken += character
    return taken

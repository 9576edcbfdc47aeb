"""Rows of a diff: which lines pair up, and which words of a pair differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

CONTEXT = 3
MATCHED_LINES = 4_000
"""Longer changed regions are shown as one replaced block: difflib is quadratic in the worst case."""
MARKED_CHARACTERS = 400
"""Longer lines get no word marks."""
SIMILAR = 0.5
"""Below this ratio two lines are not versions of each other, and marking words would only confuse."""

_WORD = re.compile(r"\w+|\s+|.")

Range = tuple[int, int]
"""Characters from (inclusive) to (exclusive)."""


@dataclass(frozen=True, slots=True)
class Row:
    """Lines side by side; numbers count from 0, None where that side has no line."""

    left: int | None
    right: int | None
    left_marks: tuple[Range, ...] = ()
    right_marks: tuple[Range, ...] = ()

    @property
    def kind(self) -> Literal["same", "removed", "added", "changed"]:
        if self.left is None:
            return "added"
        if self.right is None:
            return "removed"
        return "changed"


@dataclass(frozen=True, slots=True)
class Same(Row):
    """A line that both sides have."""

    @property
    def kind(self) -> Literal["same", "removed", "added", "changed"]:
        return "same"


Hunk = tuple[Row, ...]


def hunks(before: Sequence[str], after: Sequence[str], context: int = CONTEXT) -> tuple[Hunk, ...]:
    """Changed regions with `context` equal lines around each; regions that touch are one."""
    rows: list[Row] = []
    found: list[Hunk] = []
    gap: list[Row] = []
    for row in _rows(before, after):
        if row.kind != "same":
            rows += gap
            rows.append(row)
            gap = []
            continue
        gap.append(row)
        if rows and len(gap) > 2 * context:
            found.append((*rows, *gap[:context]))
            rows, gap = [], gap[context:]
        if not rows:
            gap = gap[-context:] if context else []
    if rows:
        found.append((*rows, *gap[:context]))
    return tuple(found)


def _rows(before: Sequence[str], after: Sequence[str]) -> Iterator[Row]:
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    yield from (Same(index, index) for index in range(start))
    yield from _middle(before[start : len(before) - end], after[start : len(after) - end], start)
    for index in range(end, 0, -1):
        yield Same(len(before) - index, len(after) - index)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the common start; most edits leave most of a file, so difflib sees little of it."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))


def _middle(before: Sequence[str], after: Sequence[str], offset: int) -> Iterator[Row]:
    if max(len(before), len(after)) > MATCHED_LINES:
        opcodes = [("replace", 0, len(before), 0, len(after))]
    else:
        opcodes = list(SequenceMatcher(None, before, after, autojunk=False).get_opcodes())
    for tag, i1, i2, j1, j2 in opcodes:
        if tag == "equal":
            yield from (Same(offset + i1 + k, offset + j1 + k) for k in range(i2 - i1))
        else:
            yield from _replaced(before, after, range(i1, i2), range(j1, j2), offset)


def _replaced(
    before: Sequence[str], after: Sequence[str], lefts: range, rights: range, offset: int
) -> Iterator[Row]:
    pairs = min(len(lefts), len(rights))
    for k in range(pairs):
        i, j = lefts[k], rights[k]
        left_marks, right_marks = word_marks(before[i], after[j])
        yield Row(offset + i, offset + j, left_marks, right_marks)
    yield from (Row(offset + i, None) for i in lefts[pairs:])
    yield from (Row(None, offset + j) for j in rights[pairs:])


def word_marks(before: str, after: str) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """Ranges of words that differ, left and right; none if the lines have too little in common."""
    if max(len(before), len(after)) > MARKED_CHARACTERS:
        return (), ()
    left, right = _WORD.findall(before), _WORD.findall(after)
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.ratio() < SIMILAR:
        return (), ()
    changed = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        _merged((_span(left, i1, i2) for _, i1, i2, _, _ in changed)),
        _merged((_span(right, j1, j2) for _, _, _, j1, j2 in changed)),
    )


def _span(words: Sequence[str], first: int, last: int) -> Range:
    start = sum(map(len, words[:first]))
    return start, start + sum(map(len, words[first:last]))


def _merged(ranges: Iterator[Range]) -> tuple[Range, ...]:
    return tuple((start, end) for start, end in ranges if end > start)

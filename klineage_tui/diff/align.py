"""Rows of a diff: which lines pair up, and which words of a pair differ."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

CONTEXT = 3
ANCHORED_LINES = 200
"""Longer changed regions are first cut at lines that are unique on both sides."""
MATCHED_LINES = 2_000
"""Still longer stretches without such a line are shown as one replaced block."""
MARKED_CHARACTERS = 400
"""Longer lines get no word marks."""
SIMILAR = 0.5
"""Below this ratio two lines are not versions of each other, and marking words would only confuse."""

_WORD = re.compile(r"\w+|\s+|.")
_VISIBLE = re.compile(r"\w+|[^\w\s]")

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
    i = j = 0
    for left, right in (*_anchors(before, after), (len(before), len(after))):
        for tag, i1, i2, j1, j2 in _opcodes(before[i:left], after[j:right]):
            if tag == "equal":
                yield from (Same(offset + i + i1 + k, offset + j + j1 + k) for k in range(i2 - i1))
            else:
                lefts, rights = range(i + i1, i + i2), range(j + j1, j + j2)
                yield from _replaced(before, after, lefts, rights, offset)
        if left < len(before):
            yield Same(offset + left, offset + right)
        i, j = left + 1, right + 1


def _opcodes(
    before: Sequence[str], after: Sequence[str]
) -> Sequence[tuple[str, int, int, int, int]]:
    if max(len(before), len(after)) > MATCHED_LINES:
        return [("replace", 0, len(before), 0, len(after))]
    return SequenceMatcher(None, before, after, autojunk=False).get_opcodes()


def _anchors(before: Sequence[str], after: Sequence[str]) -> list[Range]:
    """Lines that are unique on both sides and in the same order: the longest such chain.

    This is the patience diff of Bram Cohen. It keeps difflib, quadratic in the worst case, to the
    short stretches between anchors; short texts do without.
    """
    if max(len(before), len(after)) < ANCHORED_LINES:
        return []
    places = {line: index for index, line in enumerate(after)}
    left_times, right_times = Counter(before), Counter(after)
    links: list[tuple[int, int, int]] = []
    """(line before, line after, link of the anchor before it or -1)."""
    ends: list[int] = []
    """At k the smallest line after that ends a chain of k + 1 anchors; at the same k of `tips` its link."""
    tips: list[int] = []
    for index, line in enumerate(before):
        if left_times[line] != 1 or right_times[line] != 1:
            continue
        place = places[line]
        length = bisect_left(ends, place)
        links.append((index, place, tips[length - 1] if length else -1))
        ends[length : length + 1] = [place]
        tips[length : length + 1] = [len(links) - 1]
    found: list[Range] = []
    link = tips[-1] if tips else -1
    while link >= 0:
        index, place, link = links[link]
        found.append((index, place))
    return found[::-1]


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
    if _similarity(before, after) < SIMILAR:
        return (), ()
    left, right = _WORD.findall(before), _WORD.findall(after)
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    changed = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        _merged((_span(left, i1, i2) for _, i1, i2, _, _ in changed)),
        _merged((_span(right, j1, j2) for _, _, _, j1, j2 in changed)),
    )


def _similarity(before: str, after: str) -> float:
    """Share of equal words, 0 to 1. Spaces do not count: all code of one depth has those in common."""
    words = _VISIBLE.findall(before), _VISIBLE.findall(after)
    return SequenceMatcher(None, *words, autojunk=False).ratio()


def _span(words: Sequence[str], first: int, last: int) -> Range:
    start = sum(map(len, words[:first]))
    return start, start + sum(map(len, words[first:last]))


def _merged(ranges: Iterator[Range]) -> tuple[Range, ...]:
    return tuple((start, end) for start, end in ranges if end > start)

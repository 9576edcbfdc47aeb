"""Lines of toned text, cut and padded by terminal cells.

Panes build lines without Textual; the widget maps each tone to a style of the theme. So what a pane
says is tested as plain text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size

Tone = Literal[
    "plain",
    "dim",
    "strong",
    "good",
    "fair",
    "bad",
    "warn",
    "accent",
    "heading",
    "key",
    "code-comment",
    "code-keyword",
    "code-type",
    "code-name",
    "code-number",
    "code-string",
    "code-preproc",
]

CLIPPED = "…"
"""Stands where text was cut, so that nothing is cut silently."""

_UNSAFE = {code: chr(0x2400 + code) for code in range(32)}
_UNSAFE |= {0x7F: "␡"}
_UNSAFE |= dict.fromkeys((*range(0x80, 0xA0), 0x2028, 0x2029), "�")
# Bidirectional overrides can make a diff read other than it compiles (CVE-2021-42574).
_UNSAFE |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "�")


class Span(NamedTuple):
    """Text in one tone."""

    text: str
    tone: Tone = "plain"


Line = tuple[Span, ...]

BLANK: Line = ()


def line(*parts: str | tuple[str, Tone]) -> Line:
    """A line of the parts; a bare string is plain. Empty parts vanish."""
    spans = (Span(part) if isinstance(part, str) else Span(*part) for part in parts)
    return tuple(span for span in spans if span.text)


def printable(text: str) -> str:
    """`text` with every character that could move the cursor or reorder text replaced by a sign.

    Source files and compiler logs come from the worktree; none may write escape codes to a terminal.
    """
    return text.translate(_UNSAFE)


def width_of(spans: Iterable[Span]) -> int:
    """Terminal cells the spans take."""
    return sum(cell_len(span.text) for span in spans)


def text_of(spans: Iterable[Span]) -> str:
    """The spans as plain text."""
    return "".join(span.text for span in spans)


def clip(spans: Line, width: int) -> Line:
    """At most `width` cells of `spans`, ending in `…` if any were cut."""
    if width_of(spans) <= width:
        return spans
    if width < 1:
        return ()
    kept: list[Span] = []
    left = width - 1
    for text, tone in spans:
        cells = cell_len(text)
        if cells > left:
            kept.append(Span(set_cell_size(text, left), tone))
            break
        kept.append(Span(text, tone))
        left -= cells
    return (*(span for span in kept if span.text), Span(CLIPPED, "dim"))


def fit(spans: Line, width: int, *, right: bool = False) -> Line:
    """Exactly `width` cells: clipped with a mark, or padded on one side."""
    clipped = clip(spans, width)
    blank = width - width_of(clipped)
    if blank <= 0:
        return clipped
    pad = Span(" " * blank)
    return (pad, *clipped) if right else (*clipped, pad)


def cell(text: str, tone: Tone, width: int, *, right: bool = False) -> Line:
    """One column's text at exactly `width` cells."""
    return fit(line((text, tone)), width, right=right)


def between(left: Line, right: Line, width: int) -> Line:
    """`left` and `right` at the two ends of `width` cells; the right end keeps its room."""
    room = width - width_of(right)
    if room < 8:
        return fit(left, width)
    return (*fit(left, room - 1), Span(" "), *right)


def wrap(text: str, tone: Tone, width: int, *, first: Line = (), indent: int = 0) -> list[Line]:
    """`text` broken at spaces into lines of `width` cells after `first`, the rest indented.

    A word longer than a line is broken inside, never cut.
    """
    lines: list[Line] = []
    head: Line = first
    room = max(1, width - width_of(first))
    words: list[str] = []
    used = 0

    def flush() -> None:
        nonlocal head, room, used
        lines.append((*head, *line((" ".join(words), tone))))
        words.clear()
        used = 0
        head = line(" " * indent)
        room = max(1, width - indent)

    for word in text.split():
        for piece in _pieces(word, max(1, width - max(indent, width_of(first)))):
            need = cell_len(piece) + (1 if words else 0)
            if words and used + need > room:
                flush()
                need = cell_len(piece)
            words.append(piece)
            used += need
    if words or not lines:
        flush()
    return lines


def _pieces(word: str, width: int) -> Sequence[str]:
    if cell_len(word) <= width:
        return (word,)
    pieces, current = [], ""
    for character in word:
        if current and cell_len(current + character) > width:
            pieces.append(current)
            current = ""
        current += character
    return (*pieces, current)

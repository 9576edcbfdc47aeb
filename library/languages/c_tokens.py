"""Tokens of C-family source, for what a parse tree cannot give.

Two uses: digests that comments and spacing leave alone, and words that a grammar does not know,
which are blanked at equal length so that every offset still holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    rb"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
    |(?P<mark>[^\s])""",
    re.DOTALL | re.VERBOSE,
)


def tokens(data: bytes, start: int = 0, end: int | None = None) -> Iterator[re.Match[bytes]]:
    """Tokens of `data[start:end]` without comments; `lastgroup` tells string, word, number, mark."""
    for match in _TOKEN.finditer(data, start, len(data) if end is None else end):
        if match.lastgroup != "comment":
            yield match


def normalized(data: bytes, start: int = 0, end: int | None = None) -> bytes:
    """The range's tokens joined by single spaces: equal for code that differs in layout only."""
    return b" ".join(match.group() for match in tokens(data, start, end))


def words(data: bytes, start: int = 0, end: int | None = None) -> set[str]:
    """Identifiers and keywords in the range."""
    return {m.group().decode() for m in tokens(data, start, end) if m.lastgroup == "word"}


def blank(data: bytes, pattern: re.Pattern[bytes]) -> tuple[bytes, tuple[tuple[int, str], ...]]:
    """`data` with each match of `pattern` outside comments and strings made spaces.

    Newlines stay. Also gives what was blanked as (offset, text), in order.
    """
    out = bytearray(data)
    found = []
    cursor = 0
    for match in pattern.finditer(data):
        if match.start() < cursor:
            continue
        cursor = match.end()
        if match.group().startswith((b"/", b'"', b"'")):
            continue
        found.append((match.start(), match.group().decode("utf-8", "replace")))
        for i in range(match.start(), match.end()):
            if out[i] not in b"\r\n":
                out[i] = 0x20
    return bytes(out), tuple(found)


def blanking(*alternatives: bytes) -> re.Pattern[bytes]:
    """A pattern for `blank`: comments and strings are matched first, so that they are kept."""
    skipped = rb"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?"""
    return re.compile(b"|".join((skipped, *alternatives)), re.DOTALL)

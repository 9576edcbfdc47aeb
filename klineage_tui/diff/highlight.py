"""Source text as toned lines. The lexer is chosen by us: guessing takes `.sass` for a style sheet."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from klineage_tui.paint import Line, Span, Tone

if TYPE_CHECKING:
    from pygments.lexer import Lexer

HIGHLIGHTED_CHARACTERS = 200_000
"""Longer files are shown without colours of syntax: lexing takes seconds a megabyte."""
TAB = 4

_OPENCL_KEYWORD = re.compile(r"(__)?(kernel|global|local|constant|private|read_only|write_only)")
_OPENCL_TYPE = re.compile(
    r"(u?(char|short|int|long)|float|double|half)(2|3|4|8|16)?|size_t|event_t"
)


def plain_lines(text: str) -> list[str]:
    """The lines of `text` with tabs expanded. Only line ends of editors count, as for Pygments."""
    lines = _normal(text).split("\n")
    return lines if lines[-1] else lines[:-1]


def _normal(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(TAB)


def source_lines(path: str, text: str) -> tuple[Line, ...]:
    """One toned line for each of `plain_lines(text)`."""
    plain = _normal(text)
    lexer = _lexer(path) if len(plain) <= HIGHLIGHTED_CHARACTERS else None
    if lexer is None:
        return tuple((Span(one),) for one in plain_lines(text))
    opencl = path.endswith((".cl", ".clh"))
    lines: list[Line] = []
    current: list[Span] = []
    tones: dict[Any, Tone] = {}
    for token, value in lexer.get_tokens(plain):
        tone = _opencl_tone(value) if opencl else None
        if tone is None:
            tone = tones.get(token) or tones.setdefault(token, _tone(token))
        pieces = value.split("\n")
        for index, piece in enumerate(pieces):
            if index:
                lines.append(tuple(current))
                current = []
            if piece:
                current.append(Span(piece, tone))
    if current:
        lines.append(tuple(current))
    return tuple(lines)


def _lexer(path: str) -> Lexer | None:
    # Imported here because Pygments is needed only once there is a diff.
    from pygments.lexers.c_cpp import CLexer, CppLexer
    from pygments.lexers.c_like import CudaLexer
    from pygments.lexers.python import PythonLexer

    lexers: dict[str, Any] = {
        ".py": PythonLexer, ".cl": CLexer, ".clh": CLexer, ".cu": CudaLexer, ".cuh": CudaLexer,
        ".c": CLexer, ".h": CppLexer, ".hpp": CppLexer, ".cpp": CppLexer,
    }  # fmt: skip
    kind = lexers.get(PurePosixPath(path).suffix)
    return kind(stripnl=False, ensurenl=False) if kind else None


def _opencl_tone(value: str) -> Tone | None:
    if _OPENCL_KEYWORD.fullmatch(value):
        return "code-keyword"
    return "code-type" if _OPENCL_TYPE.fullmatch(value) else None


def _tone(token: Any) -> Tone:
    from pygments.token import Comment, Keyword, Name, Number, String

    kinds: tuple[tuple[Any, Tone], ...] = (
        (Comment.Preproc, "code-preproc"),
        (Comment.PreprocFile, "code-preproc"),
        (Comment, "code-comment"),
        (Keyword.Type, "code-type"),
        (Keyword, "code-keyword"),
        (Number, "code-number"),
        (String, "code-string"),
        (Name.Function, "code-name"),
        (Name.Decorator, "code-name"),
    )
    return next((tone for kind, tone in kinds if token in kind), "plain")

"""The token stream that decides what Python code does, and its digest.

Comments, blank lines, line breaks, docstrings and magic trailing commas are left out, so
reformatting a kernel keeps its verdicts; block structure is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from library.languages.python_source import Node, Source

_CLOSERS = (")", "]", "}")
_STATEMENT_HOLDERS = ("block", "module")


def tokens(source: Source, node: Node) -> Iterator[bytes]:
    """Tokens of a node in source order, with markers where blocks open and close."""
    if node.type in ("comment", "line_continuation") or _is_docstring(node):
        return
    if node.type == "string" or not node.children:
        yield source.data[node.start_byte : node.end_byte]
        return
    holds_statements = node.type in _STATEMENT_HOLDERS
    if holds_statements:
        yield b"\x02"
    for index, child in enumerate(node.children):
        if child.type == "," and _is_trailing_comma(node, index):
            continue
        yield from tokens(source, child)
        if holds_statements:
            yield b"\x1f"
    if holds_statements:
        yield b"\x03"


def token_digest(pieces: Iterable[tuple[str, Source, Node]]) -> str:
    """SHA-256 over named pieces of source, order of the pieces immaterial."""
    sha = hashlib.sha256()
    for name, source, node in sorted(pieces, key=lambda piece: piece[0]):
        sha.update(name.encode() + b"\0")
        for token in tokens(source, node):
            sha.update(token + b"\0")
    return sha.hexdigest()


def _is_docstring(node: Node) -> bool:
    """Whether a statement is a bare string: a docstring, or a comment written as one."""
    return (
        node.type == "expression_statement"
        and len(node.children) == 1
        and node.children[0].type in ("string", "concatenated_string")
    )


def _is_trailing_comma(parent: Node, index: int) -> bool:
    after = [child for child in parent.children[index + 1 :] if child.type != "comment"]
    if not after or after[0].type not in _CLOSERS:
        return False
    return not (parent.type == "tuple" and parent.named_child_count == 1)

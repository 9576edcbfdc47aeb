"""The token stream that decides what Python code does, and its digest.

Comments, blank lines, line breaks, docstrings and magic trailing commas are left out, so
reformatting a kernel keeps its verdicts; block structure is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from library.languages.python_source import Node, Source

_CLOSERS = (")", "]", "}")
_STATEMENT_HOLDERS = ("block", "module")


def tokens(source: Source, node: Node) -> list[bytes]:
    """Tokens of a node in source order, with markers where blocks open and close."""
    if node.type in ("comment", "line_continuation") or _is_docstring(node):
        return []
    if node.type == "string" or not node.children:
        return [source.data[node.start_byte : node.end_byte]]
    holds_statements = node.type in _STATEMENT_HOLDERS
    found = [b"\x02"] if holds_statements else []
    for index, child in enumerate(node.children):
        if child.type == "," and _is_trailing_comma(node, index):
            continue
        inner = tokens(source, child)
        found += inner
        if holds_statements and inner:
            found.append(b"\x1f")
    if holds_statements:
        found.append(b"\x03")
    return found


def token_digest(pieces: Iterable[tuple[str, Source, Node]], names: Iterable[str]) -> str:
    """SHA-256 over named pieces of source and what imported names stand for, in any order."""
    sha = hashlib.sha256("\n".join(sorted(names)).encode())
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

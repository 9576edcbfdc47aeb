"""Parse trees of C-family source: what OpenCL C and CUDA share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser, Query, QueryCursor, QueryError, Tree

from library.errors import CardError
from library.languages import Problem
from library.target import Locus

MAX_PROBLEMS = 5
"""Syntax errors shown for one file; what follows the first few is mostly their echo."""

WALKS_KEPT = 16
"""Subtrees whose nodes are remembered. Facts about one function ask for its nodes some forty times,
and the walk through Python is most of what that costs."""


@cache
def grammar() -> Language:
    """The tree-sitter CUDA grammar: C, C++ and the CUDA words."""
    return Language(tree_sitter_cuda.language())


def parse(data: bytes) -> Tree:
    """The tree of `data`; syntax errors are nodes of it."""
    return Parser(grammar()).parse(data)


def walk(node: Node) -> Iterator[Node]:
    """`node` and all below it, in source order."""
    return (found for found, _, _ in _below(node))


def depth(node: Node) -> int:
    """Levels below `node`, itself included."""
    return max(level for _, _, level in _below(node))


def find(node: Node, *types: str) -> Iterator[Node]:
    """Nodes at or below `node` of one of the given types."""
    return (found for found, type, _ in _below(node) if type in types)


@lru_cache(WALKS_KEPT)
def _below(node: Node) -> tuple[tuple[Node, str, int], ...]:
    """`node` and all below it with their types and levels. Iterative: generated code nests deeply."""
    found = []
    pending = [(node, 1)]
    while pending:
        current, level = pending.pop()
        found.append((current, current.type, level))
        if current.child_count:  # half of all nodes are leaves, whose empty list would be made
            pending.extend([(child, level + 1) for child in reversed(current.children)])
    return tuple(found)


def ancestors(node: Node, within: Node) -> Iterator[Node]:
    """Parents of `node`, nearest first, up to but without `within`."""
    parent = node.parent
    while parent is not None and parent != within:
        yield parent
        parent = parent.parent


def field(node: Node, name: str) -> Node:
    """The child that the grammar requires under `name`. Raises ValueError in a broken tree."""
    child = node.child_by_field_name(name)
    if child is None:
        raise ValueError(f"{node.type} without {name}")
    return child


def declared_name(declarator: Node) -> Node | None:
    """The identifier a declarator declares: `*x`, `x[4]`, `x = 0` and `(x)` all give x."""
    current: Node | None = declarator
    while current is not None and current.type not in ("identifier", "field_identifier"):
        below = current.child_by_field_name("declarator")
        if below is None:
            named = [
                c
                for c in current.named_children
                if "declarator" in c.type or c.type == "identifier"
            ]
            below = named[0] if named else None
        current = below
    return current


def unwrapped(node: Node) -> Node:
    """`node` without the parentheses around it."""
    while node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    return node


def locus(path: str, data: bytes, node: Node) -> Locus:
    """The node's range as it is written in `data`."""
    text = data[node.start_byte : node.end_byte].decode("utf-8", "replace")
    return Locus(path, node.start_byte, node.end_byte, node.start_point[0] + 1, text)


def syntax_problems(path: str, data: bytes, tree: Tree) -> tuple[Problem, ...]:
    """The first few syntax errors, each with its line and the text it stands at."""
    if not tree.root_node.has_error:
        return ()
    problems: dict[int, Problem] = {}
    for node in walk(tree.root_node):
        if len(problems) >= MAX_PROBLEMS:
            break
        line = node.start_point[0] + 1
        if node.is_missing:
            problems.setdefault(line, Problem(path, line, f'syntax error: expected "{node.type}"'))
        elif node.is_error:
            line, near = _culprit(data, node)
            problems.setdefault(line, Problem(path, line, f'syntax error near "{near}"'))
    return tuple(problems[line] for line in sorted(problems))


def _culprit(data: bytes, error: Node) -> tuple[int, str]:
    """Line and text of the innermost, last error below `error`: where parsing really stopped."""
    node = error
    while inner := [child for child in node.children if child.is_error]:
        node = inner[-1]
    text = data[node.start_byte : node.end_byte].decode("utf-8", "replace").strip()
    return node.start_point[0] + 1, text.split("\n")[0][:40]


def matches(root: Node, query: str) -> list[dict[str, list[Node]]]:
    """Matches of a tree-sitter query at or below `root`. Raises CardError for a bad query."""
    try:
        compiled = _query(query)
    except QueryError as error:
        raise CardError(f"anchor does not compile: {error}") from error
    return [captures for _, captures in QueryCursor(compiled).matches(root)]


@cache
def _query(query: str) -> Query:
    return Query(grammar(), query)

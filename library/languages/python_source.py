"""A Python source file as a concrete syntax tree: offsets kept, nothing imported or run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import tree_sitter
import tree_sitter_python

from library.languages import Problem
from library.target import Locus

GRAMMAR = tree_sitter.Language(tree_sitter_python.language())

Node = tree_sitter.Node

WALKS_KEPT = 16
"""Subtrees whose nodes are remembered: facts about a kernel ask for the same ones over and over."""


@dataclass(frozen=True, slots=True)
class Source:
    """One parsed file. Offsets are byte offsets into `data`."""

    path: str
    data: bytes
    root: Node

    def text(self, node: Node) -> str:
        """The source text of a node, decoded."""
        return self.data[node.start_byte : node.end_byte].decode(errors="replace")

    def locus(self, node: Node) -> Locus:
        """A node's range as a Locus of this file."""
        return Locus(
            self.path,
            node.start_byte,
            node.end_byte,
            line_of(node),
            self.text(node),
        )

    def indent(self, node: Node) -> str:
        """The white space before the first token of the line `node` starts on."""
        start = self.data.rfind(b"\n", 0, node.start_byte) + 1
        line = self.data[start : node.start_byte]
        return line[: len(line) - len(line.lstrip())].decode()

    def node_at(self, start: int, end: int) -> Node | None:
        """The smallest named node that covers exactly [start, end), or None."""
        node = self.root.named_descendant_for_byte_range(start, end)
        if node is None or (node.start_byte, node.end_byte) != (start, end):
            return None
        return node


def parse(path: str, data: bytes) -> Source:
    """The tree of a file; tolerant of syntax errors, which `syntax_problems` lists."""
    return Source(path, data, tree_sitter.Parser(GRAMMAR).parse(data).root_node)


def walk(node: Node) -> Iterator[Node]:
    """A node and all its descendants, in source order."""
    return (found for found, _ in _below(node))


def nodes_of(node: Node, *types: str) -> Iterator[Node]:
    """Descendants of the given grammar types, in source order."""
    return (found for found, type in _below(node) if type in types)


@lru_cache(WALKS_KEPT)
def _below(node: Node) -> tuple[tuple[Node, str], ...]:
    """A node and all its descendants, with their types. Iterative: generated code nests deeply."""
    found = []
    stack = [node]
    while stack:
        current = stack.pop()
        found.append((current, current.type))
        if current.child_count:  # half of all nodes are leaves, whose empty list would be made
            stack.extend(reversed(current.children))
    return tuple(found)


def ancestors(node: Node) -> Iterator[Node]:
    """What holds a node, innermost first."""
    while node.parent is not None:
        node = node.parent
        yield node


def line_of(node: Node) -> int:
    """1-based line a node starts on."""
    return node.start_point[0] + 1


def inside(node: Node, outer: Node) -> bool:
    """Whether `node` lies within `outer`, itself included."""
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def unwrap(node: Node) -> Node:
    """The expression inside any number of parentheses."""
    while node.type == "parenthesized_expression" and node.named_children:
        node = next(child for child in node.named_children if child.type != "comment")
    return node


def field(node: Node, name: str) -> Node:
    """A child the grammar guarantees. Raises LookupError on a tree with errors at that place."""
    child = node.child_by_field_name(name)
    if child is None:
        raise LookupError(f"{node.type} on line {line_of(node)} has no {name}")
    return child


def syntax_problems(source: Source) -> tuple[Problem, ...]:
    """One line for each place the file does not parse, at most eight."""
    if not source.root.has_error:
        return ()
    problems = []
    for node in walk(source.root):
        if node.is_missing:
            message = f'syntax error: missing "{node.type}"'
        elif node.type == "ERROR":
            near = source.text(node).strip().splitlines()
            message = f'syntax error near "{near[0][:40]}"' if near else "syntax error"
        else:
            continue
        problems.append(Problem(source.path, line_of(node), message))
    return tuple(problems[:8])

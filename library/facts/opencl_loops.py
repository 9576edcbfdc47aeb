"""Counted loops: variable, start, bound and step, as they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from library.languages.c_tree import field, find, unwrapped
from library.languages.opencl_kernel import KernelSource
from library.languages.opencl_source import qualifiers

_PRAGMA = re.compile(r"#\s*pragma\s+unroll\b")


@dataclass(frozen=True, slots=True)
class Loop:
    """`for (int k = start; k < bound; k += step)`."""

    node: Node
    variable: str
    start: Node | None
    """None where the loop goes on from what the variable already holds."""
    bound: Node
    inclusive: bool
    """`k <= bound`."""
    step: int
    body: Node
    declares: bool
    """The header declares the variable, so it is gone after the loop."""


def counted(source: KernelSource, node: Node) -> Loop | None:
    """The loop as a count upwards by a literal step, or None if it is another kind of loop.

    A body that changes the variable, or a bound that changes, makes it another kind.
    """
    condition = node.child_by_field_name("condition")
    update = node.child_by_field_name("update")
    if node.type != "for_statement" or condition is None or update is None:
        return None
    start = _start(source, node.child_by_field_name("initializer"))
    step = _step(source, update)
    condition = unwrapped(condition)
    if step is None or condition.type != "binary_expression":
        return None
    variable, by = step
    operator = source.text(field(condition, "operator"))
    if operator not in ("<", "<=") or source.text(unwrapped(field(condition, "left"))) != variable:
        return None
    if start is not None and start[0] != variable:
        return None
    loop = Loop(
        node,
        variable,
        start[1] if start else None,
        field(condition, "right"),
        operator == "<=",
        by,
        field(node, "body"),
        start is not None and start[2],
    )
    return loop if _steady(source, loop) else None


def _start(source: KernelSource, node: Node | None) -> tuple[str, Node, bool] | None:
    if node is None:
        return None
    if node.type == "declaration":
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and declarator.type == "init_declarator":
            return source.text(field(declarator, "declarator")), field(declarator, "value"), True
    if node.type == "assignment_expression":
        return source.text(field(node, "left")), field(node, "right"), False
    return None


def _step(source: KernelSource, node: Node) -> tuple[str, int] | None:
    if node.type == "update_expression" and source.text(node).strip("+ ") == source.text(
        field(node, "argument")
    ):
        return source.text(field(node, "argument")), 1
    if node.type == "assignment_expression" and source.text(field(node, "operator")) == "+=":
        text = source.text(field(node, "right"))
        constant = source.constants.get(text)
        by = constant.value if constant else int(text) if text.isdigit() else 0
        return (source.text(field(node, "left")), by) if by > 0 else None
    return None


def _steady(source: KernelSource, loop: Loop) -> bool:
    names = {source.text(n) for n in find(loop.bound, "identifier")} | {loop.variable}
    changed = (node for name in names for node in source.assigned.get(name, ()))
    return not any(loop.body.start_byte <= node.start_byte < loop.body.end_byte for node in changed)


def loops(source: KernelSource, node: Node | None = None) -> Iterator[Node]:
    """`for`, `while` and `do` loops at or below a node, outermost first."""
    return find(node or source.body, "for_statement", "while_statement", "do_statement")


def innermost(source: KernelSource, node: Node) -> bool:
    """Whether a loop holds no other loop."""
    return sum(1 for _ in loops(source, node)) == 1


def unroll_hint(source: KernelSource, node: Node) -> str | None:
    """The unroll pragma or attribute right before a loop, as written."""
    before = node.prev_sibling
    if before is not None and before.type == "preproc_call":
        text = source.text(before).strip()
        return text if _PRAGMA.match(text) else None
    start = before.end_byte if before is not None else node.start_byte
    hints = qualifiers(source.unit, start, node.start_byte)
    return next((text for text in hints if "unroll" in text), None)

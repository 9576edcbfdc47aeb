"""Global ids of a kernel, and the guard that sends surplus work-items home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tree_sitter import Node

from library.languages.c_tree import declared_name, field, unwrapped

if TYPE_CHECKING:
    from library.languages.opencl_kernel import KernelSource


@dataclass(frozen=True, slots=True)
class GlobalId:
    """One call of `get_global_id` with a literal dimension."""

    dim: int
    call: Node
    declaration: Node | None
    """The declaration whose only variable it initializes, perhaps cast or scaled."""
    variable: str
    """That variable; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Guard:
    """`if (row >= M || col >= N) return;`, or `if (row < M && col < N) { … }` around the rest."""

    bounds: Mapping[str, Node]
    """Id variable → the expression it stays below."""
    statements: tuple[Node, ...]
    """The `if` statements that were read."""
    block: Node | None
    """The `if` that holds the rest of the kernel, where it is written that way."""


def global_ids(source: KernelSource) -> tuple[GlobalId, ...]:
    """Every `get_global_id` call of the kernel's own function with a literal dimension."""
    found = []
    for name, call in source.calls():
        arguments = source.arguments(call)
        if name == "get_global_id" and len(arguments) == 1 and source.text(arguments[0]).isdigit():
            declaration, variable = _initialized(source, call)
            found.append(GlobalId(int(source.text(arguments[0])), call, declaration, variable))
    return tuple(found)


def _initialized(source: KernelSource, call: Node) -> tuple[Node | None, str]:
    node = call
    while node.parent is not None and node.parent.type in _PASSED_THROUGH:
        node = node.parent
    holder = node.parent
    if holder is None or holder.type != "init_declarator" or holder.parent is None:
        return None, ""
    name = declared_name(holder)
    return holder.parent, source.text(name) if name else ""


_PASSED_THROUGH = (
    "cast_expression",
    "parenthesized_expression",
    "binary_expression",
    "argument_list",
)


def guard_of(source: KernelSource) -> Guard:
    """The guard; without one, `bounds` is empty."""
    bounds: dict[str, Node] = {}
    statements = []
    block = None
    rest = [node for node in source.body.named_children if node.type != "comment"]
    for position, node in enumerate(rest):
        if node.type != "if_statement" or node.child_by_field_name("alternative"):
            continue
        condition = unwrapped(field(field(node, "condition"), "value"))
        leaves = _only_returns(field(node, "consequence"))
        last = position == len(rest) - 1
        if not leaves and not last:
            continue
        found = dict(_bounds(source, condition, leaves))
        if len(found) < _count(source, condition, "||" if leaves else "&&"):
            continue
        if found.keys() & bounds.keys():
            continue  # a second bound of one id: which is tighter is not known
        bounds |= found
        statements.append(node)
        block = None if leaves else node
    return Guard(bounds, tuple(statements), block)


def _only_returns(node: Node) -> bool:
    inner = (
        [c for c in node.named_children if c.type != "comment"]
        if node.type == "compound_statement"
        else [node]
    )
    return len(inner) == 1 and inner[0].type == "return_statement"


def _terms(source: KernelSource, condition: Node, joiner: str) -> Iterator[Node]:
    pending = [condition]
    while pending:
        term = unwrapped(pending.pop())
        joined = term.type == "binary_expression"
        if joined and source.text(field(term, "operator")) == joiner:
            pending += [field(term, "right"), field(term, "left")]
        else:
            yield term


def _count(source: KernelSource, condition: Node, joiner: str) -> int:
    return sum(1 for _ in _terms(source, condition, joiner))


def _bounds(source: KernelSource, condition: Node, leaves: bool) -> Iterator[tuple[str, Node]]:
    """(variable, bound) of each comparison with an id variable."""
    below, above = (">=", "<=") if leaves else ("<", ">")
    variables = {g.variable for g in source.global_ids if g.variable}
    for term in _terms(source, condition, "||" if leaves else "&&"):
        if term.type != "binary_expression":
            continue
        operator = source.text(field(term, "operator"))
        left, right = unwrapped(field(term, "left")), unwrapped(field(term, "right"))
        if operator == below and source.text(left) in variables:
            yield source.text(left), right
        elif operator == above and source.text(right) in variables:
            yield source.text(right), left

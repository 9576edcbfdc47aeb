"""What the statements of a loop body do: reduce into a scalar, store an element, name a value."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from library.languages.c_tree import field, find, unwrapped
from library.languages.opencl_kernel import KernelSource

PICKS = ("fmax", "fmin", "max", "min")
"""Reductions whose result does not depend on the order of the terms."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """`acc += term`, `acc *= term`, `acc = fmax(acc, term)` or `acc = fma(a, b, acc)`."""

    variable: str
    operator: str
    """`+`, `*`, or one of `PICKS`."""
    term: Node
    statement: Node
    fused: str = ""
    """`fma` or `mad` where a product is added by one of them; `term` is then the whole call."""

    @property
    def reorders(self) -> bool:
        """Whether another order of the terms rounds differently (for floating types)."""
        return self.operator in "+*"


@dataclass(frozen=True, slots=True)
class LoopBody:
    """The statements of a loop, by what they do."""

    statements: tuple[Node, ...]
    reductions: tuple[Reduction, ...]
    stores: tuple[Node, ...]
    """Assignments to an array element, as statements."""
    temporaries: tuple[Node, ...]
    """Declarations."""
    other: Node | None
    """The first statement that is none of these."""


def statements(block: Node) -> list[Node]:
    """Statements of a block, or of a body without braces; comments left out."""
    if block.type != "compound_statement":
        return [block]
    return [node for node in block.named_children if node.type != "comment"]


def changes_inside(statement: Node) -> Node | None:
    """The first assignment or increment that is part of a larger expression, as in `A[i++]`."""
    whole = statement.named_children[0] if statement.type == "expression_statement" else None
    changes = find(statement, "assignment_expression", "update_expression")
    return next((node for node in changes if node != whole), None)


def loop_body(source: KernelSource, body: Node) -> LoopBody:
    """The body of a counted loop, read statement by statement."""
    reductions, stores, temporaries = [], [], []
    other = None
    for statement in statements(body):
        inner = statement.named_children[0] if statement.named_child_count else statement
        if statement.type == "declaration":
            temporaries.append(statement)
        elif statement.type == "expression_statement" and (found := reduction(source, statement)):
            reductions.append(found)
        elif (
            statement.type == "expression_statement"
            and inner.type == "assignment_expression"
            and field(inner, "left").type == "subscript_expression"
        ):
            stores.append(statement)
        elif other is None:
            other = statement
    return LoopBody(
        tuple(statements(body)), tuple(reductions), tuple(stores), tuple(temporaries), other
    )


def reduction(source: KernelSource, statement: Node) -> Reduction | None:
    """The reduction an expression statement is, or None."""
    node = statement.named_children[0] if statement.named_child_count else statement
    if node.type != "assignment_expression":
        return None
    left, right = field(node, "left"), unwrapped(field(node, "right"))
    variable = source.text(left)
    if left.type != "identifier" or variable not in source.declared:
        return None
    operator = source.text(field(node, "operator"))
    fused = source.text(field(right, "function")) if right.type == "call_expression" else ""
    if operator == "=" and fused in ("fma", "mad"):
        arguments = [source.text(argument) for argument in source.arguments(right)]
        if arguments[2:] == [variable] and variable not in arguments[:2]:
            return Reduction(variable, "+", right, statement, fused)
        return None
    found: tuple[str, Node] | None = None
    if operator in ("+=", "*="):
        found = operator[0], right
    elif operator == "=" and right.type == "binary_expression":
        found = _written_out(source, variable, right)
    elif operator == "=" and right.type == "call_expression":
        found = _called(source, variable, right)
    if found is None or variable in {source.text(n) for n in find(found[1], "identifier")}:
        return None
    return Reduction(variable, found[0], found[1], statement)


def _written_out(source: KernelSource, variable: str, node: Node) -> tuple[str, Node] | None:
    """`acc = acc + term` or `acc = term + acc`."""
    operator = source.text(field(node, "operator"))
    left, right = field(node, "left"), field(node, "right")
    if operator not in ("+", "*"):
        return None
    if source.text(left) == variable:
        return operator, right
    return (operator, left) if source.text(right) == variable else None


def _called(source: KernelSource, variable: str, node: Node) -> tuple[str, Node] | None:
    """`acc = fmax(acc, term)`, in either order of arguments."""
    name, arguments = source.text(field(node, "function")), source.arguments(node)
    if name not in PICKS or len(arguments) != 2:
        return None
    names = [source.text(argument) for argument in arguments]
    if variable not in names:
        return None
    return name, arguments[1 - names.index(variable)]

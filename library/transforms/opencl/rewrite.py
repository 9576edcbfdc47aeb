"""Rewriting a kernel's text by its nodes: substitutions, indentation, edits of the launch."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from functools import wraps

from tree_sitter import Node

from library.edits import ByteEdit, Refusal, splice
from library.facts.opencl import OpenCLAnalysis
from library.facts.opencl_launch import global_element
from library.languages.c_tree import find
from library.languages.opencl_kernel import KernelSource
from library.target import Captures, Target
from library.transforms import Parameters, Transform


class StuckError(Exception):
    """The source has something a transform cannot edit. `str(error)` says what, for a Refusal."""


def analysis_of(target: Target) -> OpenCLAnalysis:
    """The target's OpenCL analysis, so that a transform does not parse again."""
    if isinstance(target.analysis, OpenCLAnalysis):
        return target.analysis
    return OpenCLAnalysis(target.kernel, target.workload, target.platform)


def edit(source: KernelSource, node: Node, text: str) -> ByteEdit:
    """Replace a node of the kernel's file."""
    return ByteEdit(source.path, node.start_byte, node.end_byte, text.encode())


def insert(source: KernelSource, offset: int, text: str) -> ByteEdit:
    """Insert into the kernel's file."""
    return ByteEdit(source.path, offset, offset, text.encode())


def rewritten(source: KernelSource, node: Node, edits: Iterable[ByteEdit]) -> str:
    """The node's text with edits (in file offsets) made inside it."""
    return rewritten_range(source, node.start_byte, node.end_byte, edits)


def rewritten_range(source: KernelSource, start: int, end: int, edits: Iterable[ByteEdit]) -> str:
    """As `rewritten`, for a range."""
    moved = [ByteEdit(e.path, e.start - start, e.end - start, e.replacement) for e in edits]
    return splice(source.unit.data[start:end], moved).decode()


def renamed(source: KernelSource, node: Node, names: Mapping[str, str]) -> str:
    """The node's text with variables replaced; an expression put for a variable is parenthesized
    where its place binds tighter than a sum."""
    edits = []
    for found in find(node, "identifier"):
        new = names.get(source.text(found))
        if new is not None:
            edits.append(edit(source, found, _fitted(source, found, new)))
    return rewritten(source, node, edits)


def _fitted(source: KernelSource, place: Node, text: str) -> str:
    if " " not in text or place.parent is None:
        return text
    parent = place.parent
    loose = ("parenthesized_expression", "subscript_argument_list", "argument_list")
    if parent.type in loose:
        return text
    sign = parent.child_by_field_name("operator")
    sums = parent.type == "binary_expression" and sign is not None and source.text(sign) == "+"
    return text if sums else f"({text})"


def indented(text: str, unit: str, levels: int = 1) -> str:
    """`text` with every line but the first moved right; blank lines stay blank."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(unit * levels + line if line.strip() else line for line in rest)])


def lines(indent: str, *texts: str) -> str:
    """Texts as lines of one indentation; the first starts where it is put."""
    return f"\n{indent}".join(texts)


def above_comments(node: Node) -> Node:
    """The first of the comment lines right above a statement, or the statement."""
    top = node
    before = node.prev_sibling
    while (
        before is not None
        and before.type == "comment"
        and before.end_point[0] == top.start_point[0] - 1
        and (
            before.prev_sibling is None or before.prev_sibling.end_point[0] < before.start_point[0]
        )
    ):
        top, before = before, before.prev_sibling
    return top


# ---- launch ---------------------------------------------------------------------------------------


def divided_global(source: KernelSource, dim: int, factor: int) -> ByteEdit:
    """Divide a dimension's global size by `factor`, rounded up.

    Raises StuckError if the launch does not write that size.
    """
    place = global_element(source, dim)
    if place is None:
        raise StuckError(f"the launch does not write a global size for dimension {dim}")
    return ByteEdit(place.path, place.start, place.end, divided(place.text, factor).encode())


def divided(expression: str, factor: int) -> str:
    """The expression divided by `factor`, rounded up, as Python.

    What is already a rounded-up quotient gets a larger divisor instead of a second division:
    ceil(ceil(n / a) / b) = ceil(n / (a b)).
    """
    node = ast.parse(expression.strip(), mode="eval").body
    quotient = _quotient(node)
    if quotient is not None:
        dividend, divisor = quotient
        return f"({ast.get_source_segment(expression.strip(), dividend)} + {divisor * factor - 1}) // {divisor * factor}"
    text = expression.strip()
    whole = isinstance(node, ast.Name | ast.Subscript | ast.Constant | ast.Call) or (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Mod)
    )
    return f"({text if whole else f'({text})'} + {factor - 1}) // {factor}"


def _quotient(node: ast.expr) -> tuple[ast.expr, int] | None:
    """(n, d) of `(n + (d - 1)) // d`."""
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.FloorDiv)
        and isinstance(node.right, ast.Constant)
        and isinstance(node.right.value, int)
        and isinstance(node.left, ast.BinOp)
        and isinstance(node.left.op, ast.Add)
        and isinstance(node.left.right, ast.Constant)
        and node.left.right.value == node.right.value - 1
    ):
        return node.left.left, node.right.value
    return None


def refusing(act: Callable[[Target, Captures, Parameters], tuple[ByteEdit, ...]]) -> Transform:
    """The transform that makes `act`'s edits, and refuses where `act` is stuck."""

    @wraps(act)
    def transform(
        target: Target, captures: Captures, parameters: Parameters
    ) -> tuple[ByteEdit, ...] | Refusal:
        try:
            return act(target, captures, parameters)
        except StuckError as stuck:
            return Refusal(str(stuck))

    return transform

"""The plain matrix product: one output a work-item, one loop over the shared extent."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from library.facts.opencl_index import Indices, global_id
from library.facts.opencl_loops import Loop, counted
from library.facts.opencl_memory import Access, Memory
from library.facts.opencl_reduction import loop_body, statements
from library.languages.c_tree import field, find, unwrapped
from library.languages.opencl_kernel import KernelSource


@dataclass(frozen=True, slots=True)
class Gemm:
    """`acc += A[row, k] * B[k, col]` over k, then one store of C[row, col]."""

    loop: Node
    update: Node
    """The statement that accumulates."""
    counter: Loop
    accumulator: str
    left: Access
    """Load of A: stride 1 along k, the same for every column."""
    right: Access
    """Load of B: stride 1 along the columns, the same for every row."""
    store: Node
    """The statement that stores."""


def gemm_loop(source: KernelSource, indices: Indices, memory: Memory) -> Gemm | str:
    """The product's parts, or what makes the kernel something else."""
    for bound in source.guard.bounds.values():
        if any(indices.depends(bound, global_id(dim)) for dim in (0, 1)):
            return f"line {source.line(bound)} bounds one id by another"
    block = source.guard.block
    inside = field(block, "consequence") if block else source.body
    ids = {g.declaration for g in source.global_ids}
    rest = [n for n in statements(inside) if n not in ids and n not in source.guard.statements]
    kinds = [n.type for n in rest]
    if kinds != ["declaration", "for_statement", "expression_statement"]:
        return "more than an accumulator, one loop and one store"
    loop = counted(source, rest[1])
    if loop is None or loop.step != 1 or loop.inclusive or loop.start is None:
        return f"line {source.line(rest[1])} does not count from 0 to an extent by 1"
    ids_in_bound = any(indices.depends(loop.bound, global_id(dim)) for dim in (0, 1))
    if ids_in_bound or indices.polynomial(loop.start).constant != 0:
        return f"line {source.line(rest[1])} does not run from 0 to one extent for all"
    body = loop_body(source, loop.body)
    if len(body.statements) != 1 or len(body.reductions) != 1 or body.reductions[0].operator != "+":
        return f"line {source.line(loop.body)} is not one sum"
    sum_ = body.reductions[0]
    if rest[0] != source.declared[sum_.variable][0].declaration or not _is_zero(
        source, sum_.variable
    ):
        return f"{sum_.variable} does not start at zero"
    term = unwrapped(sum_.term)
    loads = [a for a in memory.within(term) if a.reads]
    product = term.type == "binary_expression" and source.text(field(term, "operator")) == "*"
    if not product or {field(term, "left"), field(term, "right")} != {a.node for a in loads}:
        return f"line {source.line(term)} is not a product of two loads"
    for left, right in (loads, loads[::-1]):
        if _roles(source, indices, loop, left, right):
            return Gemm(rest[1], sum_.statement, loop, sum_.variable, left, right, rest[2])
    return f"line {source.line(term)} is not row times column"


def _is_zero(source: KernelSource, name: str) -> bool:
    value = source.declared[name][0].value
    return value is not None and source.text(value).rstrip("fF") in ("0", "0.0", "0.")


def _roles(source: KernelSource, indices: Indices, loop: Loop, left: Access, right: Access) -> bool:
    down = indices.stride(left.index, loop.variable)
    across = indices.stride(right.index, global_id(0))
    return (
        down is not None
        and down.constant == 1
        and across is not None
        and across.constant == 1
        and not indices.depends(left.node, global_id(0))
        and indices.depends(left.node, global_id(1))
        and not indices.depends(right.node, global_id(1))
        and loop.variable in {source.text(n) for n in find(right.node, "identifier")}
    )

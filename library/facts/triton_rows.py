"""Row kernels: a program walks a row in blocks, once or several times."""

from __future__ import annotations

from dataclasses import dataclass

from library.facts.triton_model import Loop, Model, once
from library.facts.triton_offsets import bounds_of, is_loop_bound
from library.facts.triton_pointers import address_of
from library.languages.python_source import Node, field, inside, nodes_of, unwrap

REDUCTIONS = ("sum", "max", "min", "argmax", "argmin", "reduce", "cumsum", "associative_scan")
LEAVES = ("break_statement", "continue_statement", "return_statement")
"""Statements after which the rest of a loop is not plain straight-line code."""


@dataclass(frozen=True, slots=True)
class RowPasses:
    """Several loops over the same row, block by block."""

    loops: tuple[Loop, ...]
    bound: str
    """The row's extent, as written: `n_cols`."""
    block: str
    reread: tuple[tuple[Node, ...], ...]
    """For each row read more than once, its loads in order, one a pass."""


@once
def row_passes_of(model: Model) -> RowPasses | None:
    """The passes over a row, if every loop of the kernel is one and some row is read twice."""
    loops = model.loops
    if len(loops) < 2 or model.calls("dot") or not loops[0].block:
        return None
    same = {(loop.bound, loop.block) for loop in loops}
    if len(same) != 1 or any(loop.node.parent != model.function.body for loop in loops):
        return None
    if next(nodes_of(model.function.body, *LEAVES), None):
        return None
    by_row: dict[tuple[object, ...], list[Node]] = {}
    for kind, call in model.accesses():
        loop, address = model.loop_at(call), address_of(model, call)
        if kind == "load" and loop is not None and address is not None:
            blocks = tuple(term.offset.block for term in address.terms)
            by_row.setdefault((address.base, address.scalars, blocks), []).append(call)
    reread = tuple(
        tuple(loads) for loads in by_row.values() if len({_start(model, n) for n in loads}) > 1
    )
    if not reread:
        return None
    return RowPasses(loops, loops[0].bound, loops[0].block, reread)


def row_integers(model: Model) -> tuple[str, ...]:
    """Integer parameters that place and bound the rows of a one-axis kernel: strides and width.

    Empty if an access is of another form, or if one of them is assigned in the kernel.
    """
    names: set[str] = set()
    for _, call in model.accesses():
        address, bounds = address_of(model, call), bounds_of(model, call)
        if address is None or not bounds or any(t.stride != "1" for t in address.terms):
            return ()
        if any(term.offset.wrap for term in address.terms):
            return ()
        names |= {factor for scalar in address.scalars for factor in scalar.split("*")}
        names |= {model.canonical(bound.bound) for bound in bounds}
    integers = [
        p.name for p in model.parameters if p.name in names and p.name not in model.constexprs
    ]
    return () if any(name in model.assignments for name in integers) else tuple(integers)


def tail_masked(model: Model, loop: Loop) -> bool:
    """Whether every access inside a loop is masked, and only against the loop's last block."""
    for _, call in model.accesses():
        if inside(call, loop.node):
            bounds = bounds_of(model, call)
            if not bounds or not all(is_loop_bound(model, bound, loop) for bound in bounds):
                return False
    return True


def block_with_a_meaning(model: Model, rows: RowPasses) -> Node | None:
    """A reduction over one block that is not folded into a value of the whole row: `tl.max(x)` as
    the scale of a block, or `s = s * 0.5 + tl.sum(x)`. Another block gives another result."""
    for loop in rows.loops:
        for call in nodes_of(loop.node, "call"):
            if model.language_name(call) in REDUCTIONS and not _folded(model, call, loop):
                return call
    return None


def _folded(model: Model, call: Node, loop: Loop) -> bool:
    """Whether a reduction's statement only adds it to, or picks it over, a running value."""
    statement = model.statement_of(call)
    node = statement.named_children[0] if statement.named_children else statement
    right = node.child_by_field_name("right")
    if right is None:
        return False
    right = unwrap(right)
    if node.type == "augmented_assignment":
        return model.text(field(node, "operator")) == "+=" and right == call
    if right.type == "call" and model.language_name(right) in ("maximum", "minimum"):
        parts = [unwrap(n) for n in field(right, "arguments").named_children]
    elif right.type == "binary_operator" and model.text(field(right, "operator")) == "+":
        parts = [unwrap(field(right, "left")), unwrap(field(right, "right"))]
    else:
        return False
    others = [part for part in parts if part != call]
    return len(parts) == 2 and len(others) == 1 and _runs(model, model.text(others[0]), loop)


def _runs(model: Model, name: str, loop: Loop) -> bool:
    """Whether a name is set before a loop and changed in it."""
    around = [inside(node, loop.node) for node in model.assignments.get(name, ())]
    return any(around) and not all(around)


def _start(model: Model, call: Node) -> int:
    loop = model.loop_at(call)
    return loop.node.start_byte if loop is not None else -1

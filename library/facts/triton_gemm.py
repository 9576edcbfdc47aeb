"""The tiled product at the heart of a kernel: its loop, its tile, its operands."""

from __future__ import annotations

from dataclasses import dataclass

from library.fact import Missing
from library.facts.triton_model import Loop, Model, once
from library.facts.triton_offsets import argument
from library.languages.python_source import Node, field, inside, unwrap

NO_GEMM = Missing(
    "no tiled product was recognised (one tl.dot in one loop over K, into a tl.zeros tile)",
    "judge it by hand; the form is described in docs/triton.md",
)


@dataclass(frozen=True, slots=True)
class Operand:
    """A or B: the name in the loop, and the loads that assign it (one a branch)."""

    name: str
    loads: tuple[Node, ...]
    """`tl.load` calls; descriptor loads are not among them."""


@dataclass(frozen=True, slots=True)
class Gemm:
    """`acc += tl.dot(a, b)` in a loop over K, with acc a (BLOCK_M, BLOCK_N) tile."""

    loop: Loop
    dot: Node
    update: Node
    """The statement that accumulates."""
    accumulator: str
    accumulator_dtype: str
    """`float32`, as the initial `tl.zeros` says; empty if it does not."""
    block_m: str
    block_n: str
    block_k: str
    a: Operand
    b: Operand


@once
def gemm_of(model: Model) -> Gemm | None:
    """The kernel's tiled product, if it has exactly one and it is of this form."""
    dots = model.calls("dot")
    if len(dots) != 1:
        return None
    dot = dots[0]
    loop = model.loop_at(dot)
    if loop is None or not loop.block:
        return None
    update = model.statement_of(dot)
    accumulator = _accumulator(model, dot, update)
    tile = _initial_tile(model, accumulator, loop, update) if accumulator else None
    left, right = argument(model, dot, "input", 0), argument(model, dot, "other", 1)
    if tile is None or left is None or right is None:
        return None
    a, b = _operand(model, left, loop), _operand(model, right, loop)
    if a is None or b is None:
        return None
    block_m, block_n, dtype = tile
    return Gemm(loop, dot, update, accumulator, dtype, block_m, block_n, loop.block, a, b)


def _accumulator(model: Model, dot: Node, update: Node) -> str:
    """The name a dot accumulates into: `acc += dot(…)`, `acc = dot(…, acc)`, `acc = acc + dot(…)`."""
    node = update.named_children[0] if update.type == "expression_statement" else update
    if node.type == "augmented_assignment" and model.text(field(node, "operator")) == "+=":
        return model.text(field(node, "left")) if unwrap(field(node, "right")) == dot else ""
    if node.type != "assignment":
        return ""
    name, right = model.text(field(node, "left")), node.child_by_field_name("right")
    if right is None:
        return ""
    if unwrap(right) == dot:
        carried = argument(model, dot, "acc", 2)
        return name if carried is not None and model.canonical(carried) == name else ""
    if right.type != "binary_operator" or model.text(field(right, "operator")) != "+":
        return ""
    plain = model.canonical(field(right, "left")) == name and unwrap(field(right, "right")) == dot
    return name if plain else ""


def _initial_tile(
    model: Model, accumulator: str, loop: Loop, update: Node
) -> tuple[str, str, str] | None:
    """(BLOCK_M, BLOCK_N, dtype) of the `tl.zeros` the accumulator starts from; None if the loop
    changes it in any statement but `update`."""
    bindings = model.assignments.get(accumulator, ())
    if any(inside(node, loop.node) and model.statement_of(node) != update for node in bindings):
        return None  # scaled, flushed or restarted: a block of K has a meaning of its own
    for node in bindings:
        right = node.child_by_field_name("right")
        if node.type != "assignment" or right is None or inside(node, loop.node):
            continue
        if not model.is_language(unwrap(right), "zeros"):
            continue
        shape = argument(model, unwrap(right), "shape", 0)
        dtype = argument(model, unwrap(right), "dtype", 1)
        if shape is not None and shape.type in ("tuple", "list") and len(shape.named_children) == 2:
            rows, columns = (model.canonical(child) for child in shape.named_children)
            return rows, columns, model.text(dtype).split(".")[-1] if dtype is not None else ""
    return None


def _operand(model: Model, node: Node, loop: Loop) -> Operand | None:
    """The loads behind an argument of the dot, through casts and through one name."""
    node = _uncast(model, node)
    if node.type != "identifier":
        return None
    name = model.text(node)
    loads = []
    for bound in model.assignments.get(name, ()):
        if bound.type != "assignment" or not inside(bound, loop.node):
            return None
        right = bound.child_by_field_name("right")
        value = _uncast(model, right) if right is not None else None
        if value is not None and model.is_language(value, "load"):
            loads.append(value)
        elif value is None or value.type != "call" or not _is_descriptor_load(model, value):
            return None
    return Operand(name, tuple(loads))


def _uncast(model: Model, node: Node) -> Node:
    """What `x.to(dtype)` casts."""
    node = unwrap(node)
    while node.type == "call" and (function := field(node, "function")).type == "attribute":
        if model.text(field(function, "attribute")) != "to":
            break
        node = unwrap(field(function, "object"))
    return node


def _is_descriptor_load(model: Model, call: Node) -> bool:
    function = field(call, "function")
    return function.type == "attribute" and model.text(field(function, "attribute")) == "load"

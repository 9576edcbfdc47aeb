"""Fact functions about a kernel's tiled product, its tile and its program ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gate.values.workload import Axes, shape_label
from library.fact import Answer, Argument, Known, Missing
from library.facts.triton_constants import constant, definition
from library.facts.triton_gemm import NO_GEMM, Gemm, gemm_of
from library.facts.triton_grid import grid_blocks, grid_tuple, other_use
from library.facts.triton_launch_facts import (
    Function,
    first_shape,
    missing_shape,
)
from library.facts.triton_model import LANGUAGE_PACKAGE, Model
from library.facts.triton_offsets import argument, bounds_of
from library.facts.triton_operand_facts import operand_bytes
from library.facts.triton_pointers import address_of, unbounded
from library.facts.triton_program_ids import linear_id_of, persistent_loop, program_ids_of
from library.facts.triton_tensors import scalar
from library.languages.python_source import Node, inside, line_of, nodes_of

ATOMICS = tuple(f"atomic_{op}" for op in ("add", "max", "min", "and", "or", "xor", "xchg", "cas"))


def _tile(model: Model, which: str, axes: Axes | None) -> Answer:
    gemm = gemm_of(model)
    if gemm is None:
        return NO_GEMM
    name = {"m": gemm.block_m, "n": gemm.block_n, "k": gemm.block_k}[which]
    return Known(int(name), "a literal") if name.isdigit() else constant(model, name, axes)


def _tile_m(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    return _tile(model, "m", axes)


def _tile_n(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    return _tile(model, "n", axes)


def _tile_k(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    return _tile(model, "k", axes)


def _is_gemm(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    gemm = gemm_of(model)
    if gemm is None:
        return Known(False, NO_GEMM.reason)
    return Known(True, f"tl.dot on line {line_of(gemm.dot)} over {gemm.loop.bound}")


def _tiles_editable(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Whether the three tile constants are one integer literal each, of their own."""
    gemm = gemm_of(model)
    if gemm is None:
        return Known(False, NO_GEMM.reason)
    places: list[int] = []
    for name in (gemm.block_m, gemm.block_n, gemm.block_k):
        found = definition(model, name)
        if isinstance(found, Missing):
            return Known(False, found.reason)
        shared = other_use(model, found)
        if shared is not None:
            return Known(False, f"line {line_of(shared)} uses what {name} is set by, too")
        places.append(found.node.start_byte)
    if len(set(places)) < len(places):
        return Known(False, "two tile constants share one literal")
    return Known(True, f"{gemm.block_m}, {gemm.block_n} and {gemm.block_k} are literals")


def _grid_follows(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Whether the grid is computed from the tile constants themselves."""
    gemm = gemm_of(model)
    if gemm is None:
        return Known(False, NO_GEMM.reason)
    blocks = grid_blocks(model)
    absent = [name for name in (gemm.block_m, gemm.block_n) if name not in blocks]
    if absent:
        return Known(False, f"the grid is not computed from {' and '.join(absent)}")
    return Known(True, "the grid divides by the same constants")


def _masks_follow(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Whether every access is right for any tile: kept inside its extents by masks or wraps, zero
    past the end of K, and about nothing but operands and the output."""
    gemm = gemm_of(model)
    if gemm is None:
        return Known(False, NO_GEMM.reason)
    operands = {*gemm.a.loads, *gemm.b.loads}
    for kind, call in model.accesses():
        where = f"tl.{kind} on line {line_of(call)}"
        try:
            bare = unbounded(model, call, gemm.loop)
        except LookupError:
            return Known(False, f"{where} is no sum of offsets with a mask of bounds")
        if bare is not None:
            return Known(False, f"{where} does not mask {bare.offset.block}")
        if kind == "store" and not _stores_tile(model, gemm, call):
            return Known(False, f"{where} stores something else than the tile")
        if inside(call, gemm.loop.node) and call not in operands:
            return Known(False, f"{where} is in the loop over K and loads no operand")
        other = argument(model, call, "other", 2)
        if call in operands and (other is None or model.text(other) not in ("0", "0.0")):
            return Known(False, f"{where} does not fill with zeros")
    carried = _carried_out(model, gemm)
    if carried:
        return Known(False, f"{carried} is set in the loop over K and used after it")
    return Known(True, "every load and store masks each offset")


def _stores_tile(model: Model, gemm: Gemm, call: Node) -> bool:
    address = address_of(model, call)
    blocks = {term.offset.block for term in address.terms} if address is not None else set()
    return blocks == {gemm.block_m, gemm.block_n}


def _carried_out(model: Model, gemm: Gemm) -> str:
    """A name other than the accumulator that the loop over K sets for what comes after it."""
    loop = gemm.loop.node
    for name, bindings in model.assignments.items():
        if name == gemm.accumulator or not any(inside(node, loop) for node in bindings):
            continue
        later = (
            node
            for node in nodes_of(model.function.body, "identifier")
            if node.start_byte >= loop.end_byte and model.text(node) == name
        )
        if next(later, None) is not None:
            return name
    return ""


def _first_shape_tiles(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Programs at the first declared shape for a tile of the given rows and columns."""
    shape = first_shape(model)
    rows, columns = gemm_extents(model, shape)
    if shape is None:
        return missing_shape(model)
    if isinstance(rows, Missing) or isinstance(columns, Missing):
        return rows if isinstance(rows, Missing) else columns
    tile = [value for value in arguments if isinstance(value, int)]
    if len(tile) != 2 or not all(tile):
        return Missing("first_shape_tiles takes a tile's rows and columns", "correct the card")
    count = -(-int(str(rows.value)) // tile[0]) * -(-int(str(columns.value)) // tile[1])
    return Known(count, f"{rows.value} x {columns.value} in tiles of {tile[0]} x {tile[1]}")


def output_bounds(model: Model) -> tuple[str, str] | None:
    """Names of the output's rows and columns, from the mask of a 2-D store: ("M", "N")."""
    for kind, call in model.accesses():
        bounds = {b.offset.axis: b for b in bounds_of(model, call) or ()}
        if kind == "store" and set(bounds) == {0, 1}:
            return model.canonical(bounds[0].bound), model.canonical(bounds[1].bound)
    return None


def gemm_extents(model: Model, shape: Axes | None) -> tuple[Answer, Answer]:
    """Rows and columns of the output at a shape, from the bounds of the store's mask."""
    bounds = output_bounds(model)
    if bounds is not None:
        return scalar(model, bounds[0], shape), scalar(model, bounds[1], shape)
    missing = Missing("no masked 2-D store says the output's extents", "mask the store by M and N")
    return missing, missing


def _first_shape_operand_bytes(
    model: Model, arguments: tuple[Argument, ...], axes: Axes | None
) -> Answer:
    """Size of A and B together at the first declared shape."""
    gemm, shape = gemm_of(model), first_shape(model)
    if gemm is None:
        return NO_GEMM
    if shape is None:
        return missing_shape(model)
    rows, columns = gemm_extents(model, shape)
    depth, size = scalar(model, gemm.loop.bound, shape), operand_bytes(model, shape)
    known = [int(str(a.value)) for a in (rows, columns, depth, size) if isinstance(a, Known)]
    missing = [a for a in (rows, columns, depth, size) if isinstance(a, Missing)]
    if missing:
        return missing[0]
    m, n, k, width = known
    return Known((m + n) * k * width, f"A {m} x {k} and B {k} x {n} at {shape_label(shape)}")


def _first_shape_k_blocks(
    model: Model, arguments: tuple[Argument, ...], axes: Axes | None
) -> Answer:
    """Trips of the loop over K at the first declared shape."""
    blocked = _first_shape_k(model)
    if not isinstance(blocked, _KBlocks):
        return blocked
    return Known(-(-blocked.extent // max(blocked.block, 1)), blocked.text)


@dataclass(frozen=True, slots=True)
class _KBlocks:
    """The extent of K and the size of its blocks at the first declared shape."""

    extent: int
    block: int
    shape: Axes
    text: str
    """`K=4096 in blocks of 64`."""


def _first_shape_k(model: Model) -> _KBlocks | Answer:
    """How K is walked at the first declared shape, or what is not known of it."""
    gemm, shape = gemm_of(model), first_shape(model)
    if gemm is None:
        return NO_GEMM
    if shape is None:
        return missing_shape(model)
    extent, block = scalar(model, gemm.loop.bound, shape), _tile(model, "k", shape)
    if isinstance(extent, Missing) or isinstance(block, Missing):
        return extent if isinstance(extent, Missing) else block
    text = f"{gemm.loop.bound}={extent.value} in blocks of {block.value}"
    return _KBlocks(int(str(extent.value)), int(str(block.value)), shape, text)


def _canonical_pids(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    gemm = gemm_of(model)
    if gemm is None:
        return Known(False, NO_GEMM.reason)
    ids = program_ids_of(model, gemm)
    if ids is None:
        return Known(False, "the tile is not decoded from program ids in plain row-major order")
    return Known(True, f"{ids.row} and {ids.column} are decoded on line {line_of(ids.first)}")


def _order_free(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Whether programs may run in any order: no atomics, ids read only where the tile is decoded."""
    for name in ATOMICS:
        for call in model.calls(name):
            return Known(False, f"tl.{name} on line {line_of(call)}")
    for module, helper in model.helpers:
        for call in nodes_of(helper.function.body, "call"):
            name = module.callee(call).removeprefix(LANGUAGE_PACKAGE)
            if name in (*ATOMICS, "program_id", "num_programs"):
                return Known(False, f"tl.{name} in {helper.name}, line {line_of(call)}")
    if not model.calls("program_id"):
        return Known(False, "no tl.program_id is read")
    reads = len(model.calls("program_id")) + len(model.calls("num_programs"))
    gemm = gemm_of(model)
    linear, ids = linear_id_of(model), program_ids_of(model, gemm) if gemm is not None else None
    looped = 2 if persistent_loop(model) is not None else 0
    expected = 4 if linear is not None else looped or (2 if ids is not None else reads)
    one_axis = ids is not None and ids.linear.isidentifier() and not looped
    if reads != (1 if one_axis else expected):
        return Known(False, "program ids are read beyond the choice of the tile")
    return Known(True, "no atomics; program ids only choose the tile")


def _two_axis_grid(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Whether the tile comes from a 2-D grid in launch order, grouped or not, and the host writes
    the grid as a pair."""
    gemm = gemm_of(model)
    if gemm is None:
        return Known(False, NO_GEMM.reason)
    if next(nodes_of(model.function.body, "return_statement"), None):
        return Known(False, "the kernel returns early")
    ids, grid = program_ids_of(model, gemm), grid_tuple(model)
    plain = ids is not None and not ids.linear.isidentifier()
    if not plain and linear_id_of(model) is None:
        return Known(False, "the tile is not read from two program ids")
    if grid is None or len(grid.named_children) != 2 or output_bounds(model) is None:
        return Known(False, "the grid is not a pair of tile counts over the store's bounds")
    return Known(True, f"a {model.text(grid)} grid")


def _k_divides_somewhere(
    model: Model, arguments: tuple[Argument, ...], axes: Axes | None
) -> Answer:
    """Whether K is a multiple of BLOCK_K at the first declared shape."""
    blocked = _first_shape_k(model)
    if not isinstance(blocked, _KBlocks):
        return blocked
    whole = blocked.extent % blocked.block == 0
    return Known(whole, f"{blocked.text} at {shape_label(blocked.shape)}")


def _accumulates_fp32(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    gemm = gemm_of(model)
    if gemm is None:
        return NO_GEMM
    dtype = gemm.accumulator_dtype or "no dtype"
    return Known(dtype == "float32", f"{gemm.accumulator} starts as tl.zeros with {dtype}")


def _adds_dot(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    gemm = gemm_of(model)
    if gemm is None:
        return Known(False, NO_GEMM.reason)
    carried = argument(model, gemm.dot, "acc", 2) is not None
    return Known(not carried, f"line {line_of(gemm.update)}: {model.text(gemm.update)}")


GEMM_FACTS: Mapping[str, Function] = {
    "is_gemm": _is_gemm,
    "tile_m": _tile_m,
    "tile_n": _tile_n,
    "tile_k": _tile_k,
    "tiles_editable": _tiles_editable,
    "grid_follows_tiles": _grid_follows,
    "masks_follow_tiles": _masks_follow,
    "first_shape_tiles": _first_shape_tiles,
    "canonical_row_major_pids": _canonical_pids,
    "two_axis_grid": _two_axis_grid,
    "program_order_free": _order_free,
    "first_shape_operand_bytes": _first_shape_operand_bytes,
    "first_shape_k_blocks": _first_shape_k_blocks,
    "k_divides": _k_divides_somewhere,
    "accumulates_fp32": _accumulates_fp32,
    "adds_dot": _adds_dot,
}

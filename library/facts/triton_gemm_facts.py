"""Fact functions about a kernel's tiled product, its tile and its program ids."""

from __future__ import annotations

from collections.abc import Mapping

from gate.values.workload import Axes, shape_label
from library.fact import Answer, Argument, Known, Missing
from library.facts.triton_constants import constant, definition
from library.facts.triton_gemm import Gemm, Operand, gemm_of, program_ids_of
from library.facts.triton_grid import grid_blocks
from library.facts.triton_host import extents, stride, tensor
from library.facts.triton_launch_facts import (
    Function,
    element_bytes,
    first_shape,
    host_node,
    missing_shape,
    stride_of,
)
from library.facts.triton_model import Model
from library.facts.triton_offsets import Bound, argument, bounds_of, is_loop_bound
from library.facts.triton_pointers import Address, address_of, extents_bounded
from library.facts.triton_tensors import scalar
from library.languages.python_source import line_of

NO_GEMM = Missing(
    "no tiled product was recognised (one tl.dot in one loop over K, into a tl.zeros tile)",
    "judge it by hand; the form is described in docs/triton.md",
)
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
    """Whether every access is kept inside its extents by masks or wraps, for any tile."""
    for kind, call in model.accesses():
        address, covered = address_of(model, call), extents_bounded(model, call)
        where = f"tl.{kind} on line {line_of(call)}"
        if address is None or covered is None:
            return Known(False, f"{where} is no sum of offsets with a mask of bounds")
        bare = [t.offset.block for t in address.terms if t.offset.block not in covered]
        if bare:
            return Known(False, f"{where} does not mask {bare[0]}")
    return Known(True, "every load and store masks each offset")


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


def gemm_extents(model: Model, shape: Axes | None) -> tuple[Answer, Answer]:
    """Rows and columns of the output at a shape, from the bounds of the store's mask."""
    for kind, call in model.accesses():
        if kind != "store":
            continue
        bounds = {b.offset.axis: b for b in bounds_of(model, call) or ()}
        if set(bounds) == {0, 1}:
            rows, columns = (scalar(model, model.canonical(bounds[i].bound), shape) for i in (0, 1))
            return rows, columns
    missing = Missing("no masked 2-D store says the output's extents", "mask the store by M and N")
    return missing, missing


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
    gemm = gemm_of(model)
    ids = program_ids_of(model, gemm) if gemm is not None else None
    if ids is None:
        return Known(False, "the tile is not decoded from program ids in plain row-major order")
    if model.calls("num_programs") and "num_programs(0) *" not in ids.linear:
        return Known(False, "tl.num_programs is used: the grid may be persistent")
    return Known(True, "no atomics; program ids only choose the tile")


def _tail_mask_only(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Whether both operands' masks have a term that only cuts off the last block of K."""
    gemm = gemm_of(model)
    if gemm is None:
        return Known(False, NO_GEMM.reason)
    if not gemm.loop.bound.isidentifier():
        return Known(False, f"the loop runs over `{gemm.loop.bound}`, which is no parameter")
    for operand in (gemm.a, gemm.b):
        if len(operand.loads) != 1:
            return Known(False, f"{operand.name} is not loaded by exactly one masked tl.load")
        bounds = bounds_of(model, operand.loads[0])
        if not bounds or not any(is_loop_bound(model, bound, gemm.loop) for bound in bounds):
            return Known(False, f"the mask of {operand.name} has no term that cuts off K's tail")
    return Known(True, f"masks of {gemm.a.name} and {gemm.b.name} cut off the last {gemm.block_k}")


def _k_divides_somewhere(
    model: Model, arguments: tuple[Argument, ...], axes: Axes | None
) -> Answer:
    """Whether K is a multiple of BLOCK_K at the first declared shape."""
    gemm, shape = gemm_of(model), first_shape(model)
    if gemm is None:
        return NO_GEMM
    if shape is None:
        return missing_shape(model)
    extent, block = scalar(model, gemm.loop.bound, shape), _tile(model, "k", shape)
    if isinstance(extent, Missing) or isinstance(block, Missing):
        return extent if isinstance(extent, Missing) else block
    whole = int(str(extent.value)) % int(str(block.value)) == 0
    because = f"{gemm.loop.bound}={extent.value} in blocks of {block.value} at {shape_label(shape)}"
    return Known(whole, because)


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


def _launch_passes_tiles(
    model: Model, arguments: tuple[Argument, ...], axes: Axes | None
) -> Answer:
    """Whether the launch itself passes each tile constant, as a number or a name."""
    gemm = gemm_of(model)
    if gemm is None:
        return Known(False, NO_GEMM.reason)
    for name in (gemm.block_m, gemm.block_n, gemm.block_k):
        node = host_node(model, name)
        if node is None or node.type not in ("identifier", "integer"):
            return Known(False, f"the launch does not pass {name} as a number or a name")
    return Known(True, "the launch passes each block size")


def _operand_bytes(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    gemm = gemm_of(model)
    if gemm is None:
        return NO_GEMM
    address = operand_address(model, gemm.a)
    if address is None:
        return Missing(f"the loads of {gemm.a.name} are no plain sums", "judge it by hand")
    return element_bytes(model, address.base, axes)


def operand_address(model: Model, operand: Operand) -> Address | None:
    """The one address all loads of an operand share, or None."""
    found = {address_of(model, load) for load in operand.loads}
    return found.pop() if len(found) == 1 else None


def matrix_of(model: Model, gemm: Gemm, operand: Operand) -> str | None:
    """The wrapper's tensor an operand walks as a plain 2-D tile, or None.

    Its address must be base + rows * stride(0) + columns * stride(1), with no further terms but the
    loop's own advance, and its masks must end at exactly the tensor's extents.
    """
    address = operand_address(model, operand)
    if address is None or address.scalars or len(address.terms) != 2:
        return None
    name = tensor(model, address.base)
    by_axis = {term.offset.axis: term for term in address.terms}
    if name is None or set(by_axis) != {0, 1}:
        return None
    for axis, term in by_axis.items():
        node = host_node(model, term.stride)
        step = stride(model, node) if node is not None else None
        unit = term.stride == "1" and axis == 1
        if not unit and (step is None or (step.tensor, step.index) != (name, axis)):
            return None
    along_k = 1 if operand is gemm.a else 0
    advance = {"*".join(sorted((gemm.block_k, by_axis[along_k].stride)))}
    if {"*".join(sorted(a.split("*"))) for a in address.advances} - advance - {gemm.block_k}:
        return None
    limits = [(term.offset.wrap, axis) for axis, term in by_axis.items() if term.offset.wrap]
    for load in operand.loads:
        bounds = bounds_of(model, load)
        if bounds is None:
            return None
        limits += [(_limit(model, gemm, bound), bound.offset.axis) for bound in bounds]
    for text, axis in limits:
        node = host_node(model, text)
        dimensions = extents(model, node) if node is not None else frozenset()
        if (name, axis) not in {(d.tensor, d.index) for d in dimensions}:
            return None
    return name


def _limit(model: Model, gemm: Gemm, bound: Bound) -> str:
    """The extent a bound keeps offsets inside: `K` also for `offs < K - k * BLOCK_K`."""
    if is_loop_bound(model, bound, gemm.loop):
        return gemm.loop.bound
    return model.canonical(bound.bound)


def _operands_are_matrices(
    model: Model, arguments: tuple[Argument, ...], axes: Axes | None
) -> Answer:
    gemm = gemm_of(model)
    if gemm is None:
        return Known(False, NO_GEMM.reason)
    for operand in (gemm.a, gemm.b):
        if matrix_of(model, gemm, operand) is None:
            text = f"{operand.name} is not a tile of a whole 2-D tensor, masked at its extents"
            return Known(False, text)
    return Known(True, f"{gemm.a.name} and {gemm.b.name} are tiles of whole 2-D tensors")


def _rows_aligned(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Whether rows of both operands start on a multiple of so many bytes at the first shape."""
    gemm, shape = gemm_of(model), first_shape(model)
    wanted = arguments[0] if arguments and isinstance(arguments[0], int) else 16
    if gemm is None:
        return NO_GEMM
    if shape is None:
        return missing_shape(model)
    for operand in (gemm.a, gemm.b):
        address = operand_address(model, operand)
        if address is None:
            return Missing(f"the loads of {operand.name} are no plain sums", "judge it by hand")
        steps = [stride_of(model, address.base, dimension, shape) for dimension in (0, 1)]
        size = element_bytes(model, address.base, shape)
        unknown = [answer for answer in (*steps, size) if isinstance(answer, Missing)]
        if unknown:
            return unknown[0]
        row, column, width = (int(str(a.value)) for a in (*steps, size) if isinstance(a, Known))
        if column != 1 or row * width % wanted:
            return Known(False, f"strides of {address.base} are {row}, {column} of {width} bytes")
    return Known(True, f"rows start on {wanted} bytes at {shape_label(shape)}")


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
    "program_order_free": _order_free,
    "mask_only_cuts_tail": _tail_mask_only,
    "k_divides": _k_divides_somewhere,
    "accumulates_fp32": _accumulates_fp32,
    "adds_dot": _adds_dot,
    "launch_passes_tiles": _launch_passes_tiles,
    "operand_bytes": _operand_bytes,
    "operands_are_matrices": _operands_are_matrices,
    "rows_aligned": _rows_aligned,
}

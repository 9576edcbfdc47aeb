"""Fact functions about the operands of a tiled product: addresses, masks, alignment."""

from __future__ import annotations

from collections.abc import Mapping

from gate.values.workload import Axes, shape_label
from library.fact import Answer, Argument, Known, Missing
from library.facts.triton_constants import definition
from library.facts.triton_gemm import NO_GEMM, Gemm, Operand, gemm_of
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
from library.facts.triton_pointers import Address, address_of
from library.facts.triton_tensors import extent_value, tensor_shape
from library.languages.triton_kernels import is_jit


def _operand_bytes(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    return operand_bytes(model, axes)


def operand_bytes(model: Model, axes: Axes | None) -> Answer:
    """Size of an element of A, bytes."""
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
        bounds, other = bounds_of(model, load), argument(model, load, "other", 2)
        if bounds is None or (other is not None and model.text(other) not in ("0", "0.0")):
            return None
        limits += [(_limit(model, gemm, bound), bound.offset.axis) for bound in bounds]
    for text, axis in limits:
        if axis is None or not _is_extent(model, text, name, axis):
            return None
    return name


def _is_extent(model: Model, text: str, name: str, axis: int) -> bool:
    """Whether a bound is a tensor's extent: by the wrapper's own unpacking, or else by value at
    every declared shape."""
    node = host_node(model, text)
    if node is None:
        return False
    if (name, axis) in {(d.tensor, d.index) for d in extents(model, node)}:
        return True
    shapes = [(tensor_shape(model, name, axes), axes) for axes in model.shapes]
    return bool(shapes) and all(
        shape is not None
        and shape[axis] is not None
        and shape[axis] == extent_value(model, node, axes)
        for shape, axes in shapes
    )


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
        if argument(model, operand.loads[0], "mask", None) is None:
            return Known(False, f"the load of {operand.name} names no mask")
        bounds = bounds_of(model, operand.loads[0])
        if not bounds or not any(is_loop_bound(model, bound, gemm.loop) for bound in bounds):
            return Known(False, f"the mask of {operand.name} has no term that cuts off K's tail")
    return Known(True, f"masks of {gemm.a.name} and {gemm.b.name} cut off the last {gemm.block_k}")


def _heuristic_can_read_k(
    model: Model, arguments: tuple[Argument, ...], axes: Axes | None
) -> Answer:
    """Whether a heuristic decorator has a place and sees both K and BLOCK_K."""
    gemm = gemm_of(model)
    if gemm is None:
        return Known(False, NO_GEMM.reason)
    if not any(is_jit(model.module, d) for d in model.function.decorators):
        return Known(False, f"{model.kernel.entry} is not decorated with jit")
    found = definition(model, gemm.block_k)
    if isinstance(found, Missing) or found.place == "the default":
        return Known(False, f"the launch does not pass {gemm.block_k}")
    if host_node(model, gemm.loop.bound) is None:
        return Known(False, f"the launch does not pass {gemm.loop.bound}")
    return Known(True, f"the launch passes {gemm.loop.bound} and {gemm.block_k}")


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


OPERAND_FACTS: Mapping[str, Function] = {
    "mask_only_cuts_tail": _tail_mask_only,
    "heuristic_can_read_k": _heuristic_can_read_k,
    "launch_passes_tiles": _launch_passes_tiles,
    "operand_bytes": _operand_bytes,
    "operands_are_matrices": _operands_are_matrices,
    "rows_aligned": _rows_aligned,
}

"""Fact functions about loops, masks and row kernels."""

from __future__ import annotations

from collections.abc import Mapping

from gate.values.workload import Axes, shape_label
from library.fact import Answer, Argument, Known, Missing
from library.facts.triton_constants import constant, definition
from library.facts.triton_host import extents
from library.facts.triton_launch_facts import (
    Function,
    first_shape,
    host_node,
    missing_shape,
    text_argument,
)
from library.facts.triton_model import Loop, Model
from library.facts.triton_offsets import argument, bounds_of
from library.facts.triton_pointers import address_of
from library.facts.triton_rows import (
    RowPasses,
    block_with_a_meaning,
    row_integers,
    row_passes_of,
    tail_masked,
)
from library.facts.triton_softmax import softmax_passes_of
from library.facts.triton_tensors import scalar
from library.languages.python_source import Node, line_of, nodes_of
from library.languages.triton_kernels import is_jit
from library.target import Locus

NO_ROWS = "the kernel's loops are not several passes over the same row"


def node_for(model: Model, value: Argument) -> Node | None:
    """The node a captured range is, in the kernel's module."""
    if not isinstance(value, Locus) or value.path != model.source.path:
        return None
    return model.source.node_at(value.start, value.end)


def _loop(model: Model, arguments: tuple[Argument, ...]) -> Loop | None:
    node = node_for(model, arguments[0]) if arguments else None
    return next((loop for loop in model.loops if node is not None and loop.node == node), None)


def _trip_count(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    loop = _loop(model, arguments)
    if loop is None or not loop.block:
        return Missing("the loop does not walk an extent in blocks", "judge it by hand")
    extent = _number(model, loop.bound, axes)
    block = _number(model, loop.block, axes)
    if isinstance(extent, Missing) or isinstance(block, Missing):
        return extent if isinstance(extent, Missing) else block
    count = -(-int(str(extent.value)) // max(int(str(block.value)), 1))
    return Known(count, f"{loop.bound}={extent.value} in blocks of {block.value}")


def _number(model: Model, text: str, axes: Axes | None) -> Answer:
    if text.isdigit():
        return Known(int(text), "a literal")
    if text in model.constexprs:
        return constant(model, text, axes)
    return scalar(model, text, axes)


def _constant_trip(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    loop = _loop(model, arguments)
    if loop is None:
        return Known(False, "the loop is not over a range")
    parts = [part for part in (loop.start, loop.stop, loop.step) if part is not None]
    fixed = all(
        model.text(leaf) in model.constexprs
        for part in parts
        for leaf in nodes_of(part, "identifier")
    )
    return Known(fixed, f"line {line_of(loop.node)}")


def _loop_has_dot(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    node = node_for(model, arguments[0]) if arguments else None
    if node is None:
        return Missing("the range is not in the kernel", "correct the card's anchor")
    dots = model.calls("dot", node)
    return Known(bool(dots), f"tl.dot on line {line_of(dots[0])}" if dots else "no tl.dot in it")


def _mask_bounds(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """The bounds a load's mask compares with, as written; an empty tuple without a mask."""
    node = node_for(model, arguments[0]) if arguments else None
    bounds = bounds_of(model, node) if node is not None and node.type == "call" else None
    if bounds is None:
        return Missing("the mask is not a conjunction of offsets < bound", "judge it by hand")
    return Known(tuple(model.canonical(b.bound) for b in bounds), "read from the mask")


def _row_passes(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """How many loops walk the same row; 0 if the kernel is not of that form."""
    rows = row_passes_of(model)
    if rows is None:
        return Known(0, NO_ROWS)
    return Known(len(rows.loops), f"{len(rows.loops)} loops over {rows.bound}")


def _row_width(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Elements of a row at the first declared shape."""
    width = row_bound(model)
    shape = first_shape(model)
    if width is None:
        return Missing("no extent of a row was recognised", "mask the row's loads by its extent")
    if shape is None:
        return missing_shape(model)
    return scalar(model, width, shape)


def _row_width_here(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Elements of a row at the shape in question."""
    width = row_bound(model)
    if width is None:
        return Missing("no extent of a row was recognised", "mask the row's loads by its extent")
    return scalar(model, width, axes)


def row_bound(model: Model) -> str | None:
    """The parameter that bounds every mask of a one-axis kernel, or None."""
    if model.calls("dot"):
        return None
    found = set()
    for _, call in model.accesses():
        bounds = bounds_of(model, call)
        if bounds is None:
            return None
        found |= {model.canonical(b.bound) for b in bounds if b.offset.axis is None}
    return found.pop() if len(found) == 1 else None


def _row_block(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Elements of a row a program handles at a time, where the source says."""
    blocks = {
        term.offset.block
        for _, call in model.accesses()
        if (address := address_of(model, call)) is not None
        for term in address.terms
    }
    if row_bound(model) is None or len(blocks) != 1:
        return Missing("no block of a row was recognised", "judge it by hand")
    return _number(model, blocks.pop(), axes)


def _rows_by_integers(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Whether rows are placed and bounded by integer parameters the kernel leaves alone."""
    names = row_integers(model)
    if not names:
        return Known(
            False, "accesses are not masked rows at integer strides, or are rounded already"
        )
    if not any(is_jit(model.module, d) for d in model.function.decorators):
        return Known(False, f"{model.kernel.entry} is not decorated with jit")
    passed = model.site.arguments if model.site is not None else {}
    absent = [name for name in names if name not in passed]
    if absent:
        return Known(False, f"the launch does not pass {absent[0]}, so a heuristic cannot read it")
    return Known(True, f"rows are placed by {', '.join(names)}")


def _tails_masked(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    rows = row_passes_of(model)
    if rows is None:
        return Known(False, NO_ROWS)
    for loop in rows.loops:
        if not tail_masked(model, loop):
            return Known(False, f"an access in the loop on line {line_of(loop.node)} is not masked")
    for kind, call in model.accesses():
        if kind == "load" and argument(model, call, "other", 2) is None:
            return Known(False, f"tl.load on line {line_of(call)} leaves lanes undefined")
    return Known(True, f"every access is masked by {rows.bound}")


def _block_editable(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Whether the row's block is one literal at the launch, and its extent a host name."""
    rows = row_passes_of(model)
    if rows is None:
        return Known(False, NO_ROWS)
    return _editable(model, rows)


def _editable(model: Model, rows: RowPasses) -> Known:
    meant = block_with_a_meaning(model, rows)
    if meant is not None:
        said = f"line {line_of(meant)}: {model.text(meant)} is of one block, not of the row so far"
        return Known(False, said)
    found = definition(model, rows.block)
    if isinstance(found, Missing):
        return Known(False, found.reason)
    node = host_node(model, rows.bound)
    if node is None or not extents(model, node):
        return Known(False, f"the host does not pass {rows.bound} from a tensor's shape")
    if model.site is None or rows.block not in model.site.arguments:
        return Known(False, f"the launch does not pass {rows.block}")
    return Known(True, f"{rows.block}={found.value} on line {line_of(found.node)}")


def _read_twice(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    rows = row_passes_of(model)
    return Known(rows is not None, f"{rows.bound} elements read again" if rows else NO_ROWS)


def _hinted(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Whether some load already says how the cache should treat it."""
    name = text_argument(arguments) or "eviction_policy"
    for kind, call in model.accesses():
        if argument(model, call, name, None) is not None:
            return Known(True, f"tl.{kind} on line {line_of(call)}")
    return Known(False, f"no access has {name}")


def _two_pass_softmax(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    found = softmax_passes_of(model)
    if found is None:
        return Known(
            False, "no pass for the maximum followed by a pass for the sum of exp(x - max)"
        )
    first, second = (line_of(loop.node) for loop in (found.maximum_loop, found.sum_loop))
    return Known(True, f"maximum on line {first}, sum of exponentials on line {second}")


def _loads_whole_row(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    """Whether a program holds its row in one block: no loop, one-axis masked loads."""
    bound = row_bound(model)
    if bound is None or model.loops:
        return Known(False, "the kernel loops, or its masks do not bound one row")
    shape = first_shape(model)
    return Known(
        True, f"one block bounded by {bound}" + (f" at {shape_label(shape)}" if shape else "")
    )


ROW_FACTS: Mapping[str, Function] = {
    "trip_count": _trip_count,
    "constant_trip": _constant_trip,
    "loop_has_dot": _loop_has_dot,
    "mask_bounds": _mask_bounds,
    "row_passes": _row_passes,
    "row_width": _row_width,
    "row_width_here": _row_width_here,
    "row_block": _row_block,
    "rows_by_integers": _rows_by_integers,
    "tails_masked": _tails_masked,
    "row_block_editable": _block_editable,
    "read_twice": _read_twice,
    "has_hint": _hinted,
    "two_pass_softmax": _two_pass_softmax,
    "loads_whole_row": _loads_whole_row,
}

"""Fact functions about how a Triton kernel is launched: constants, options, grid, arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from gate.values.workload import Axes, shape_label
from library.fact import Answer, Argument, Known, Missing
from library.facts.triton_constants import (
    Definition,
    argument_trace,
    option,
    option_value,
    trace_missing,
    tuning_configs,
)
from library.facts.triton_host import tensor
from library.facts.triton_model import Model
from library.facts.triton_pointers import address_of
from library.facts.triton_tensors import dtype, scalar, tensor_shape
from library.languages.python_source import Node, line_of, nodes_of

Function = Callable[[Model, tuple[Argument, ...], Axes | None], Answer]

BYTES = {
    "float64": 8, "int64": 8, "uint64": 8, "float32": 4, "int32": 4, "uint32": 4,
    "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2,
    "int8": 1, "uint8": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip


def first_shape(model: Model) -> Axes | None:
    """The first declared shape: the one a gain must show at."""
    return model.shapes[0] if model.shapes else None


def text_argument(arguments: tuple[Argument, ...], position: int = 0) -> str:
    """A name passed to a fact function, as a string or as the range that was captured."""
    value = arguments[position] if position < len(arguments) else ""
    return value if isinstance(value, str) else str(getattr(value, "text", value))


def missing_shape(model: Model) -> Missing:
    """What to answer when the workload declares no shape."""
    where = model.workload.path if model.workload is not None else "a workload.py"
    return Missing("no shape is declared", f"declare SHAPES in {where}")


def host_node(model: Model, name: str) -> Node | None:
    """What the launch passes for a kernel parameter; None if the kernel assigns it another value."""
    for node in model.assignments.get(name, ()):
        right = node.child_by_field_name("right")
        written = model.canonical(right) if right is not None else ""
        if not re.fullmatch(rf"{re.escape(name)}//(\w+)\*\1", written):  # exact rounding is allowed
            return None
    return model.site.arguments.get(name) if model.site is not None else None


def _num_warps(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    return option_value(model, "num_warps", axes)


def _num_stages(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    return option_value(model, "num_stages", axes)


def _option_editable(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    name = text_argument(arguments)
    found = option(model, name)
    if isinstance(found, Missing):
        return Known(False, found.reason)
    if isinstance(found, Definition):
        return Known(True, f"{name}={found.value} on line {line_of(found.node)}")
    return Known(True, f"the launch leaves {name} at {found}")


def _autotuned(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    count = len(tuning_configs(model))
    return Known(count > 1, f"{count} autotune configs" if count else "no @triton.autotune")


def _launched_once(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    if model.site is None:
        return Known(False, "no launch was found")
    count = sum(
        model.text(node.children[0]) in model.jit.names
        for node in nodes_of(model.source.root, "subscript")
    )
    return Known(count == 1, f"{count} launches of {model.kernel.entry} in {model.kernel.path}")


def _dtype_of(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    return dtype(model, text_argument(arguments), axes)


def _element_bytes(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    return element_bytes(model, text_argument(arguments), axes)


def element_bytes(model: Model, parameter: str, axes: Axes | None) -> Answer:
    """Size of an element of a pointer parameter, bytes."""
    found = dtype(model, parameter, axes)
    if isinstance(found, Missing):
        return found
    if str(found.value) not in BYTES:
        return Missing(f"the size of {found.value} is not known", "use a torch dtype")
    return Known(BYTES[str(found.value)], f"{parameter} is {found.value}, {found.because}")


def _pointer_alignment(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    name = text_argument(arguments)
    traced = argument_trace(model, name, axes)
    if traced is None or traced.alignment_bytes is None:
        return trace_missing(model)
    return Known(traced.alignment_bytes, f"{name} traced at {traced.alignment_bytes} bytes")


def _stride_of(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    name = text_argument(arguments)
    dimension = arguments[1] if len(arguments) > 1 and isinstance(arguments[1], int) else 0
    return stride_of(model, name, dimension, axes)


def stride_of(model: Model, parameter: str, dimension: int, axes: Axes | None) -> Answer:
    """Stride of a pointer parameter's tensor, in elements."""
    traced = argument_trace(model, parameter, axes)
    if traced is not None and dimension < len(traced.strides):
        return Known(traced.strides[dimension], f"{parameter} traced")
    name = tensor(model, parameter)
    shape = tensor_shape(model, name, axes) if name is not None else None
    if axes is None or shape is None or None in shape or dimension >= len(shape):
        return trace_missing(model)
    elements = 1
    for extent in shape[dimension + 1 :]:
        elements *= extent or 0
    return Known(elements, f"{name} is made contiguous at {shape_label(axes)}")


def _contiguous_axis(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    name = text_argument(arguments)
    traced = argument_trace(model, name, axes)
    if traced is not None and traced.strides:
        axis = traced.strides.index(1) if 1 in traced.strides else -1
        return Known(axis, f"strides of {name} traced: {traced.strides}")
    passed = tensor(model, name)
    shape = tensor_shape(model, passed, axes) if passed is not None else None
    if shape is None:
        return trace_missing(model)
    return Known(len(shape) - 1, f"{passed} is made contiguous")


def _written(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    name = text_argument(arguments)
    for kind, call in model.accesses():
        address = address_of(model, call)
        if kind != "store":
            continue
        if address is None:
            return Missing(f"the address stored to on line {line_of(call)} is not a plain sum", "")
        if address.base == name:
            return Known(True, f"tl.store on line {line_of(call)}")
    return Known(False, f"no tl.store to {name}")


def _scalar(model: Model, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
    return scalar(model, text_argument(arguments), axes)


LAUNCH_FACTS: Mapping[str, Function] = {
    "num_warps": _num_warps,
    "num_stages": _num_stages,
    "option_editable": _option_editable,
    "autotuned": _autotuned,
    "launched_once": _launched_once,
    "dtype_of": _dtype_of,
    "element_bytes": _element_bytes,
    "pointer_alignment": _pointer_alignment,
    "stride_of": _stride_of,
    "contiguous_axis": _contiguous_axis,
    "written": _written,
    "value": _scalar,
}

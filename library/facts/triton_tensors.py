"""Shapes, strides and dtypes of what a launch passes, at a declared shape.

A launch trace is the best witness; without one the wrapper's and the workload's source are read,
and what they do not say plainly is missing.
"""

from __future__ import annotations

from gate.values.workload import Axes, shape_label
from library.fact import Answer, Known
from library.facts.triton_constants import (
    Definition,
    argument_trace,
    at,
    literal,
    trace_missing,
)
from library.facts.triton_host import extents, host_values, integer, stride, tensor
from library.facts.triton_model import Model
from library.facts.triton_offsets import argument
from library.languages.python_module import parameters
from library.languages.python_source import Node, field, unwrap

MAKERS_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like")


def tensor_shape(model: Model, name: str, axes: Axes | None) -> tuple[int | None, ...] | None:
    """Extents of a wrapper's tensor at a shape; None for the whole if its maker is not plain."""
    if model.site is None or axes is None or model.workload is None:
        return None
    names = [p.name for p in parameters(model.source, model.site.host)]
    made = host_values(model, name)
    if name in names and not made:
        position = names.index(name)
        inputs = model.workload.inputs
        if position >= len(inputs) or inputs[position].shape is None:
            return None
        shape = inputs[position].shape
        return tuple(axes.get(d) if isinstance(d, str) else d for d in shape or ())
    if len(made) != 1 or made[0].type != "call":
        return None
    maker = model.module.callee(made[0]).split(".")[-1]
    given = [a for a in field(made[0], "arguments").named_children if a.type != "keyword_argument"]
    if maker in MAKERS_LIKE and given:
        return tensor_shape(model, model.text(given[0]), axes)
    if maker not in ("empty", "zeros", "ones") or not given:
        return None
    items = given[0].named_children if given[0].type in ("tuple", "list") else given
    return tuple(extent_value(model, item, axes) for item in items)


def extent_value(model: Model, node: Node, axes: Axes | None) -> int | None:
    """The integer a host expression is at a shape, or None."""
    node = unwrap(node)
    plain = integer(model, node)
    if plain is not None:
        return plain
    for dimension in extents(model, node):
        shape = tensor_shape(model, dimension.tensor, axes)
        if shape is not None and dimension.index < len(shape):
            return shape[dimension.index]
    found = literal(model, node, "")
    return found.value if isinstance(found, Definition) else None


def scalar(model: Model, name: str, axes: Axes | None) -> Answer:
    """The value of a scalar kernel parameter at a shape."""
    traced = argument_trace(model, name, axes)
    if traced is not None and traced.value is not None:
        return Known(traced.value, f"traced at {at(model, axes)}")
    node = model.site.arguments.get(name) if model.site is not None else None
    if node is None or axes is None:
        return trace_missing(model)
    value = extent_value(model, node, axes)
    if value is not None:
        return Known(value, f"`{model.text(node)}` of the wrapper at {shape_label(axes)}")
    step = stride(model, node)
    shape = tensor_shape(model, step.tensor, axes) if step is not None else None
    if step is None or shape is None or None in shape:
        return trace_missing(model)
    elements = 1
    for extent in shape[step.index + 1 :]:
        elements *= extent or 0
    return Known(elements, f"{step.tensor} is made contiguous, {shape_label(axes)}")


def dtype(model: Model, parameter: str, axes: Axes | None) -> Answer:
    """The element type of a pointer parameter: `bfloat16`."""
    traced = argument_trace(model, parameter, axes)
    if traced is not None:
        return Known(traced.dtype, f"traced at {at(model, axes)}")
    name = tensor(model, parameter)
    found = _dtype_of(model, name) if name is not None else None
    if found is None:
        return trace_missing(model)
    return Known(found, f"{name} of {model.workload.path if model.workload else 'the workload'}")


def _dtype_of(model: Model, name: str) -> str | None:
    if model.site is None or model.workload is None:
        return None
    names = [p.name for p in parameters(model.source, model.site.host)]
    made = host_values(model, name)
    if name in names and not made:
        position = names.index(name)
        inputs = model.workload.inputs
        return inputs[position].dtype if position < len(inputs) else None
    if len(made) != 1 or made[0].type != "call":
        return None
    given = argument(model, made[0], "dtype", None)
    if given is not None and given.type == "attribute":
        owner, last = field(given, "object"), model.text(field(given, "attribute"))
        return _dtype_of(model, model.text(owner)) if last == "dtype" else last
    first = argument(model, made[0], "input", 0)
    if model.module.callee(made[0]).split(".")[-1] in MAKERS_LIKE and first is not None:
        return _dtype_of(model, model.text(first))
    return None

"""Find a row's maximum and its sum of exponentials in one pass."""

from __future__ import annotations

from library.edits import ByteEdit, Refusal
from library.facts.triton_softmax import softmax_passes_of
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.triton.source_edits import (
    fresh,
    insert_before,
    joined,
    language_alias,
    model_of,
    replace,
)


def online_softmax(
    target: Target, captures: Captures, parameters: Parameters
) -> tuple[ByteEdit, ...] | Refusal:
    """Keep a running maximum and rescale the running sum; the second pass disappears.

    A block that is -inf throughout leaves the sum alone, as in the two-pass form.
    """
    model = model_of(target)
    if isinstance(model, Refusal):
        return model
    found, tl = softmax_passes_of(model), language_alias(model)
    if found is None or tl is None:
        return Refusal("no pass for the maximum followed by a pass for the sum of exp(x - max)")
    maximum, total, exp, value = found.maximum, found.total, found.exponential, found.value
    new = fresh(model, f"new_{maximum.removeprefix('row_')}")
    shift = fresh(model, "shift")
    lines = [
        f"{new} = {tl}.maximum({maximum}, {tl}.max({value}, axis=0))",
        f'{shift} = {tl}.where({new} == -float("inf"), 0.0, {new})  # no inf - inf',
        f"{total} *= {exp}({maximum} - {shift})",
        f"{total} += {tl}.sum({exp}({value} - {shift}), axis=0)",
        f"{maximum} = {new}",
    ]
    first, second = found.maximum_loop.node, found.sum_loop.node
    indent = model.source.indent(found.maximum_update)
    return (
        insert_before(model, first, [model.text(found.total_init)]),
        replace(model, found.maximum_update, joined(lines, indent)),
        ByteEdit(model.source.path, first.end_byte, second.end_byte, b""),
    )

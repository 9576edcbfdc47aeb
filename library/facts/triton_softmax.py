"""The two reductions of a softmax written as separate passes over a row."""

from __future__ import annotations

from dataclasses import dataclass

from library.facts.triton_model import Loop, Model, once
from library.facts.triton_offsets import argument
from library.facts.triton_rows import row_passes_of
from library.languages.python_source import Node, field, unwrap


@dataclass(frozen=True, slots=True)
class SoftmaxPasses:
    """`m = max(m, max(x))` in one loop and `s += sum(exp(x - m))` in the next."""

    maximum_loop: Loop
    sum_loop: Loop
    maximum: str
    """The name that holds the running maximum."""
    maximum_update: Node
    total: str
    total_init: Node
    """The statement before the second loop that zeroes the sum."""
    total_update: Node
    value: str
    """The expression both reduce, as written in the first loop: `x.to(tl.float32)`."""
    exponential: str
    """The function as written: `tl.exp`."""


@once
def softmax_passes_of(model: Model) -> SoftmaxPasses | None:
    """The first two passes of a row softmax, if the kernel is written so."""
    rows = row_passes_of(model)
    if rows is None:
        return None
    first, second = rows.loops[0], rows.loops[1]
    maxima, totals = _statements(first), _statements(second)
    # All but the last statement must be the same in both: they make the same x.
    if [model.canonical(s) for s in maxima[:-1]] != [model.canonical(s) for s in totals[:-1]]:
        return None
    if first.variable != second.variable or not maxima or not totals:
        return None
    maximum = _maximum_update(model, maxima[-1])
    total = _total_update(model, totals[-1])
    init = first.node.next_named_sibling
    if maximum is None or total is None or init is None or init.next_named_sibling != second.node:
        return None
    name, value = maximum
    total_name, exponential, exponent = total
    if exponent != f"{model.canonical(value)}-{name}" or not _zeroes(model, init, total_name):
        return None
    return SoftmaxPasses(
        first,
        second,
        name,
        maxima[-1],
        total_name,
        init,
        totals[-1],
        model.text(value),
        exponential,
    )


def _statements(loop: Loop) -> list[Node]:
    return [n for n in field(loop.node, "body").named_children if n.type != "comment"]


def _maximum_update(model: Model, statement: Node) -> tuple[str, Node] | None:
    """(m, value) of `m = tl.maximum(m, tl.max(value, axis=0))`."""
    node = statement.named_children[0]
    right = node.child_by_field_name("right") if node.type == "assignment" else None
    if right is None or not model.is_language(unwrap(right), "maximum"):
        return None
    name = model.text(field(node, "left"))
    given = field(unwrap(right), "arguments").named_children
    if len(given) != 2 or model.canonical(given[0]) != name:
        return None
    inner = unwrap(given[1])
    value = argument(model, inner, "input", 0) if model.is_language(inner, "max") else None
    if value is None or not _over_axis_0(model, inner):
        return None
    return name, value


def _total_update(model: Model, statement: Node) -> tuple[str, str, str] | None:
    """(s, exp as written, exponent) of `s += tl.sum(tl.exp(value - m), axis=0)`."""
    node = statement.named_children[0]
    if node.type != "augmented_assignment" or model.text(field(node, "operator")) != "+=":
        return None
    right = unwrap(field(node, "right"))
    inner = argument(model, right, "input", 0) if model.is_language(right, "sum") else None
    if inner is None or not model.is_language(unwrap(inner), "exp"):
        return None
    if not _over_axis_0(model, right):
        return None
    exponent = field(unwrap(inner), "arguments").named_children[0]
    function = model.text(field(unwrap(inner), "function"))
    return model.text(field(node, "left")), function, model.canonical(exponent)


def _over_axis_0(model: Model, reduction: Node) -> bool:
    """Whether a reduction gives one number of one row, as the one that replaces it does."""
    axis = argument(model, reduction, "axis", 1)
    keeps = argument(model, reduction, "keep_dims", None)
    return keeps is None and (axis is None or model.canonical(axis) == "0")


def _zeroes(model: Model, statement: Node, name: str) -> bool:
    return model.canonical(statement) in (f"{name}=0.0", f"{name}=0")

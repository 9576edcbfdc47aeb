"""Addresses: a base pointer plus offsets times strides."""

from __future__ import annotations

from dataclasses import dataclass, replace

from library.facts.triton_model import Loop, Model, once
from library.facts.triton_offsets import (
    Bound,
    Offset,
    argument,
    bounds_of,
    is_loop_bound,
    offset_of,
    product_factors,
    sum_terms,
)
from library.languages.python_source import Node, ancestors, field, nodes_of


@dataclass(frozen=True, slots=True)
class Term:
    """One offset vector of an address, times its stride."""

    offset: Offset
    stride: str
    """As written; `1` when the offset is added plainly."""


@dataclass(frozen=True, slots=True)
class Address:
    """What a load or store reads or writes."""

    base: str
    """The pointer parameter."""
    terms: tuple[Term, ...]
    scalars: tuple[str, ...]
    """Further terms, as written: `row * stride_row`."""
    advances: tuple[str, ...] = ()
    """What loops add to the pointer each time: `BLOCK_K * stride_ak`."""


@once
def address_of(model: Model, access: Node) -> Address | None:
    """The address of a load or store, or None if it is not a plain sum."""
    pointer = argument(model, access, "pointer", 0)
    if pointer is None:
        return None
    advances: tuple[str, ...] = ()
    expression = model.resolve(pointer)
    if expression.type == "identifier":
        bound = model.assignments.get(model.text(expression), ())
        first = [node for node in bound if node.type == "assignment"]
        later = [node for node in bound if node.type == "augmented_assignment"]
        if len(first) == 1 and len(first) + len(later) == len(bound):
            if any(model.text(field(node, "operator")) != "+=" for node in later):
                return None
            advances = tuple(model.canonical(field(node, "right")) for node in later)
            right = first[0].child_by_field_name("right")
            if right is None or field(first[0], "left").type != "identifier":
                return None
            expression = right
    return _sum(model, expression, advances)


def unbounded(model: Model, access: Node, loop: Loop) -> Term | None:
    """The first term of an access's address that neither a mask nor a wrap keeps inside an extent.

    A bound is one of the very offsets, or, for the loop's own axis, one that cuts off its last block.
    Raises LookupError if the address or the mask is of another form.
    """
    address, bounds = address_of(model, access), bounds_of(model, access)
    if address is None or bounds is None:
        raise LookupError(model.text(access))
    for term in address.terms:
        own = replace(term.offset, axis=None)
        kept = (
            replace(bound.offset, axis=None) == own
            or (bound.offset.block == own.block and is_loop_bound(model, bound, loop))
            for bound in bounds
        )
        if not term.offset.wrap and not any(kept):
            return term
    return None


def bound_for(bounds: tuple[Bound, ...], axis: int | None) -> Bound | None:
    """The one bound of a mask along an expanded axis, or None."""
    found = [bound for bound in bounds if bound.offset.axis == axis]
    return found[0] if len(found) == 1 else None


def _sum(model: Model, expression: Node, advances: tuple[str, ...]) -> Address | None:
    pointers = {p.name for p in model.parameters}
    base: list[str] = []
    terms: list[Term] = []
    scalars: list[str] = []
    for part in _flatten(model, expression):
        if (
            part.type == "identifier"
            and model.text(part) in pointers
            and _is_pointer(model, model.text(part))
        ):
            base.append(model.text(part))
            continue
        vectors = [(f, offset_of(model, f)) for f in product_factors(model, part)]
        offsets = [(f, offset) for f, offset in vectors if offset is not None]
        rest = sorted(model.canonical(f) for f, offset in vectors if offset is None)
        if len(offsets) == 1:
            terms.append(Term(offsets[0][1], "*".join(rest) or "1"))
        elif not offsets:
            scalars.append("*".join(rest))
        else:
            return None
    if len(base) != 1:
        return None
    for node in model.assignments.get(base[0], ()):  # x_ptr += row * stride_row
        if node.type != "augmented_assignment" or model.text(field(node, "operator")) != "+=":
            return None
        scalars.append(model.canonical(field(node, "right")))
    return Address(base[0], tuple(terms), tuple(sorted(scalars)), advances)


def _flatten(model: Model, expression: Node) -> list[Node]:
    """Terms of a sum, with names that stand for sums (`row_ptr = x_ptr + …`) opened up."""
    parts = []
    for part in sum_terms(model, expression):
        opened = model.resolve(part)
        is_sum = opened.type == "binary_operator" and model.text(field(opened, "operator")) == "+"
        if part.type == "identifier" and is_sum and offset_of(model, part) is None:
            parts += _flatten(model, opened)
        elif part.type == "identifier" and opened.type == "identifier":
            parts.append(opened)
        else:
            parts.append(part)
    return parts


def _is_pointer(model: Model, parameter: str) -> bool:
    """Whether a parameter in a sum is its base: traced as a pointer, or, without a trace, never
    compared, multiplied, divided or ranged over as strides and extents are."""
    for trace in model.traces:
        traced = trace.arguments.get(parameter)
        if traced is not None:
            return traced.kind == "pointer"
    return all(
        not _is_arithmetic(model, node)
        for node in nodes_of(model.function.body, "identifier")
        if model.text(node) == parameter
    )


def _is_arithmetic(model: Model, name: Node) -> bool:
    parent = next(outer for outer in ancestors(name) if outer.type != "parenthesized_expression")
    if parent.type == "binary_operator":
        return model.text(field(parent, "operator")) != "+"
    if parent.type == "argument_list" and parent.parent is not None:
        return model.language_name(parent.parent).split(".")[-1] in ("range", "cdiv")
    return parent.type in ("comparison_operator", "for_statement")

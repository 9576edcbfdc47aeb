"""Offsets into an axis, and the masks that keep them inside it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from library.facts.triton_model import Loop, Model
from library.languages.python_source import Node, field, unwrap


@dataclass(frozen=True, slots=True)
class Offset:
    """A vector of offsets `base + arange(0, block)`, perhaps wrapped by `% extent`."""

    block: str
    """Extent of the arange, as written."""
    base: tuple[str, ...] = ()
    """Scalar terms that are added, as written, sorted."""
    wrap: str = ""
    """`M` of `(…) % M`."""
    axis: int | None = None
    """0 for `[:, None]`, 1 for `[None, :]`; None when not expanded."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One `offset < bound` of a mask."""

    node: Node
    """The comparison."""
    offset: Offset
    bound: Node


def argument(model: Model, call: Node, name: str, position: int | None) -> Node | None:
    """The value of a call's argument, by keyword or, unless that is None, by position; None if it
    is not given."""
    place = 0
    for given in field(call, "arguments").named_children:
        if given.type == "keyword_argument":
            if model.text(field(given, "name")) == name:
                return field(given, "value")
        elif given.type != "comment":
            if place == position:
                return given
            place += 1
    return None


def sum_terms(model: Model, node: Node) -> list[Node]:
    """The terms of a sum, left to right; a node that is no sum is its only term."""
    node = unwrap(node)
    if node.type == "binary_operator" and model.text(field(node, "operator")) == "+":
        return [*sum_terms(model, field(node, "left")), *sum_terms(model, field(node, "right"))]
    return [node]


def product_factors(model: Model, node: Node) -> list[Node]:
    """The factors of a product, left to right."""
    node = unwrap(node)
    if node.type == "binary_operator" and model.text(field(node, "operator")) == "*":
        return [
            *product_factors(model, field(node, "left")),
            *product_factors(model, field(node, "right")),
        ]
    return [node]


def product(model: Model, node: Node) -> str:
    """A product in a canonical order, so that `k * B` and `B * k` compare equal."""
    return "*".join(sorted(model.canonical(factor) for factor in product_factors(model, node)))


def offset_of(model: Model, node: Node) -> Offset | None:
    """The offset vector an expression is, or None if it is not of that form."""
    node = model.resolve(node)
    if node.type == "subscript":
        inner = offset_of(model, field(node, "value"))
        axis = _expanded_axis(node)
        return replace(inner, axis=axis) if inner is not None and axis is not None else None
    if node.type == "call":
        return _offset_of_call(model, node)
    if node.type != "binary_operator":
        return None
    operator = model.text(field(node, "operator"))
    left, right = field(node, "left"), field(node, "right")
    if operator == "%":
        inner = offset_of(model, left)
        return replace(inner, wrap=model.canonical(right)) if inner is not None else None
    if operator != "+":
        return None
    vectors = [(offset_of(model, left), right), (offset_of(model, right), left)]
    found = [(vector, other) for vector, other in vectors if vector is not None]
    if len(found) != 1 or found[0][0].wrap:
        return None
    vector, other = found[0]
    terms = [product(model, term) for term in sum_terms(model, other)]
    return replace(vector, base=tuple(sorted([*vector.base, *terms])))


def bounds_of(model: Model, access: Node) -> tuple[Bound, ...] | None:
    """The comparisons a load's or store's mask is the conjunction of; () without a mask.

    None if some part of the mask is anything but `offsets < bound`.
    """
    mask = argument(model, access, "mask", 2 if model.is_language(access, "store") else 1)
    if mask is None:
        return ()
    found = []
    for part in _conjuncts(model, mask):
        bound = _comparison(model, part)
        if bound is None:
            return None
        found.append(bound)
    return tuple(found)


def is_loop_bound(model: Model, bound: Bound, loop: Loop) -> bool:
    """Whether a bound only cuts off the last, partial block of a loop over an extent.

    The forms: `offs < K - k * B`, `k * B + offs < K` where k counts blocks, and `offs < K - k`,
    `k + offs < K` where k counts elements; offs is `arange(0, B)`.
    """
    if not loop.block or bound.offset.block != loop.block or bound.offset.wrap:
        return False
    start = "*".join(sorted((loop.variable, loop.block))) if loop.counts_tiles else loop.variable
    limit = model.resolve(bound.bound)
    if bound.offset.base == (start,):
        return model.canonical(limit) == loop.bound
    if bound.offset.base or limit.type != "binary_operator":
        return False
    return (
        model.text(field(limit, "operator")) == "-"
        and model.canonical(field(limit, "left")) == loop.bound
        and product(model, field(limit, "right")) == start
    )


def _offset_of_call(model: Model, call: Node) -> Offset | None:
    if model.is_language(call, "arange"):
        start, end = argument(model, call, "start", 0), argument(model, call, "end", 1)
        if start is None or end is None or model.canonical(start) != "0":
            return None
        return Offset(model.canonical(end))
    hinted = any(model.is_language(call, hint) for hint in ("multiple_of", "max_contiguous"))
    inner = argument(model, call, "input", 0)
    if hinted and inner is not None:
        return offset_of(model, inner)
    function = field(call, "function")
    if function.type == "attribute" and model.text(field(function, "attribute")) == "to":
        return offset_of(model, field(function, "object"))
    return None


def _expanded_axis(subscript: Node) -> int | None:
    """0 for `x[:, None]`, 1 for `x[None, :]`, None for any other index."""
    kinds = [index.type for index in subscript.children_by_field_name("subscript")]
    if kinds == ["slice", "none"]:
        return 0
    return 1 if kinds == ["none", "slice"] else None


def _conjuncts(model: Model, mask: Node) -> list[Node]:
    mask = model.resolve(mask)
    if mask.type == "binary_operator" and model.text(field(mask, "operator")) == "&":
        return [
            *_conjuncts(model, field(mask, "left")),
            *_conjuncts(model, field(mask, "right")),
        ]
    return [mask]


def _comparison(model: Model, node: Node) -> Bound | None:
    axis = None
    if node.type == "subscript":  # (offs < N)[None, :]
        axis = _expanded_axis(node)
        node = model.resolve(field(node, "value"))
    if node.type != "comparison_operator" or len(node.named_children) != 2:
        return None
    left, right = node.named_children
    operator = next(model.text(child) for child in node.children if not child.is_named)
    if operator == ">":
        left, right = right, left
    elif operator != "<":
        return None
    offset = offset_of(model, left)
    if offset is None:
        return None
    return Bound(node, replace(offset, axis=axis) if axis is not None else offset, right)

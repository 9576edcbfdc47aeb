"""What the wrapper's own names stand for: extents and strides of its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from library.facts.triton_model import Model
from library.languages.python_source import Node, field, nodes_of, unwrap


@dataclass(frozen=True, slots=True)
class Dimension:
    """An extent or stride of one tensor of the wrapper: `a.shape[1]`."""

    tensor: str
    index: int


def _host_assignments(model: Model) -> Iterator[tuple[str, Node, int | None]]:
    """(name, value, position in an unpacking or None) of the wrapper, in source order."""
    if model.site is None:
        return
    for node in nodes_of(model.site.host.body, "assignment"):
        left, right = field(node, "left"), node.child_by_field_name("right")
        if right is None:
            continue
        if left.type == "identifier":
            yield model.text(left), right, None
        elif left.type in ("pattern_list", "tuple_pattern"):
            names = left.named_children
            values = right.named_children if right.type in ("expression_list", "tuple") else []
            for index, name in enumerate(names):
                if name.type != "identifier":
                    continue
                if len(values) == len(names):
                    yield model.text(name), values[index], None
                else:
                    yield model.text(name), right, index


def host_values(model: Model, name: str) -> list[Node]:
    return [
        value for given, value, index in _host_assignments(model) if given == name and index is None
    ]


def extents(model: Model, node: Node) -> frozenset[Dimension]:
    """The tensor extents a host expression equals: `K` after `M, K = a.shape; K, N = b.shape` is
    both `a.shape[1]` and `b.shape[0]`, since the wrapper's author unpacks both into one name."""
    node = unwrap(node)
    direct = _shape_element(model, node)
    if direct is not None:
        return frozenset([direct])
    if node.type != "identifier":
        return frozenset()
    found: set[Dimension] = set()
    for name, value, index in _host_assignments(model):
        if name != model.text(node):
            continue
        if index is None:
            found |= extents(model, value) if model.canonical(value) != name else set()
        elif (tensor := _shape_of(model, value)) is not None:
            found.add(Dimension(tensor, index))
        else:
            return frozenset()
    return frozenset(found)


def stride(model: Model, node: Node) -> Dimension | None:
    """The tensor stride a host expression is: `a.stride(0)`, also through a local name."""
    node = _follow(model, node)
    index_node: Node | None = None
    owner: Node | None = None
    if node.type == "call":
        owner = field(node, "function")
        given = field(node, "arguments").named_children
        index_node = given[0] if len(given) == 1 else None
    elif node.type == "subscript" and field(node, "value").type == "call":
        owner = field(field(node, "value"), "function")
        index_node = field(node, "subscript")
    if owner is None or index_node is None or owner.type != "attribute":
        return None
    if (
        model.text(field(owner, "attribute")) != "stride"
        or field(owner, "object").type != "identifier"
    ):
        return None
    index = integer(model, index_node)
    return Dimension(model.text(field(owner, "object")), index) if index is not None else None


def tensor(model: Model, parameter: str) -> str | None:
    """The wrapper's name for the tensor passed as a kernel parameter."""
    node = model.site.arguments.get(parameter) if model.site is not None else None
    return model.text(node) if node is not None and node.type == "identifier" else None


def _follow(model: Model, node: Node) -> Node:
    node = unwrap(node)
    for _ in range(4):
        values = host_values(model, model.text(node)) if node.type == "identifier" else []
        if len(values) != 1:
            break
        node = unwrap(values[0])
    return node


def _shape_of(model: Model, node: Node) -> str | None:
    """`a` of `a.shape` or `a.size()`."""
    node = unwrap(node)
    if node.type == "call" and not field(node, "arguments").named_children:
        node = field(node, "function")
        wanted = "size"
    else:
        wanted = "shape"
    if node.type != "attribute" or model.text(field(node, "attribute")) != wanted:
        return None
    owner = field(node, "object")
    return model.text(owner) if owner.type == "identifier" else None


def _shape_element(model: Model, node: Node) -> Dimension | None:
    """`a.shape[1]` or `a.size(1)`."""
    if node.type == "subscript":
        owner = _shape_of(model, field(node, "value"))
        index = integer(model, field(node, "subscript"))
    elif node.type == "call" and field(node, "function").type == "attribute":
        function = field(node, "function")
        given = field(node, "arguments").named_children
        if model.text(field(function, "attribute")) != "size" or len(given) != 1:
            return None
        owner, index = model.text(field(function, "object")), integer(model, given[0])
    else:
        return None
    return Dimension(owner, index) if owner is not None and index is not None else None


def integer(model: Model, node: Node) -> int | None:
    return int(model.text(node), 0) if node.type == "integer" else None

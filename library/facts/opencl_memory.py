"""Where a kernel reads and writes the memory behind its pointers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from library.facts.opencl_index import Indices, Polynomial, number
from library.languages.c_tree import field, find, unwrapped
from library.languages.opencl_kernel import KernelSource

_MAX_DEPTH = 100
_VECTOR_MOVE = re.compile(r"v(load|store)(?:_half)?(2|3|4|8|16)\b")
_ATOMIC = re.compile(r"(?:atom|atomic)_\w+")


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write of memory that other work-items may see."""

    base: str
    """Parameter (or local array) it goes to."""
    index: Polynomial
    """In elements of the base's type, from the start of the base."""
    reads: bool
    writes: bool
    width: int
    """Elements moved: 1, or N for vloadN and vstoreN."""
    node: Node


class Memory:
    """Every access of one kernel to its pointer parameters and local arrays."""

    def __init__(self, source: KernelSource, indices: Indices) -> None:
        self._source = source
        self._indices = indices
        self.accesses: tuple[Access, ...] = tuple(self._accesses(source.body))

    def within(self, node: Node) -> tuple[Access, ...]:
        """Accesses at or below a node."""
        return tuple(
            a
            for a in self.accesses
            if node.start_byte <= a.node.start_byte and a.node.end_byte <= node.end_byte
        )

    def written(self) -> frozenset[str]:
        """Bases that are written, or might be through a helper that gets the pointer."""
        return frozenset(a.base for a in self.accesses if a.writes)

    def read(self) -> frozenset[str]:
        return frozenset(a.base for a in self.accesses if a.reads)

    def untracked(self, node: Node, *, own_arrays: bool = False) -> Node | None:
        """The first subscript or dereference below `node` that leads to no known base.

        With `own_arrays`, elements of the kernel's own arrays are none of those.
        """
        known = {(a.node.start_byte, a.node.end_byte) for a in self.accesses}
        for found in find(node, "subscript_expression", "pointer_expression"):
            plain = found.type == "subscript_expression"
            if plain and (self._is_inner(found) or self._is_address(found)):
                continue
            if not plain and not self._source.text(found).startswith("*"):
                continue
            root = found
            while root.type == "subscript_expression":
                root = field(root, "argument")
            if own_arrays and plain and self._source.text(root) in self._source.arrays:
                continue
            if (found.start_byte, found.end_byte) not in known:
                return found
        return None

    def _accesses(self, root: Node) -> Iterator[Access]:
        for node in find(root, "subscript_expression", "pointer_expression", "call_expression"):
            if node.type == "call_expression":
                yield from self._call(node)
            elif node.type == "pointer_expression":
                if self._source.text(node).startswith("*"):
                    yield from self._plain(node, field(node, "argument"))
            elif not self._is_inner(node) and not self._is_address(node):
                yield from self._plain(node, node)

    def _is_inner(self, node: Node) -> bool:
        """`t[y]` of `t[y][x]` is no access of its own."""
        parent = node.parent
        return (
            parent is not None
            and parent.type == "subscript_expression"
            and field(parent, "argument") == node
        )

    def _is_address(self, node: Node) -> bool:
        parent = node.parent
        return (
            parent is not None
            and parent.type == "pointer_expression"
            and self._source.text(parent).startswith("&")
        )

    def _plain(self, node: Node, pointer: Node) -> Iterator[Access]:
        place = self.place(pointer)
        if place is not None:
            reads, writes = self._direction(node)
            yield Access(*place, reads, writes, 1, node)

    def _direction(self, node: Node) -> tuple[bool, bool]:
        target = node
        parent = node.parent
        while parent is not None and parent.type in (
            "field_expression",
            "parenthesized_expression",
        ):
            target, parent = parent, parent.parent
        if parent is not None and parent.type == "assignment_expression":
            if field(parent, "left") == target:
                operator = self._source.text(field(parent, "operator"))
                return operator != "=", True
        elif parent is not None and parent.type == "update_expression":
            return True, True
        return True, False

    def _call(self, node: Node) -> Iterator[Access]:
        callee = field(node, "function")
        name = self._source.text(callee)
        arguments = self._source.arguments(node)
        if match := _VECTOR_MOVE.fullmatch(name):
            store = match[1] == "store"
            width = int(match[2])
            if len(arguments) == 3 if store else len(arguments) == 2:
                place = self.place(arguments[-1])
                if place is not None:
                    step = self._indices.polynomial(arguments[-2]) * number(width)
                    yield Access(place[0], place[1] + step, not store, store, width, node)
        elif _ATOMIC.fullmatch(name) or name in self._source.helpers:
            for argument in arguments:
                place = self.place(argument)
                if place is not None and self._is_pointer(argument):
                    parameter = self._source.parameters.get(place[0])
                    const = parameter is not None and parameter.const
                    yield Access(*place, True, not const, 1, node)

    def _is_pointer(self, node: Node) -> bool:
        node = unwrapped(node)
        while node.type == "binary_expression":
            node = unwrapped(field(node, "left"))
        text = self._source.text(node)
        if node.type == "identifier":
            parameter = self._source.parameters.get(text)
            return parameter.pointer if parameter else text in self._arrays_and_pointers()
        return node.type == "pointer_expression" and text.startswith("&")

    def _arrays_and_pointers(self) -> frozenset[str]:
        return frozenset(
            name
            for name, declared in self._source.declared.items()
            for d in declared
            if next(find(d.declarator, "pointer_declarator", "array_declarator"), None) is not None
        )

    def place(self, node: Node, depth: int = 0) -> tuple[str, Polynomial] | None:
        """(base, index) that a pointer expression or subscript goes to; None if not known."""
        node = unwrapped(node)
        if depth > _MAX_DEPTH:
            return None
        if node.type == "identifier":
            return self._named(self._source.text(node), depth + 1)
        if node.type == "subscript_expression":
            below = self.place(field(node, "argument"), depth + 1)
            inside = [n for n in field(node, "indices").named_children if n.type != "comment"]
            if below is None or len(inside) != 1:
                return None
            return below[0], below[1] + self._indices.polynomial(inside[0])
        if node.type == "pointer_expression" and self._source.text(node).startswith("&"):
            return self.place(field(node, "argument"), depth + 1)
        if node.type == "binary_expression" and self._source.text(field(node, "operator")) in "+-":
            below = self.place(field(node, "left"), depth + 1)
            if below is None:
                return None
            step = self._indices.polynomial(field(node, "right"))
            minus = self._source.text(field(node, "operator")) == "-"
            return below[0], below[1] + (-step if minus else step)
        return None

    def _named(self, name: str, depth: int) -> tuple[str, Polynomial] | None:
        parameter = self._source.parameters.get(name)
        declared = self._source.declared.get(name, ())
        if parameter is not None:
            return (name, number(0)) if parameter.pointer and not declared else None
        if len(declared) == 1:
            only = declared[0]
            if next(find(only.declarator, "array_declarator"), None) is not None:
                return (
                    (name, number(0))
                    if self._source.space_of(only.declaration) == "local"
                    else None
                )
            value = self._indices.only_value(name)
            if value is not None and next(find(only.declarator, "pointer_declarator"), None):
                return self.place(value, depth)
        return None

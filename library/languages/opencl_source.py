"""OpenCL C source: parsed with the CUDA grammar, its own words read from the tokens."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from library.languages.c_closure import Definition, Unit, data_of, definitions
from library.languages.c_tokens import blank, blanking, normalized
from library.languages.c_tree import declared_name, field, find, parse

UNITS_KEPT = 8
"""Parsed files that are remembered."""

_ATTRIBUTE = rb"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)"
_WORDS = (
    rb"\b(?:__)?(?:kernel|global|local|constant|private|generic"
    rb"|read_only|write_only|read_write)\b"
)
SPACES = ("global", "local", "constant", "private")
_BLANKED = blanking(_ATTRIBUTE, _WORDS)
_REQUIRED_SIZE = re.compile(r"reqd_work_group_size\s*\(([^)]*)\)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel."""

    name: str
    type: str
    """Element type for a pointer: `float`, `float4`, `int`, …"""
    pointer: bool
    space: str
    """`global`, `local`, `constant` or `private`."""
    const: bool
    """For a pointer: what it points to."""
    restrict: bool
    node: Node


@lru_cache(UNITS_KEPT)
def parse_unit(path: str, data: bytes) -> Unit:
    """An OpenCL C file, parsed; never raises on broken source.

    A file is asked for in turn by what finds its kernels, what analyses each, and ranking.
    """
    blanked, found = blank(data, _BLANKED)
    return Unit(path, data, parse(blanked), found)


def kernel_definitions(unit: Unit) -> Iterator[Definition]:
    """Definitions of the functions marked `__kernel` that parse cleanly."""
    for definition in definitions(unit):
        node = definition.node
        if node.type != "function_definition" or node.has_error:
            continue
        if "kernel" in qualifiers(unit, definition.start, field(node, "declarator").start_byte):
            yield definition


def qualifiers(unit: Unit, start: int, end: int) -> tuple[str, ...]:
    """Address spaces, `kernel` and attributes written in the range, underscores dropped."""
    first = bisect_left(unit.blanked, (start, ""))
    found = []
    for offset, text in unit.blanked[first:]:
        if offset >= end:
            break
        found.append(text if text.startswith("__attribute__") else text.strip("_"))
    return tuple(found)


def required_group_size(unit: Unit, definition: Definition) -> str | None:
    """What `reqd_work_group_size` says of a kernel, as written, or None."""
    end = field(definition.node, "body").start_byte
    for text in qualifiers(unit, definition.start, end):
        if match := _REQUIRED_SIZE.search(text):
            return match[1]
    return None


def function_name(unit: Unit, function: Node) -> str:
    """Name of a function definition."""
    name = declared_name(field(function, "declarator"))
    return data_of(unit, name) if name else ""


def parameters(unit: Unit, function: Node) -> tuple[Parameter, ...]:
    """The parameters of a function, in order."""
    listed = next(find(field(function, "declarator"), "parameter_list"))
    return tuple(_parameters(unit, listed))


def _parameters(unit: Unit, listed: Node) -> Iterator[Parameter]:
    before = listed.start_byte
    for node in listed.children:
        start, before = before, node.end_byte
        declarator = node.child_by_field_name("declarator")
        name = declared_name(declarator) if declarator else None
        if node.type != "parameter_declaration" or declarator is None or name is None:
            continue
        spaces = [q for q in qualifiers(unit, start, node.end_byte) if q in SPACES]
        pointer = declarator.type in ("pointer_declarator", "array_declarator")
        words = normalized(unit.data, node.start_byte, node.end_byte).decode().split()
        yield Parameter(
            name=data_of(unit, name),
            type=data_of(unit, field(node, "type")),
            pointer=pointer,
            space=spaces[0] if spaces else "private",
            const="const" in words[: words.index("*")] if "*" in words else "const" in words,
            restrict=any(word.strip("_") == "restrict" for word in words),
            node=node,
        )

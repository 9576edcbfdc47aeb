"""What a kernel's behaviour depends on across C-family files: includes, helpers, macros, types."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tree_sitter import Node, Tree

from library.languages import Problem, ReadFile
from library.languages.c_tokens import normalized, words
from library.languages.c_tree import declared_name, find

_INCLUDE = re.compile(r'[<"](?P<name>[^>"]+)[>"]')
_CONDITIONALS = ("preproc_if", "preproc_ifdef", "preproc_elif", "preproc_else")
_TRANSPARENT = (*_CONDITIONALS, "linkage_specification", "declaration_list")


@dataclass(frozen=True, slots=True)
class Unit:
    """One source file of a closure, parsed."""

    path: str
    data: bytes
    """As on disk."""
    tree: Tree
    """Of `data` with the words the grammar lacks blanked out; offsets are those of `data`."""
    blanked: tuple[tuple[int, str], ...] = ()
    """Those words, as (offset, text) in order."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Something a file defines at its top level."""

    names: frozenset[str]
    """Empty for what applies to all that follows: `#if` lines, `#pragma`, `#undef`."""
    unit: Unit
    node: Node
    start: int
    """Includes qualifiers and attributes before the node."""
    end: int


def load_units(
    path: str, data: bytes, read: ReadFile, parse_unit: Callable[[str, bytes], Unit]
) -> tuple[tuple[Unit, ...], tuple[Problem, ...]]:
    """The file and what it includes, itself first; a missing include is a Problem with its line.

    An include is looked for beside the file that asks, then beside `path`.
    """
    units: dict[str, Unit] = {}
    problems: list[Problem] = []
    pending = [(path, data)]
    while pending:
        at, content = pending.pop(0)
        if at in units:
            continue
        unit = units[at] = parse_unit(at, content)
        for node in find(unit.tree.root_node, "preproc_include"):
            match = _INCLUDE.search(data_of(unit, node))
            if match is None:
                continue
            name = match["name"]
            for folder in (posixpath.dirname(at), posixpath.dirname(path)):
                candidate = posixpath.normpath(posixpath.join(folder, name))
                inside = not candidate.startswith(("..", "/"))
                if inside and (found := read(candidate)) is not None:
                    pending.append((candidate, found))
                    break
            else:
                line = node.start_point[0] + 1
                problems.append(Problem(at, line, f'"{name}" is included but not found'))
    return tuple(units.values()), tuple(problems)


def data_of(unit: Unit, node: Node) -> str:
    """The node's text as it is on disk."""
    return unit.data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def definitions(unit: Unit) -> Iterator[Definition]:
    """Top-level definitions of a file, those under `#if` included."""
    yield from _definitions(unit, unit.tree.root_node, 0)


def _definitions(unit: Unit, parent: Node, before: int) -> Iterator[Definition]:
    # `before` is where the last thing ended: the root node starts at the first token that was not
    # blanked, so a file's first qualifiers lie outside it.
    for node in parent.children:
        start, before = before, node.end_byte
        if node.type in _TRANSPARENT:
            if node.type in _CONDITIONALS:
                condition = node.child_by_field_name("condition") or node.child_by_field_name(
                    "name"
                )
                end = condition.end_byte if condition else node.start_byte
                yield Definition(frozenset(), unit, node, node.start_byte, end)
            yield from _definitions(unit, node, node.start_byte)
        elif node.type == "preproc_call":
            yield Definition(frozenset(), unit, node, node.start_byte, node.end_byte)
        elif names := frozenset(_names(unit, node)):
            yield Definition(names, unit, node, start, node.end_byte)


def _names(unit: Unit, node: Node) -> Iterator[str]:
    if node.type in ("preproc_def", "preproc_function_def"):
        if name := node.child_by_field_name("name"):
            yield data_of(unit, name)
    elif node.type == "function_definition":
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and (name := declared_name(declarator)):
            yield data_of(unit, name)
    elif node.type in ("declaration", "type_definition", "struct_specifier", "enum_specifier"):
        # A type's name is also yielded where it is only used: that can add to a closure, never
        # leave out.
        for name in find(node, "type_identifier", "enumerator"):
            yield data_of(unit, name)
        for declarator in node.children_by_field_name("declarator"):
            if name := declared_name(declarator):
                yield data_of(unit, name)


def closure_definitions(units: tuple[Unit, ...], entry: Definition) -> tuple[Definition, ...]:
    """`entry` and all it reaches by name, over all files, in order of file and offset."""
    everything = [definition for unit in units for definition in definitions(unit)]
    by_name: dict[str, list[int]] = {}
    for index, definition in enumerate(everything):
        for name in definition.names:
            by_name.setdefault(name, []).append(index)
    reached = {index for index, d in enumerate(everything) if not d.names or d.node == entry.node}
    pending = list(reached)
    while pending:
        definition = everything[pending.pop()]
        for word in words(definition.unit.data, definition.start, definition.end):
            for index in by_name.get(word, ()):
                other = everything[index]
                if index not in reached and not _is_other_overload(other, entry):
                    reached.add(index)
                    pending.append(index)
    return tuple(everything[index] for index in sorted(reached))


def _is_other_overload(other: Definition, entry: Definition) -> bool:
    """A second definition of the entry's own name (under another `#if`) is not part of it."""
    return other.node.type == "function_definition" and bool(other.names & entry.names)


def closure_digest(parts: tuple[Definition, ...], *more: str) -> str:
    """SHA-256 over the definitions' tokens and `more` (language, launch, …), 64 hex digits."""
    sha = hashlib.sha256()
    for text in more:
        sha.update(text.encode() + b"\0")
    for part in parts:
        sha.update(normalized(part.unit.data, part.start, part.end) + b"\0")
    return sha.hexdigest()

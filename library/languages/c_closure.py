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
    # `before` is where the last thing ended: the root node starts at the first token that was not
    # blanked, so a file's first qualifiers lie outside it.
    before = 0
    pending = list(reversed(unit.tree.root_node.children))
    while pending:
        node = pending.pop()
        start, before = before, node.end_byte
        if node.type in _TRANSPARENT:
            before = node.start_byte
            if node.type in _CONDITIONALS:
                condition = node.child_by_field_name("condition") or node.child_by_field_name(
                    "name"
                )
                end = condition.end_byte if condition else node.start_byte
                yield Definition(frozenset(), unit, node, node.start_byte, end)
            pending.extend(reversed(node.children))
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


class Definitions:
    """Everything some files define, by name; what one kernel reaches is asked of it."""

    def __init__(self, units: tuple[Unit, ...]) -> None:
        self._all = [definition for unit in units for definition in definitions(unit)]
        self._by_name: dict[str, list[int]] = {}
        self._everywhere: list[int] = []
        self._words: dict[int, set[str]] = {}
        for index, definition in enumerate(self._all):
            for name in definition.names:
                self._by_name.setdefault(name, []).append(index)
            if not definition.names:
                self._everywhere.append(index)

    def closure(self, entry: Definition) -> tuple[Definition, ...]:
        """`entry` and all it reaches by name, over all files, in order of file and offset."""
        named = {index for name in entry.names for index in self._by_name.get(name, ())}
        reached = {index for index in named if self._all[index].node == entry.node}
        reached.update(self._everywhere)
        pending = list(reached)
        while pending:
            for word in self._words_of(pending.pop()):
                for index in self._by_name.get(word, ()):
                    if index not in reached and not _is_other_overload(self._all[index], entry):
                        reached.add(index)
                        pending.append(index)
        return tuple(self._all[index] for index in sorted(reached))

    def _words_of(self, index: int) -> set[str]:
        if index not in self._words:
            definition = self._all[index]
            self._words[index] = words(definition.unit.data, definition.start, definition.end)
        return self._words[index]


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

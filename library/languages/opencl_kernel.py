"""One OpenCL kernel in its parsed form: what features, facts and transforms read."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from gate.values.kernel import Kernel
from gate.values.workload import Workload
from library.languages.c_closure import Definition, Definitions, Unit, data_of
from library.languages.c_tokens import words
from library.languages.c_tree import declared_name, field, find, locus
from library.languages.opencl_guard import GlobalId, Guard, global_ids, guard_of
from library.languages.opencl_source import (
    Parameter,
    function_name,
    kernel_definitions,
    parameters,
    parse_unit,
    qualifiers,
    required_group_size,
)
from library.target import Locus
from library.workload_source import LaunchSource, WorkloadSource, read_workload

_DEFINED = re.compile(r"-D\s*(\w+)(?:=(\S+))?")
_HIDING = re.compile(
    r"return|if|for|while|do|break|continue|goto|switch|(?:work_group_)?barrier|mem_fence"
    r"|get_\w+|atom(?:ic)?_\w+|(?:work|sub)_group_\w+"
)
_ACTING = re.compile(r"[^=!<>]=[^=]|\+\+|--|;")
_INTEGER = re.compile(r"\(?\s*(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\s*\)?")


@dataclass(frozen=True, slots=True)
class Constant:
    """A macro that is a plain integer."""

    value: int
    because: str


@dataclass(frozen=True, slots=True)
class Declared:
    """A local variable where it is declared."""

    name: str
    declaration: Node
    declarator: Node
    value: Node | None


def _pointer_names(argument: Node) -> Iterator[Node]:
    """Names that an argument may pass as a pointer: not those inside a subscript or another call."""
    inside = ("subscript_expression", "call_expression")
    if argument.type in inside:
        return
    if argument.type == "identifier":
        yield argument
    for child in argument.named_children:
        yield from _pointer_names(child)


class KernelSource:
    """A kernel's function with its parameters, variables, calls and launch, parsed once.

    Raises LookupError if the kernel's own file no longer defines its entry.
    """

    def __init__(self, kernel: Kernel, workload: Workload | None = None) -> None:
        self.kernel = kernel
        own = kernel.launch.path if kernel.launch else None
        files = [file for file in kernel.files if file.path != own]
        self.units: tuple[Unit, ...] = tuple(parse_unit(f.path, f.data) for f in files)
        self.unit = next(unit for unit in self.units if unit.path == kernel.path)
        self.definition: Definition = self._entry()
        self.function: Node = self.definition.node
        self.body: Node = field(self.function, "body")
        self.parameters: Mapping[str, Parameter] = {
            p.name: p for p in parameters(self.unit, self.function)
        }
        if own is not None:
            workload = Workload(own, kernel.file(own).data)
        self.workload: WorkloadSource | None = read_workload(workload) if workload else None

    def _entry(self) -> Definition:
        for definition in kernel_definitions(self.unit):
            if function_name(self.unit, definition.node) == self.kernel.entry:
                return definition
        raise LookupError(f"{self.kernel.path} defines no kernel {self.kernel.entry}")

    @property
    def path(self) -> str:
        return self.unit.path

    @property
    def launch(self) -> LaunchSource | None:
        """The function that gives this kernel's ranges, as written."""
        return self.workload.launch_for(self.kernel.entry) if self.workload else None

    def text(self, node: Node) -> str:
        """The node's source as on disk."""
        return data_of(self.unit, node)

    def locus(self, node: Node) -> Locus:
        return locus(self.path, self.unit.data, node)

    def node_at(self, place: Locus, *types: str) -> Node | None:
        """The outermost node of exactly that range (of one of `types`, if any are given)."""
        node = self.function.descendant_for_byte_range(place.start, place.end)
        found = None
        while node is not None and (node.start_byte, node.end_byte) == (place.start, place.end):
            if not types or node.type in types:
                found = node
            node = node.parent
        return found

    def start(self, node: Node) -> int:
        """Where a statement starts with its address space: the tree's node starts after that."""
        before = node.prev_sibling
        first = before.end_byte if before is not None else node.start_byte
        index = bisect_left(self.unit.blanked, (first, ""))
        found = self.unit.blanked[index : index + 1]
        return found[0][0] if found and found[0][0] < node.start_byte else node.start_byte

    def line(self, node: Node) -> int:
        return node.start_point[0] + 1

    def indent(self, node: Node) -> str:
        """White space before the first thing on the node's line."""
        start = self.unit.data.rfind(b"\n", 0, node.start_byte) + 1
        line = self.unit.data[start : node.start_byte]
        return line[: len(line) - len(line.lstrip())].decode()

    @cached_property
    def indent_unit(self) -> str:
        """One level of indentation, as the body's first statement shows it."""
        for node in self.body.named_children:
            if node.start_point[0] > self.body.start_point[0] and (unit := self.indent(node)):
                return unit
        return "    "

    @cached_property
    def required_group_size(self) -> str | None:
        return required_group_size(self.unit, self.definition)

    @cached_property
    def closure(self) -> tuple[Definition, ...]:
        """The kernel and everything it reaches by name."""
        return Definitions(self.units).closure(self.definition)

    @cached_property
    def helpers(self) -> Mapping[str, Definition]:
        """Functions of the closure other than the kernel, by name."""
        return {
            function_name(d.unit, d.node): d
            for d in self.closure
            if d.node.type == "function_definition" and d.node != self.function
        }

    @cached_property
    def constants(self) -> Mapping[str, Constant]:
        """Integer macros: `#define` of the closure, and `-D` of the launch's literal options."""
        found: dict[str, Constant] = {}
        for definition in self.closure:
            if definition.node.type != "preproc_def":
                continue
            value = definition.node.child_by_field_name("value")
            text = data_of(definition.unit, value).strip() if value else ""
            if match := _INTEGER.fullmatch(text):
                name = data_of(definition.unit, field(definition.node, "name"))
                line = definition.node.start_point[0] + 1
                where = f"line {line} of {definition.unit.path}: #define {name} {text}"
                found[name] = Constant(int(match[1], 0), where)
        options = self.launch.values.get("options") if self.launch else None
        if options is not None:
            for name, text in _DEFINED.findall(options.locus.text):
                if match := _INTEGER.fullmatch(text.rstrip("\"'")):
                    said = f"options of {self.launch.symbol}: -D {name}={text}"  # type: ignore[union-attr]
                    found[name] = Constant(int(match[1], 0), said)
        return found

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """Every name the function uses, for choosing new ones."""
        used = {self.text(n) for n in find(self.function, "identifier", "type_identifier")}
        return frozenset(used | set(self.constants) | set(self.helpers))

    def fresh(self, *candidates: str, taken: frozenset[str] | set[str] = frozenset()) -> str:
        """The first of `candidates` that names nothing yet; else the first with a number."""
        used = self.identifiers | taken
        for name in candidates:
            if name not in used:
                return name
        number = 2
        while f"{candidates[0]}{number}" in used:
            number += 1
        return f"{candidates[0]}{number}"

    @cached_property
    def declared(self) -> Mapping[str, tuple[Declared, ...]]:
        """Local variables by name; a name declared in several scopes has several entries."""
        found: dict[str, list[Declared]] = {}
        for declaration in find(self.body, "declaration"):
            for declarator in declaration.children_by_field_name("declarator"):
                if name := declared_name(declarator):
                    value = declarator.child_by_field_name("value")
                    entry = Declared(self.text(name), declaration, declarator, value)
                    found.setdefault(entry.name, []).append(entry)
        return {name: tuple(entries) for name, entries in found.items()}

    @cached_property
    def arrays(self) -> frozenset[str]:
        """Local variables that are arrays, in private or local memory."""
        return frozenset(
            name
            for name, declared in self.declared.items()
            if any(next(find(d.declarator, "array_declarator"), None) for d in declared)
        )

    @cached_property
    def opaque_macro(self) -> str | None:
        """A macro used in the function whose text hides variables, memory or control flow.

        What such a macro does is not in the tree, so little about the kernel can be proved.
        """
        own = set(self.parameters) | set(self.declared)
        pending = words(self.unit.data, self.body.start_byte, self.body.end_byte)
        reached: set[str] = set()
        while pending:
            name = pending.pop()
            macro = self._macros.get(name)
            if macro is None or name in reached:
                continue
            reached.add(name)
            text, inside = macro
            if inside & own or any(_HIDING.fullmatch(word) for word in inside):
                return name
            if _ACTING.search(text):
                return name
            pending |= inside
        return None

    @cached_property
    def _macros(self) -> Mapping[str, tuple[str, set[str]]]:
        """Text of each macro of the closure, and the words in it that are not its parameters."""
        found = {}
        for definition in self.closure:
            node = definition.node
            value = node.child_by_field_name("value")
            if node.type in ("preproc_def", "preproc_function_def") and value is not None:
                text = data_of(definition.unit, value)
                listed = node.child_by_field_name("parameters")
                named = words(data_of(definition.unit, listed).encode()) if listed else set()
                name = data_of(definition.unit, field(node, "name"))
                found[name] = text, words(text.encode()) - named
        return found

    @cached_property
    def assigned(self) -> Mapping[str, tuple[Node, ...]]:
        """Where plain variables change after their declaration, by name.

        A store to an element of an array changes the array; a variable whose address is taken, and
        an array that a call is handed, count as changed there.
        """
        found: dict[str, list[Node]] = {}
        for name, call in self._handed():
            found.setdefault(name, []).append(call)
        changes = ("assignment_expression", "update_expression", "pointer_expression")
        for node in find(self.body, *changes):
            if node.type == "pointer_expression" and self.text(node)[0] != "&":
                continue
            target = field(node, "left" if node.type == "assignment_expression" else "argument")
            through = False
            while target.type in ("field_expression", "subscript_expression"):
                through |= target.type == "subscript_expression"
                target = field(target, "argument")
            name = self.text(target)
            if target.type == "identifier" and (not through or name in self.arrays):
                found.setdefault(name, []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def _handed(self) -> Iterator[tuple[str, Node]]:
        """(array, call) of each call that gets an array of the kernel's own, or a pointer that may
        lead to one."""
        pointers = {
            name
            for name, declared in self.declared.items()
            if any(next(find(d.declarator, "pointer_declarator"), None) for d in declared)
        }
        for callee, call in self.calls():
            if callee.startswith("vload"):
                continue
            names = {self.text(n) for a in self.arguments(call) for n in _pointer_names(a)}
            for name in self.arrays if names & pointers else names & self.arrays:
                yield name, call

    @cached_property
    def global_ids(self) -> tuple[GlobalId, ...]:
        return global_ids(self)

    @cached_property
    def guard(self) -> Guard:
        return guard_of(self)

    def calls(self, node: Node | None = None) -> Iterator[tuple[str, Node]]:
        """(function name, call node) of each call; vector literals `(float4)(…)` are not calls."""
        for call in find(node or self.body, "call_expression"):
            callee = field(call, "function")
            if callee.type == "identifier":
                yield self.text(callee), call

    def space_of(self, declaration: Node) -> str:
        """Address space written on a local declaration; `private` where none is."""
        before = declaration.prev_sibling
        start = before.end_byte if before else declaration.start_byte
        spaces = qualifiers(self.unit, start, declaration.end_byte)
        return spaces[0] if spaces else "private"

    def arguments(self, call: Node) -> list[Node]:
        """Argument expressions of a call."""
        return [n for n in field(call, "arguments").named_children if n.type != "comment"]

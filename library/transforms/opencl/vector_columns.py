"""Several columns a work-item, as one vector: the lanes are neighbouring ids of dimension 0."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from library.edits import ByteEdit
from library.facts.opencl import OpenCLAnalysis
from library.facts.opencl_index import global_id
from library.facts.opencl_launch import bound_of
from library.facts.opencl_reduction import statements
from library.languages.c_tree import ancestors, declared_name, field, find
from library.languages.opencl_guard import GlobalId
from library.languages.opencl_kernel import KernelSource
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.opencl.lanes import Lanes
from library.transforms.opencl.rewrite import (
    StuckError,
    analysis_of,
    divided_global,
    indented,
    insert,
    refusing,
    rewritten_range,
)

_INTEGER_TYPES = ("int", "uint", "long", "ulong", "size_t", "unsigned int", "unsigned")


@refusing
def vector_columns(
    target: Target, captures: Captures, parameters: Parameters
) -> tuple[ByteEdit, ...]:
    """Give each work-item `width` neighbouring ids of dimension 0, as vectors.

    The statements that depend on the id are written for vectors; where fewer than `width` are left
    they run as they were, once for each. The launch's global size is divided by `width`, rounded up.
    """
    width = int(parameters["width"])
    analysis = analysis_of(target)
    return (
        *_Vectorized(analysis, width).edits(),
        divided_global(analysis.source, 0, width),
    )


class _Vectorized:
    def __init__(self, analysis: OpenCLAnalysis, width: int) -> None:
        self._source = analysis.source
        self._memory = analysis.memory
        self._width = width
        symbol = global_id(0)
        id_ = next((g for g in self._source.global_ids if g.dim == 0 and g.variable), None)
        bound = bound_of(self._source, 0)
        if id_ is None or id_.declaration is None or bound is None:
            raise StuckError("get_global_id(0) is not kept in a variable with a known extent")
        self._id: GlobalId = id_
        self._declaration: Node = id_.declaration
        self._bound = bound[0] if bound[0].replace("_", "a").isalnum() else f"({bound[0]})"
        self._varying = analysis.indices.dependent(symbol)
        self._addresses = self._address_only()
        element = self._element()
        self._lanes = Lanes(
            analysis, symbol, id_.variable, self._varying, self._addresses, element, width, {}
        )

    def _element(self) -> str:
        stored = {
            self._source.parameters[a.base].type
            for a in self._memory.accesses
            if a.writes and a.base in self._source.parameters
        }
        if len(stored) != 1:
            raise StuckError(f"the kernel stores {', '.join(sorted(stored)) or 'nothing'}")
        return stored.pop()

    def _address_only(self) -> frozenset[str]:
        """Integer variables and pointers that depend on the id and serve only to index."""
        source = self._source
        found: set[str] = set()
        for name in self._varying - {self._id.variable}:
            for entry in source.declared.get(name, ()):
                head = source.unit.data[entry.declaration.start_byte : entry.declarator.end_byte]
                kind = source.text(field(entry.declaration, "type"))
                pointer = b"*" in head.split(b"=")[0]
                if pointer or (kind in _INTEGER_TYPES and self._only_indexes(name)):
                    found.add(name)
        return frozenset(found)

    def _only_indexes(self, name: str) -> bool:
        for node in find(self._source.body, "identifier"):
            if self._source.text(node) != name:
                continue
            above = list(ancestors(node, self._source.body))
            kinds = {a.type for a in above}
            if "subscript_argument_list" not in kinds and "init_declarator" not in kinds:
                return False
        return True

    def edits(self) -> Iterator[ByteEdit]:
        source, name, width = self._source, self._id.variable, self._width
        guard = source.guard
        block = field(guard.block, "consequence") if guard.block else source.body
        rest = [
            s for s in statements(block) if s not in guard.statements and s != self._declaration
        ]
        together = self._declared_together()
        if together:
            line = source.line(self._declaration)
            raise StuckError(f"line {line} declares {together} together with {name}")
        varying = [s for s in rest if self._lanes.varies(s)]
        if not varying:
            raise StuckError(f"nothing depends on {name}")
        first, last = varying[0], varying[-1]
        if any(first.start_byte < g.start_byte for g in guard.statements if g != guard.block):
            raise StuckError(f"line {source.line(first)} uses {name} before the guard")
        initializer = source.declared[name][0].value
        if initializer is None:
            raise StuckError(f"{name} has no initializer")
        yield insert(source, initializer.end_byte, f" * {width}")
        yield from self._unfrozen()
        yield self._split(first, last)

    def _declared_together(self) -> str:
        """A variable that depends on the id and is declared in one statement with it, or nothing."""
        for declarator in self._declaration.children_by_field_name("declarator"):
            name = declared_name(declarator)
            text = self._source.text(name) if name is not None else ""
            if text != self._id.variable and text in self._varying:
                return text
        return ""

    def _unfrozen(self) -> Iterator[ByteEdit]:
        """Drops `const` from the id, which the scalar tail counts up."""
        for node in self._declaration.children:
            if node.type == "type_qualifier" and self._source.text(node) == "const":
                after = node.next_sibling
                end = after.start_byte if after is not None else node.end_byte
                yield ByteEdit(self._source.path, node.start_byte, end, b"")

    def _split(self, first: Node, last: Node) -> ByteEdit:
        source, name, width = self._source, self._id.variable, self._width
        indent, unit = source.indent(first), source.indent_unit
        start, end = source.start(first), last.end_byte
        self._repeatable(start, end)
        edits = [
            e
            for s in statements(first.parent or first)
            if start <= s.start_byte < end
            for e in self._statement(s)
        ]
        wide = rewritten_range(source, start, end, edits)
        scalar = source.unit.data[start:end].decode()
        text = (
            f"if ({name} + {width} <= {self._bound}) {{\n"
            f"{indent}{unit}{indented(wide, unit)}\n"
            f"{indent}}} else {{\n"
            f"{indent}{unit}for (; {name} < {self._bound}; ++{name}) {{\n"
            f"{indent}{unit * 2}{indented(scalar, unit, 2)}\n"
            f"{indent}{unit}}}\n"
            f"{indent}}}"
        )
        return ByteEdit(source.path, start, end, text.encode())

    def _repeatable(self, start: int, end: int) -> None:
        """Raises StuckError where running the range once a column would differ from running it once.

        It would where the range changes a variable from outside, unless a loop header sets it first.
        """
        source = self._source
        for name, nodes in source.assigned.items():
            outside = any(
                not start <= d.declaration.start_byte < end for d in source.declared.get(name, ())
            )
            for node in nodes:
                if not start <= node.start_byte < end or not (
                    outside or name not in source.declared
                ):
                    continue
                if not any(_sets(source, loop, name) for loop in ancestors(node, source.body)):
                    line = source.line(node)
                    raise StuckError(f"line {line} changes {name}, which outlives a column")

    def _statement(self, node: Node) -> Iterator[ByteEdit]:
        if not self._lanes.varies(node):
            return
        if node.type == "compound_statement":
            for inner in statements(node):
                yield from self._statement(inner)
        elif node.type in ("if_statement", "for_statement"):
            for part in ("condition", "initializer", "update"):
                found = node.child_by_field_name(part)
                if found is not None and self._lanes.varies(found):
                    raise StuckError(
                        f"line {self._source.line(node)} depends on {self._id.variable}"
                    )
            for part in ("consequence", "alternative", "body"):
                found = node.child_by_field_name(part)
                if found is not None:
                    inner = found.named_children[0] if found.type == "else_clause" else found
                    yield from self._statement(inner)
        elif node.type == "declaration":
            yield from self._lanes.declaration(node)
        elif node.type == "expression_statement":
            yield self._lanes.assignment(node)
        else:
            line = self._source.line(node)
            raise StuckError(
                f"line {line}: a {node.type.replace('_', ' ')} is not written for lanes"
            )


def _sets(source: KernelSource, loop: Node, name: str) -> bool:
    """Whether a loop's header starts with `name = …`."""
    start = loop.child_by_field_name("initializer") if loop.type == "for_statement" else None
    return (
        start is not None
        and start.type == "assignment_expression"
        and source.text(field(start, "left")) == name
    )

"""Several results a work-item: rows of one dimension side by side, sharing what they both load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from library.edits import ByteEdit
from library.facts.opencl import OpenCLAnalysis
from library.facts.opencl_index import global_id
from library.facts.opencl_launch import bound_of
from library.facts.opencl_memory import Access
from library.facts.opencl_reduction import changes_inside, statements
from library.languages.c_tree import ancestors, declared_name, field, find
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.opencl.rewrite import (
    StuckError,
    above_comments,
    analysis_of,
    divided_global,
    edit,
    insert,
    lines,
    refusing,
    renamed,
    rewritten,
)

_COLUMNS = 100
"""Declarations are gathered on a line up to this width."""


@refusing
def coarsen(target: Target, captures: Captures, parameters: Parameters) -> tuple[ByteEdit, ...]:
    """Give each work-item `factor` neighbouring ids of dimension `dim`.

    What depends on the id is repeated for each, statement by statement; a load inside a loop that
    does not depend on it is made once. Ids past the extent repeat the first and store nothing. The
    launch's global size is divided by `factor`, rounded up.
    """
    dim, factor = int(parameters["dim"]), int(parameters["factor"])
    analysis = analysis_of(target)
    return (
        *_Coarsened(analysis, dim, factor).edits(),
        divided_global(analysis.source, dim, factor),
    )


class _Coarsened:
    def __init__(self, analysis: OpenCLAnalysis, dim: int, factor: int) -> None:
        self._source = analysis.source
        self._memory = analysis.memory
        self._indices = analysis.indices
        self._symbol = global_id(dim)
        self._factor = factor
        self._id = next((g for g in self._source.global_ids if g.dim == dim and g.variable), None)
        bound = bound_of(self._source, dim)
        if self._id is None or self._id.declaration is None or bound is None:
            raise StuckError(f"get_global_id({dim}) is not kept in a variable with a known extent")
        self._variable = self._id.variable
        self._declaration = self._id.declaration
        self._bound = bound[0] if bound[0].replace("_", "a").isalnum() else f"({bound[0]})"
        self._varying = self._indices.dependent(self._symbol) | {self._variable}
        self._copies = self._names()
        self._written = self._memory.written()
        self._names_in: dict[int, dict[str, str]] = {}
        """By block, what the loads made once in it are called."""

    def _names(self) -> tuple[Mapping[str, str], ...]:
        """For each of the neighbours, the new names of what depends on the id."""
        for name in self._varying & set(self._source.parameters):
            raise StuckError(f"parameter {name} is changed to something that depends on the id")
        for joint in ("", "_"):
            copies = tuple(
                {name: f"{name}{joint}{i}" for name in self._varying if i or name != self._variable}
                for i in range(self._factor)
            )
            taken = self._source.identifiers
            if not any(new in taken for copy in copies for new in copy.values()):
                return copies
        raise StuckError(f"names such as {self._variable}1 and {self._variable}_1 are taken")

    def edits(self) -> Iterator[ByteEdit]:
        guard = self._source.guard
        region = field(guard.block, "consequence") if guard.block else self._source.body
        past = [
            s
            for s in statements(region)
            if s not in guard.statements and s != self._declaration and self._varies(s)
        ]
        if not past:
            raise StuckError(f"nothing depends on {self._variable}")
        self._declared_alone()
        initializer = self._source.declared[self._variable][0].value
        if initializer is None:
            raise StuckError(f"{self._variable} has no initializer")
        yield insert(self._source, initializer.end_byte, f" * {self._factor}")
        yield self._neighbours(above_comments(past[0]))
        for statement in past:
            yield from self._statement(statement)

    def _declared_alone(self) -> None:
        """Raises StuckError if what depends on the id is declared in one statement with it."""
        for declarator in self._declaration.children_by_field_name("declarator"):
            name = declared_name(declarator)
            text = self._source.text(name) if name is not None else ""
            if text != self._variable and text in self._varying:
                line = self._source.line(declarator)
                raise StuckError(f"line {line} declares {text} together with {self._variable}")

    def _neighbours(self, before: Node) -> ByteEdit:
        source, name = self._source, self._variable
        kind = source.text(field(self._declaration, "type"))
        written = [
            f"const {kind} {copy[name]} = {name} + {i} < {self._bound} ? {name} + {i} : {name};"
            for i, copy in enumerate(self._copies)
            if i
        ]
        said = f"// A {name} past the last repeats this one and is not stored."
        indent = source.indent(before)
        text = lines(indent, said, *written) + f"\n\n{indent}"
        return insert(source, source.start(before), text)

    def _varies(self, node: Node) -> bool:
        return self._indices.depends(node, self._symbol) or any(
            self._source.text(n) in self._varying for n in find(node, "identifier")
        )

    def _statement(self, node: Node) -> Iterator[ByteEdit]:
        if not self._varies(node):
            return
        if node.type == "compound_statement":
            for inner in statements(node):
                yield from self._statement(inner)
        elif node.type in ("if_statement", "for_statement"):
            for part in ("condition", "initializer", "update"):
                found = node.child_by_field_name(part)
                if found is not None and self._varies(found):
                    raise StuckError(f"line {self._source.line(node)} depends on {self._variable}")
            for part in ("consequence", "alternative", "body"):
                found = node.child_by_field_name(part)
                if found is not None:
                    inner = found.named_children[0] if found.type == "else_clause" else found
                    yield from self._statement(inner)
        elif node.type in ("declaration", "expression_statement"):
            yield self._placed(node, self._repeated(node))
        else:
            line = self._source.line(node)
            raise StuckError(f"line {line}: a {node.type.replace('_', ' ')} is not repeated by row")

    def _placed(self, node: Node, texts: list[str]) -> ByteEdit:
        """The statements in place of one; with braces where it stood without."""
        indent = self._indent(node)
        owner = self._owner(node)
        if owner is None:
            text = lines(indent, *texts)
            start = self._source.start(node)
            return ByteEdit(self._source.path, start, node.end_byte, text.encode())
        before = node.prev_sibling
        if before is None:
            raise StuckError(f"line {self._source.line(node)} stands in no block")
        text = f" {{\n{indent}{lines(indent, *texts)}\n{self._source.indent(owner)}}}"
        return ByteEdit(self._source.path, before.end_byte, node.end_byte, text.encode())

    def _owner(self, node: Node) -> Node | None:
        """The loop or `if` whose whole body a statement is, without braces; else None."""
        parent = node.parent
        if parent is None or parent.type == "compound_statement":
            return None
        return parent.parent if parent.type == "else_clause" else parent

    def _indent(self, node: Node) -> str:
        """Indentation of the copies of a statement."""
        owner = self._owner(node)
        if owner is None:
            return self._source.indent(node)
        return self._source.indent(owner) + self._source.indent_unit

    def _repeated(self, node: Node) -> list[str]:
        if node.type == "declaration":
            return self._declared(node)
        changed = changes_inside(node)
        if changed is not None:
            line, text = self._source.line(changed), self._source.text(changed)
            raise StuckError(f"line {line}: {text} would be done for every {self._variable}")
        stores = [
            a for a in self._memory.within(node) if a.writes and a.base in self._source.parameters
        ]
        if any(not self._varies(a.node) for a in stores):
            line = self._source.line(node)
            raise StuckError(f"line {line} stores to one element for every {self._variable}")
        lost = self._memory.untracked(node, own_arrays=True)
        if lost is not None:
            line, text = self._source.line(lost), self._source.text(lost)
            raise StuckError(f"line {line}: {text} is not followed")
        named, shared = self._shared(node)
        copies = [self._copy(node, copy, shared) for copy in self._copies]
        if stores:
            indent = self._indent(node) + self._source.indent_unit
            copies[1:] = [
                f"if ({self._variable} + {i} < {self._bound})\n{indent}{copy}"
                for i, copy in enumerate(copies[1:], start=1)
            ]
        return [*named, *copies]

    def _copy(self, node: Node, names: Mapping[str, str], shared: Mapping[Node, str]) -> str:
        edits = [edit(self._source, load, name) for load, name in shared.items()]
        for found in find(node, "identifier"):
            new = names.get(self._source.text(found))
            if new is not None and not any(_holds(load, found) for load in shared):
                edits.append(edit(self._source, found, new))
        return rewritten(self._source, node, edits)

    def _declared(self, node: Node) -> list[str]:
        source = self._source
        declarators = node.children_by_field_name("declarator")
        names = [declared_name(d) for d in declarators]
        if not all(name is not None and source.text(name) in self._varying for name in names):
            raise StuckError(
                f"line {source.line(node)} declares more than what depends on {self._variable}"
            )
        if any(a.writes for a in self._memory.within(node)):
            raise StuckError(f"line {source.line(node)} declares and may store at once")
        head = source.unit.data[source.start(node) : declarators[0].start_byte].decode()
        value = declarators[0].child_by_field_name("value")
        plain = len(declarators) == 1 and declarators[0].type in ("init_declarator", "identifier")
        if not plain or (value is not None and self._varies(value)):
            space = source.unit.data[source.start(node) : node.start_byte].decode()
            return [space + renamed(source, node, copy) for copy in self._copies]
        return _gathered(
            head,
            [renamed(source, declarators[0], copy) for copy in self._copies],
            _COLUMNS - len(source.indent(node)),
        )

    def _shared(self, node: Node) -> tuple[list[str], dict[Node, str]]:
        """Declarations of loads that all copies of a statement in a loop share, and their names."""
        source = self._source
        block = node.parent
        if block is None or not any(
            a.type == "for_statement" for a in ancestors(node, source.body)
        ):
            return [], {}
        names = self._names_in.setdefault(block.id, {})
        declarations: list[str] = []
        shared: dict[Node, str] = {}
        for access in self._memory.within(node):
            if not self._can_share(access, node) or any(_holds(n, access.node) for n in shared):
                continue
            text, parameter = source.text(access.node), source.parameters[access.base]
            if text not in names or self._changes(access.node, block):
                base = access.base.lower()
                taken = {*names.values(), *(new for copy in self._copies for new in copy.values())}
                names[text] = source.fresh(base, f"{base}_shared", taken=taken)
                kind = parameter.type + (str(access.width) if access.width > 1 else "")
                declarations.append(f"const {kind} {names[text]} = {text};")
            shared[access.node] = names[text]
        return declarations, shared

    def _changes(self, node: Node, block: Node) -> bool:
        """Whether a variable that the expression uses is changed inside the block."""
        return any(
            block.start_byte <= change.start_byte < block.end_byte
            for name in find(node, "identifier")
            for change in self._source.assigned.get(self._source.text(name), ())
        )

    def _can_share(self, access: Access, statement: Node) -> bool:
        """Whether a load can be made once, before the statement, for all copies of it."""
        source = self._source
        if access.base not in source.parameters or access.base in self._written:
            return False
        plain = access.node.type != "call_expression" or source.text(access.node).startswith(
            f"vload{access.width}("
        )
        always = not any(
            a.type == "conditional_expression"
            or (a.type == "binary_expression" and source.text(field(a, "operator")) in ("&&", "||"))
            for a in ancestors(access.node, statement)
        )
        return plain and always and not self._varies(access.node)


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte


def _gathered(head: str, declarators: list[str], width: int) -> list[str]:
    """Declarations of equally many declarators a line, as many as fit."""
    count = len(declarators)
    while count > 1 and any(
        len(head) + len(", ".join(declarators[i : i + count])) + 1 > width
        for i in range(0, len(declarators), count)
    ):
        count = (count + 1) // 2
    return [
        f"{head}{', '.join(declarators[i : i + count])};" for i in range(0, len(declarators), count)
    ]

"""A Python module as its source shows it: functions, imports, module-level names.

Names are resolved through the repository's own files with `read`; what lies outside it keeps its
dotted name (`triton.language.load`) and is never guessed at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from library.languages import ReadFile
from library.languages.python_source import Node, Source, ancestors, field, nodes_of, parse


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function, in order."""

    name: str
    annotation: Node | None
    default: Node | None
    node: Node


@dataclass(frozen=True, slots=True)
class Function:
    """A `def`, with its decorators."""

    name: str
    node: Node
    """The `function_definition`."""
    decorators: tuple[Node, ...]
    """Expressions after the @, top to bottom."""
    nested: bool
    """Inside a class or another function."""

    @property
    def whole(self) -> Node:
        """The definition with its decorators."""
        parent = self.node.parent
        return parent if parent is not None and parent.type == "decorated_definition" else self.node

    @property
    def body(self) -> Node:
        return field(self.node, "body")


@dataclass(frozen=True, slots=True)
class Import:
    """What a name imported at module level stands for."""

    module: str
    """Dotted, with leading dots when relative."""
    symbol: str | None
    """None for `import module`."""
    node: Node

    @property
    def dotted(self) -> str:
        """`triton.language.load` for `from triton.language import load`."""
        return f"{self.module}.{self.symbol}" if self.symbol else self.module


class Module:
    """One parsed module. Lookups are by the name as written in it."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Every `def` of the module, nested ones included, in source order."""
        return tuple(
            _function(self.source, n) for n in nodes_of(self.source.root, "function_definition")
        )

    @cached_property
    def top_level(self) -> dict[str, Function]:
        """Module-level functions by name; a redefinition wins over the earlier one."""
        return {function.name: function for function in self.functions if not function.nested}

    @cached_property
    def imports(self) -> dict[str, Import]:
        """Every imported name, also those imported inside functions or `try` blocks."""
        found: dict[str, Import] = {}
        for node in nodes_of(self.source.root, "import_statement", "import_from_statement"):
            found.update(_imports(self.source, node))
        return found

    @cached_property
    def assignments(self) -> dict[str, tuple[Node, ...]]:
        """Assignments to a name outside functions and classes, all of them, by name."""
        found: dict[str, tuple[Node, ...]] = {}
        for statement in self.source.root.children:
            if statement.type in (
                "function_definition",
                "decorated_definition",
                "class_definition",
            ):
                continue
            for node in nodes_of(statement, "assignment", "augmented_assignment"):
                left = field(node, "left")
                plain = left.type in ("identifier", "pattern_list", "tuple_pattern")
                for target in nodes_of(left, "identifier") if plain else ():
                    name = self.source.text(target)
                    found[name] = (*found.get(name, ()), node)
        return found

    @cached_property
    def definitions(self) -> dict[str, tuple[Node, ...]]:
        """The module-level statements that define each name, imports left out."""
        found: dict[str, tuple[Node, ...]] = {
            name: (function.whole,) for name, function in self.top_level.items()
        }
        for node in nodes_of(self.source.root, "class_definition"):
            found.setdefault(self.source.text(field(node, "name")), (node,))
        for name, nodes in self.assignments.items():
            found[name] = (*found.get(name, ()), *(self._statement(node) for node in nodes))
        return found

    def _statement(self, node: Node) -> Node:
        """The child of the module that holds a node."""
        while node.parent is not None and node.parent.type != "module":
            node = node.parent
        return node

    def constant(self, name: str) -> Node | None:
        """The value expression of a module-level name assigned exactly once, or None."""
        nodes = self.assignments.get(name, ())
        if len(nodes) != 1 or nodes[0].parent != self._statement(nodes[0]):
            return None
        left, right = field(nodes[0], "left"), nodes[0].child_by_field_name("right")
        if left.type == "identifier" or right is None:
            return right
        names = [self.source.text(target) for target in left.named_children]
        values = right.named_children if right.type in ("expression_list", "tuple") else []
        return values[names.index(name)] if name in names and len(names) == len(values) else None

    def qualify(self, node: Node) -> str:
        """The dotted name an expression stands for, aliases resolved: `tl.load` →
        `triton.language.load`. Empty for anything but a chain of names."""
        if node.type == "attribute":
            owner = self.qualify(field(node, "object"))
            return f"{owner}.{self.source.text(field(node, 'attribute'))}" if owner else ""
        if node.type != "identifier":
            return ""
        name = self.source.text(node)
        if name in self.imports:
            return self.imports[name].dotted
        if name in self.top_level:
            return name
        value = self.constant(name)
        if value is not None and value.type in ("identifier", "attribute"):
            return name if self.source.text(value) == name else self.qualify(value)
        return name

    def callee(self, call: Node) -> str:
        """The dotted name a call calls."""
        function = call.child_by_field_name("function")
        return self.qualify(function) if function is not None else ""


class Repository:
    """Modules of one worktree, parsed at most once, found by import."""

    def __init__(self, read: ReadFile) -> None:
        self._read = read
        self._modules: dict[str, Module | None] = {}

    def add(self, path: str, data: bytes) -> Module:
        """The module of a file whose bytes are at hand."""
        module = Module(parse(path, data))
        self._modules[path] = module
        return module

    def module(self, path: str) -> Module | None:
        """The module at a path, or None if the worktree has no such file."""
        if path not in self._modules:
            data = self._read(path)
            self._modules[path] = None if data is None else Module(parse(path, data))
        return self._modules[path]

    def imported(self, importer: Module, item: Import) -> tuple[Module, str] | None:
        """The repository's module an import names, and the symbol in it; None if it is outside."""
        for dotted, symbol in _readings(item):
            for path in _candidates(importer.source.path, dotted):
                module = self.module(path)
                if module is not None and (not symbol or _defines(module, symbol)):
                    return module, symbol
        return None


def parameters(source: Source, function: Function) -> tuple[Parameter, ...]:
    """The function's parameters, in order; `*args` and `**kwargs` are left out."""
    found = []
    for node in field(function.node, "parameters").named_children:
        if node.type == "identifier":
            found.append(Parameter(source.text(node), None, None, node))
        elif node.type == "typed_parameter" and node.named_children[0].type == "identifier":
            name = source.text(node.named_children[0])
            found.append(Parameter(name, node.child_by_field_name("type"), None, node))
        elif node.type in ("default_parameter", "typed_default_parameter"):
            name = source.text(field(node, "name"))
            annotation = node.child_by_field_name("type")
            found.append(Parameter(name, annotation, field(node, "value"), node))
    return tuple(found)


def _function(source: Source, node: Node) -> Function:
    parent = node.parent
    decorators: tuple[Node, ...] = ()
    if parent is not None and parent.type == "decorated_definition":
        decorators = tuple(
            child.named_children[0] for child in parent.children if child.type == "decorator"
        )
    nested = any(
        outer.type in ("class_definition", "function_definition") for outer in ancestors(node)
    )
    return Function(source.text(field(node, "name")), node, decorators, nested)


def _imports(source: Source, node: Node) -> Iterator[tuple[str, Import]]:
    module_node = node.child_by_field_name("module_name")
    base = source.text(module_node) if module_node is not None else ""
    for item in node.children_by_field_name("name"):
        aliased = item.type == "aliased_import"
        dotted = source.text(field(item, "name") if aliased else item)
        alias = source.text(field(item, "alias")) if aliased else ""
        if module_node is not None:
            yield alias or dotted, Import(base, dotted, node)
        elif alias:
            yield alias, Import(dotted, None, node)
        else:
            top = dotted.split(".")[0]
            yield top, Import(top, None, node)


def _readings(item: Import) -> Iterator[tuple[str, str]]:
    """An imported symbol may be a name inside the module, or a submodule of the package."""
    if item.symbol is None:
        yield item.module, ""
        return
    yield item.module, item.symbol
    joint = "" if item.module.endswith(".") else "."
    yield f"{item.module}{joint}{item.symbol}", ""


def _candidates(importer: str, dotted: str) -> Iterator[str]:
    """Paths a dotted module may have: beside the importer and in every folder above it."""
    level = len(dotted) - len(dotted.lstrip("."))
    parts = [part for part in dotted.lstrip(".").split(".") if part]
    folders = importer.split("/")[:-1]
    if level:
        if level - 1 > len(folders):
            return
        bases = [folders[: len(folders) - (level - 1)]]
    else:
        bases = [folders[:depth] for depth in range(len(folders), -1, -1)]
        bases.append(["src"])
    for base in bases:
        stem = "/".join([*base, *parts])
        if parts:
            yield f"{stem}.py"
        yield f"{stem}/__init__.py" if stem else "__init__.py"


def _defines(module: Module, symbol: str) -> bool:
    return symbol in module.definitions or symbol in module.imports

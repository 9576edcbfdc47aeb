"""Scalar expressions written for N lanes at once, as OpenCL vector types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tree_sitter import Node

from library.edits import ByteEdit
from library.facts.opencl import OpenCLAnalysis
from library.facts.opencl_memory import Access
from library.languages.c_tree import ancestors, declared_name, field, find, unwrapped
from library.transforms.opencl.rewrite import StuckError, edit

ELEMENTS = ("float", "int", "uint", "double", "half", "long", "ulong")
"""Element types whose vectors compute as they do; narrower integers widen to int first."""
_ELEMENTWISE = frozenset(
    [
        "exp",
        "exp2",
        "exp10",
        "log",
        "log2",
        "log10",
        "sqrt",
        "rsqrt",
        "cbrt",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "asin",
        "acos",
        "atan",
        "erf",
        "erfc",
        "fabs",
        "floor",
        "ceil",
        "round",
        "trunc",
        "rint",
        "pow",
        "powr",
        "fmod",
        "fma",
        "mad",
        "fmax",
        "fmin",
        "max",
        "min",
        "abs",
        "clamp",
        "mix",
        "native_exp",
        "native_exp2",
        "native_log",
        "native_log2",
        "native_sqrt",
        "native_rsqrt",
        "native_sin",
        "native_cos",
        "native_tan",
        "native_recip",
        "native_divide",
        "native_powr",
        "half_exp",
        "half_log",
        "half_sqrt",
        "half_rsqrt",
        "half_recip",
        "half_divide",
    ]
)
"""Built-in functions that take vectors lane by lane (OpenCL C 3.0 §6.15.2, §6.15.4)."""
_MAX_DEPTH = 100
_SCALAR_TAIL = frozenset(("fmax", "fmin", "max", "min", "clamp"))
"""Those of them that take a scalar after a vector."""


class Lanes:
    """Writes expressions of one region for `width` neighbouring values of an index variable."""

    def __init__(
        self,
        analysis: OpenCLAnalysis,
        symbol: str,
        variable: str,
        varying: frozenset[str],
        addresses: frozenset[str],
        element: str,
        width: int,
        renames: Mapping[str, str],
    ) -> None:
        if element not in ELEMENTS:
            raise StuckError(f"{element} is no scalar type with vectors")
        self._source = analysis.source
        self._indices = analysis.indices
        self._accesses: dict[Node, Access] = {a.node: a for a in analysis.memory.accesses}
        self._symbol = symbol
        self._variable = variable
        self._varying = varying
        self._addresses = addresses
        self._element = element
        self._width = width
        self._renames = renames

    @property
    def type(self) -> str:
        """The vector type: `float8`."""
        return f"{self._element}{self._width}"

    def renamed(self, name: str) -> str:
        """What a variable is called where it holds lanes."""
        return self._renames.get(name, name)

    def varies(self, node: Node) -> bool:
        """Whether an expression differs from lane to lane."""
        return any(
            self._source.text(n) in self._varying or self._source.text(n) == self._variable
            for n in find(node, "identifier")
        )

    def value(self, node: Node) -> str:
        """The expression as a vector, also where it is the same in every lane."""
        text, wide = self._expression(node)
        return text if wide else f"({self.type})({text})"

    def expression(self, node: Node) -> str:
        """The expression; a scalar where it is the same in every lane."""
        return self._expression(node)[0]

    def declaration(self, node: Node) -> Iterator[ByteEdit]:
        """Edits that make a declaration hold vectors; none for what only serves to index."""
        source = self._source
        declarators = node.children_by_field_name("declarator")
        named = [declared_name(d) for d in declarators]
        names = {source.text(name) for name in named if name is not None}
        if names <= self._addresses:
            return
        at = f"line {source.line(node)}"
        if not names <= self._varying - self._addresses:
            raise StuckError(f"{at} declares more than what differs from lane to lane")
        kind = field(node, "type")
        if source.text(kind) != self._element:
            raise StuckError(f"{at}: {source.text(kind)} beside vectors of {self._element}")
        yield edit(source, kind, self.type)
        for declarator in declarators:
            value = declarator.child_by_field_name("value")
            if declarator.type not in ("identifier", "init_declarator"):
                raise StuckError(f"{at}: {source.text(declarator)} is no scalar")
            if value is not None:
                yield edit(source, value, self.expression(value))

    def assignment(self, node: Node) -> ByteEdit:
        """An expression statement that assigns a scalar or stores an element, written for lanes."""
        source = self._source
        inner = node.named_children[0]
        at = f"line {source.line(node)}"
        if inner.type != "assignment_expression":
            raise StuckError(f"{at}: {source.text(node)} is not written for lanes")
        left, right = field(inner, "left"), field(inner, "right")
        operator = source.text(field(inner, "operator"))
        if operator not in ("=", "+=", "-=", "*=", "/="):
            raise StuckError(f"{at}: {operator} is not written for lanes")
        if left.type == "identifier":
            name = source.text(left)
            if name in self._addresses or name == self._variable:
                raise StuckError(f"{at} changes {name}, which is used to index")
            text = f"{self.renamed(name)} {operator} {self.expression(right)};"
            return edit(source, node, text)
        self.place(left)
        where = f"0, &{source.text(left)}"
        value = self.value(right)
        if operator != "=":
            term = f"({value})" if right.type == "binary_expression" else value
            value = f"vload{self._width}({where}) {operator[0]} {term}"
        return edit(source, node, f"vstore{self._width}({value}, {where});")

    def place(self, node: Node) -> Access:
        """The access a subscript makes, if it moves one element a lane."""
        access = self._accesses.get(node)
        text = self._source.text(node)
        if access is None:
            raise StuckError(f"line {self._source.line(node)}: {text} is not followed")
        stride = self._indices.stride(access.index, self._symbol)
        if stride is None or stride.constant != 1 or access.width != 1:
            raise StuckError(f"line {self._source.line(node)}: {text} is not contiguous over lanes")
        parameter = self._source.parameters.get(access.base)
        if parameter is None or parameter.type != self._element:
            raise StuckError(
                f"line {self._source.line(node)}: {text} is no {self._element} in global memory"
            )
        return access

    def _expression(self, node: Node) -> tuple[str, bool]:
        source = self._source
        if sum(1 for _ in ancestors(node, source.body)) > _MAX_DEPTH:
            raise StuckError(f"line {source.line(node)} nests too deeply")
        if not self.varies(node):
            text = source.text(node)
            return self._literal(text) if node.type == "number_literal" else text, False
        if node.type == "identifier":
            name = source.text(node)
            if name == self._variable or name in self._addresses:
                raise StuckError(f"line {source.line(node)} uses {name} outside an index")
            return self.renamed(name), True
        if node.type == "subscript_expression":
            self.place(node)
            return f"vload{self._width}(0, &{source.text(node)})", True
        handler = self._handlers.get(node.type)
        if handler is None:
            raise StuckError(
                f"line {source.line(node)}: {source.text(node)} is not written for lanes"
            )
        return handler(self, node), True

    def _literal(self, text: str) -> str:
        """A literal whose type a vector of the element can take: `1.0` beside float is an error."""
        floating = any(mark in text for mark in ".eE") and not text.startswith(("0x", "0X"))
        return (
            f"{text}f" if self._element == "float" and floating and text[-1] not in "fF" else text
        )

    def _binary(self, node: Node) -> str:
        operator = self._source.text(field(node, "operator"))
        if operator not in ("+", "-", "*", "/"):
            line = self._source.line(node)
            raise StuckError(f"line {line}: {operator} is not written for lanes")
        left, right = self.expression(field(node, "left")), self.expression(field(node, "right"))
        return f"{left} {operator} {right}"

    def _parenthesized(self, node: Node) -> str:
        return f"({self.expression(unwrapped(node))})"

    def _unary(self, node: Node) -> str:
        text = self._source.text(node)
        if text[0] not in "+-":
            raise StuckError(f"line {self._source.line(node)}: {text} is not written for lanes")
        return text[0] + self.expression(field(node, "argument"))

    def _call(self, node: Node) -> str:
        name = self._source.text(field(node, "function"))
        if name not in _ELEMENTWISE:
            line = self._source.line(node)
            raise StuckError(f"line {line}: {name} is not known to work lane by lane")
        arguments = self._source.arguments(node)
        scalar_tail = name in _SCALAR_TAIL and self.varies(arguments[0])
        written = [
            self.expression(a) if scalar_tail and i else self.value(a)
            for i, a in enumerate(arguments)
        ]
        return f"{name}({', '.join(written)})"

    _handlers: Mapping[str, Callable[[Lanes, Node], str]] = {
        "binary_expression": _binary,
        "parenthesized_expression": _parenthesized,
        "unary_expression": _unary,
        "call_expression": _call,
    }

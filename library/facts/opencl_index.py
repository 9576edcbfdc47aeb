"""Array indices as polynomials in ids, loop variables and parameters, and what depends on what.

`C[row * N + col]` with `col = get_global_id(0)` has stride 1 along dimension 0 and N along
dimension 1, whatever N is: no value is needed, only the form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tree_sitter import Node

from library.languages.c_tree import ancestors, find, unwrapped
from library.languages.c_tree import field as child
from library.languages.opencl_kernel import KernelSource

Monomial = tuple[str, ...]
"""Sorted symbols; () is the constant term."""

WORK_ITEM = ("get_global_id", "get_local_id", "get_group_id", "get_local_size", "get_global_size")
_MAX_DEPTH = 100
_MAX_TERMS = 64
"""Longer polynomials are kept as one opaque term; no index a person writes is that long."""


def global_id(dim: int) -> str:
    """The symbol of a global id."""
    return f"get_global_id({dim})"


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of integer multiples of products of symbols."""

    terms: Mapping[Monomial, int] = field(default_factory=dict)
    opaque: Mapping[str, Node] = field(default_factory=dict)
    """Symbols that stand for an expression that is not polynomial, by their text."""

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for monomial, factor in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return Polynomial({m: f for m, f in terms.items() if f}, {**self.opaque, **other.opaque})

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = tuple(sorted(left + right))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return Polynomial({m: f for m, f in terms.items() if f}, {**self.opaque, **other.opaque})

    def __neg__(self) -> Polynomial:
        return Polynomial({m: -f for m, f in self.terms.items()}, self.opaque)

    @property
    def constant(self) -> int | None:
        """The value, if it is a plain number."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(symbol for monomial in self.terms for symbol in monomial)

    def coefficient(self, symbol: str) -> Polynomial | None:
        """How far the value moves when `symbol` grows by one; None if not by a fixed amount."""
        moved: dict[Monomial, int] = {}
        for monomial, factor in self.terms.items():
            power = monomial.count(symbol)
            if power > 1:
                return None
            if power:
                rest = tuple(s for s in monomial if s != symbol)
                moved[rest] = moved.get(rest, 0) + factor
        return Polynomial(moved, self.opaque)

    def __str__(self) -> str:
        parts = []
        for monomial, factor in sorted(self.terms.items()):
            product = " * ".join(monomial)
            parts.append(
                str(factor) if not monomial else product if factor == 1 else f"{factor} * {product}"
            )
        return " + ".join(parts) or "0"


def number(value: int) -> Polynomial:
    """A constant."""
    return Polynomial({(): value} if value else {})


class Indices:
    """Polynomials and dependences of one kernel's expressions."""

    def __init__(self, source: KernelSource) -> None:
        self._source = source
        self._dependent: dict[str, frozenset[str]] = {}

    def polynomial(self, node: Node) -> Polynomial:
        """The expression over symbols; variables that are set once are replaced by their value."""
        result = self._expand(node, frozenset(), 0)
        return result if len(result.terms) <= _MAX_TERMS else self._opaque(node)

    def _expand(self, node: Node, within: frozenset[str], depth: int) -> Polynomial:
        node = unwrapped(node)
        if depth > _MAX_DEPTH:
            return self._opaque(node)
        text = self._source.text(node)
        if node.type == "number_literal":
            digits = text.rstrip("uUlL")
            try:
                return number(int(digits, 0))
            except ValueError:
                return self._opaque(node)
        if node.type == "identifier":
            return self._name(text, node, within, depth + 1)
        if node.type == "cast_expression":
            if self._source.text(child(node, "type")) not in _INTEGERS:
                return self._opaque(node)
            return self._expand(child(node, "value"), within, depth + 1)
        if node.type == "call_expression":
            return self._call(node, within, depth + 1)
        if node.type == "unary_expression" and text.startswith(("-", "+")):
            value = self._expand(child(node, "argument"), within, depth + 1)
            return -value if text.startswith("-") else value
        if node.type == "binary_expression":
            left = self._expand(child(node, "left"), within, depth + 1)
            right = self._expand(child(node, "right"), within, depth + 1)
            operator = self._source.text(child(node, "operator"))
            if operator == "*":
                return (
                    left * right
                    if len(left.terms) * len(right.terms) <= _MAX_TERMS
                    else self._opaque(node)
                )
            if operator in ("+", "-"):
                return left + (right if operator == "+" else -right)
        return self._opaque(node)

    def _name(self, name: str, node: Node, within: frozenset[str], depth: int) -> Polynomial:
        constant = self._source.constants.get(name)
        if constant is not None:
            return number(constant.value)
        value = self.only_value(name)
        if value is None or name in within or self._narrow(name):
            return Polynomial({(name,): 1})
        expanded = self._expand(value, within | {name}, depth)
        return Polynomial({(name,): 1}) if expanded.opaque else expanded

    def _narrow(self, name: str) -> bool:
        """Whether a variable may not hold the whole value it is set to: `uchar` wraps at 256."""
        declared = self._source.declared[name][0]
        pointer = next(find(declared.declarator, "pointer_declarator"), None) is not None
        kind = self._source.text(child(declared.declaration, "type"))
        return not pointer and kind not in _INTEGERS

    def only_value(self, name: str) -> Node | None:
        """The initializer of a variable declared once and never changed; else None."""
        declared = self._source.declared.get(name, ())
        shadows = name in self._source.parameters
        if len(declared) != 1 or shadows or name in self._source.assigned:
            return None
        return declared[0].value

    def _call(self, node: Node, within: frozenset[str], depth: int) -> Polynomial:
        callee = child(node, "function")
        arguments = self._source.arguments(node)
        if self._source.text(callee) in WORK_ITEM and len(arguments) == 1:
            return Polynomial({(self._source.text(node).replace(" ", ""),): 1})
        cast = unwrapped(callee)
        if callee != cast and len(arguments) == 1 and self._source.text(cast) in _INTEGERS:
            return self._expand(arguments[0], within, depth)
        return self._opaque(node)

    def _opaque(self, node: Node) -> Polynomial:
        text = self._source.text(node)
        return Polynomial({(text,): 1}, {text: node})

    def stride(self, index: Polynomial, symbol: str) -> Polynomial | None:
        """Elements the index moves when `symbol` grows by one; None where that is not fixed."""
        others = index.symbols - {symbol}
        for name in others:
            node = index.opaque.get(name)
            if self.depends(node, symbol) if node else name in self.dependent(symbol):
                return None
        return index.coefficient(symbol)

    # ---- dependence -----------------------------------------------------------------------

    def dependent(self, symbol: str) -> frozenset[str]:
        """Variables whose value may differ where `symbol` differs.

        `symbol` is a variable's name or `global_id(dim)`. Through assignments, and through the
        conditions around them; the guard that sends surplus work-items home does not count, since
        whoever passes it has passed it.
        """
        if symbol not in self._dependent:
            self._dependent[symbol] = self._closed(symbol, self._influences)
        return self._dependent[symbol]

    def depends(self, node: Node, symbol: str) -> bool:
        """Whether the expression's value may differ where `symbol` differs."""
        return self._touches(node, symbol, self.dependent(symbol))

    def varying_in(self, body: Node, variable: str) -> frozenset[str]:
        """Variables set inside a loop body to something that differs from iteration to iteration."""
        inside = {
            name: tuple(n for n in nodes if body.start_byte <= n.start_byte < body.end_byte)
            for name, nodes in self._influences.items()
        }
        return self._closed(variable, inside)

    def _touches(self, node: Node, symbol: str, names: frozenset[str] | set[str]) -> bool:
        is_call = symbol.endswith(")")
        for found in find(node, "identifier", "call_expression"):
            text = self._source.text(found)
            if found.type == "identifier":
                if text in names or (text == symbol and not is_call):
                    return True
            elif is_call and text.replace(" ", "") == symbol:
                return True
        return False

    def _closed(self, symbol: str, influences: Mapping[str, tuple[Node, ...]]) -> frozenset[str]:
        names: set[str] = set()
        while True:
            grown = {
                name
                for name, nodes in influences.items()
                if name not in names and any(self._touches(n, symbol, names) for n in nodes)
            }
            if not grown:
                return frozenset(names)
            names |= grown

    @cached_property
    def _influences(self) -> Mapping[str, tuple[Node, ...]]:
        """By variable, all expressions that can decide its value."""
        found: dict[str, list[Node]] = {}
        for name, declared in self._source.declared.items():
            for entry in declared:
                if entry.value is not None:
                    found.setdefault(name, []).append(entry.value)
                found.setdefault(name, []).extend(self._conditions(entry.declaration))
        for name, nodes in self._source.assigned.items():
            for node in nodes:
                if node.type == "assignment_expression":
                    found.setdefault(name, []).append(child(node, "right"))
                    found[name].extend(find(child(node, "left"), "subscript_argument_list"))
                elif node.type in ("pointer_expression", "call_expression"):
                    found.setdefault(name, []).extend(self._statement_of(node))
                found.setdefault(name, []).extend(self._conditions(node))
        return {name: tuple(nodes) for name, nodes in found.items()}

    def _statement_of(self, node: Node) -> Iterator[Node]:
        """The statement an expression stands in: `&c` of `sincos(x, &c)` makes c depend on x."""
        for parent in ancestors(node, self._source.body):
            if parent.type in ("expression_statement", "declaration"):
                yield parent
                return

    def _conditions(self, node: Node) -> Iterator[Node]:
        for parent in ancestors(node, self._source.body):
            if parent.type in ("if_statement", "while_statement", "do_statement", "for_statement"):
                condition = parent.child_by_field_name("condition")
                guard = parent.type == "if_statement" and parent == self._source.guard.block
                if condition is not None and not guard:
                    yield condition


_INTEGERS = (
    *("int", "uint", "unsigned", "unsigned int", "long", "ulong", "unsigned long", "long long"),
    *("size_t", "ptrdiff_t"),
)
"""Types that hold any index the kernel can have; narrower ones wrap."""

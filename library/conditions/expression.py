"""The condition language: a strict subset of Python expressions, parsed once and cached."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from library.errors import ConditionError
from library.features import NAMES

MAX_CHARACTERS = 500
MAX_DEPTH = 24
MAX_EXPONENT = 64
MAX_INTEGER = 2**63

OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Pow)
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)

BUILTINS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"capability": (1, 1), "platform_is": (1, 1), "has": (1, 2), "absent": (1, 2)}
)
"""Fact functions that need no language: fewest and most arguments."""
OF_THE_PLATFORM = frozenset({"capability", "platform_is"})


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition: its text, and a tree that holds nothing but what the language allows."""

    text: str
    tree: ast.expr
    functions: frozenset[str]
    """Fact functions it calls."""
    names: frozenset[str]
    """Bare names it reads."""

    @property
    def about_platform_alone(self) -> bool:
        """True if only the device decides it, so that no edit of the kernel can meet it."""
        return bool(self.functions) and self.functions <= OF_THE_PLATFORM and not self.names


@lru_cache(maxsize=4096)
def parse(text: str) -> Condition:
    """The condition `text` writes. Raises ConditionError naming the part that is not allowed."""
    if len(text) > MAX_CHARACTERS:
        raise ConditionError(
            f"condition is {len(text)} characters long; {MAX_CHARACTERS} is the most"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = getattr(error, "msg", None) or str(error) or "nested too deeply"
        raise ConditionError(f"{text!r} is not an expression: {what}") from error
    checker = _Checker(text.strip())
    checker.check(tree, MAX_DEPTH)
    return Condition(text.strip(), tree, frozenset(checker.functions), frozenset(checker.names))


class _Checker:
    """Lets the allowed subset pass and collects the functions and names it uses."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.functions: set[str] = set()
        self.names: set[str] = set()

    def check(self, node: ast.expr, depth: int) -> None:
        """Raises ConditionError for a node that is not allowed, or nests deeper than `depth`."""
        if depth == 0:
            raise ConditionError(f"condition nests deeper than {MAX_DEPTH} levels")
        for part in self._parts(node):
            self.check(part, depth - 1)

    def _parts(self, node: ast.expr) -> list[ast.expr]:
        """Operands of an allowed node. Raises ConditionError for any other."""
        match node:
            case ast.Constant(value=value):
                self._check_constant(node, value)
                return []
            case ast.Name(id=name):
                self.names.add(name)
                return []
            case ast.BinOp(left=left, op=op, right=right):
                if not isinstance(op, OPERATORS):
                    raise self._not_allowed(node, "the operators are + - * // % **")
                if isinstance(op, ast.Pow):
                    self._check_exponent(right)
                return [left, right]
            case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
                return [operand]
            case ast.BoolOp(values=values):
                return values
            case ast.Compare(left=left, ops=ops, comparators=right):
                if not all(isinstance(op, COMPARISONS) for op in ops):
                    raise self._not_allowed(node, "compare with == != < <= > >= in, not in")
                return [left, *right]
            case ast.Tuple(elts=elements):
                return elements
            case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
                self._check_call(node, function, arguments)
                self.functions.add(function)
                return arguments
        raise self._not_allowed(node, "see docs/conditions.md for what a condition may hold")

    def _check_constant(self, node: ast.Constant, value: object) -> None:
        if type(value) not in (int, float, str):
            raise self._not_allowed(node, "literals are integers, floats and strings")
        if isinstance(value, int) and value >= MAX_INTEGER:
            raise self._not_allowed(node, "integers stay below 2**63")

    def _check_exponent(self, node: ast.expr) -> None:
        value = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(value, int) or value > MAX_EXPONENT:
            raise self._not_allowed(node, f"an exponent is a literal of at most {MAX_EXPONENT}")

    def _check_call(self, node: ast.Call, function: str, arguments: list[ast.expr]) -> None:
        if any(isinstance(argument, ast.Starred) for argument in arguments):
            raise self._not_allowed(node, "arguments are written out")
        fewest, most = BUILTINS.get(function, (0, 8))
        if not fewest <= len(arguments) <= most:
            raise self._not_allowed(node, f"{function} takes {fewest} to {most} arguments")
        if function in BUILTINS:
            first = arguments[0]
            if not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
                raise self._not_allowed(node, f"{function} takes a string literal first")
            if function in ("has", "absent") and first.value not in NAMES:
                raise self._not_allowed(node, f"{first.value!r} is no feature id (F01 to F34)")

    def _not_allowed(self, node: ast.expr, hint: str) -> ConditionError:
        # The source text, not ast.unparse: that recurses, and this node may nest deeply.
        written = ast.get_source_segment(self._text, node) or self._text
        return ConditionError(f"`{written}` is not allowed in a condition: {hint}")

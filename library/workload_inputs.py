"""Names, dtypes and shapes of a workload's inputs, where `make_inputs` writes them plainly."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

MAX_INTEGER = 2**63
ALIASES = {
    "half": "float16",
    "float": "float32",
    "single": "float32",
    "double": "float64",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}
CANONICAL = frozenset(
    {"bool", "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
CASTS = {"half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64"}
KEEPS = frozenset(
    {"contiguous", "cuda", "cpu", "clone", "copy", "detach", "requires_grad_"}
    | {"normal_", "uniform_", "mul_", "add_", "div_"}
)
"""Methods that leave dtype and shape alone."""

FACTORIES: Mapping[str, tuple[str, int | None]] = {
    "randn": ("variadic", None),
    "rand": ("variadic", None),
    "zeros": ("first", 0),
    "ones": ("first", 0),
    "empty": ("first", 0),
    "full": ("first", 0),
    "standard_normal": ("first", 0),
    "random": ("first", 0),
    "normal": ("nth", 2),
    "uniform": ("nth", 2),
    "randint": ("nth", 2),
    "integers": ("nth", 2),
}
"""Array makers of numpy and torch, and where each takes its shape."""

ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


@dataclass(frozen=True, slots=True)
class InputSource:
    """One input, as make_inputs writes it."""

    name: str
    dtype: str | None
    """`float32`, `bfloat16`, …; None where it is not plain, and for scalars."""
    shape: tuple[str | int, ...] | None
    """Axis names and integers, one a dimension; None where it is not plain, and for scalars."""
    line: int


class Scope:
    """Names that are assigned exactly once, with what they are assigned."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    @classmethod
    def of_module(cls, tree: ast.Module) -> Scope:
        """Top-level names of a file."""
        return cls(assigned_once(tree.body))

    def within(self, function: ast.FunctionDef) -> Scope:
        """Names as seen inside a function. Parameters stay symbolic but for a dtype's default."""
        outer = {n: v for n, v in self.names.items() if n not in _parameter_names(function)}
        dtypes = {n: v for n, v in self.parameters(function).items() if dtype_of(v) is not None}
        return Scope({**outer, **dtypes, **assigned_once(function.body)})

    def parameters(self, function: ast.FunctionDef) -> dict[str, ast.expr]:
        """Parameters that have a default, with it."""
        arguments = function.args
        positional = arguments.posonlyargs + arguments.args
        first = len(positional) - len(arguments.defaults)
        found = dict(zip((a.arg for a in positional[first:]), arguments.defaults, strict=True))
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                found[argument.arg] = default
        return found

    def resolve(self, node: ast.expr) -> ast.expr:
        """What a name stands for; anything else, and a name not assigned once, is itself."""
        for _ in range(8):  # a chain of aliases; a cycle ends here
            if not isinstance(node, ast.Name) or node.id not in self.names:
                break
            node = self.names[node.id]
        return node

    def integer(self, node: ast.expr, depth: int = 8) -> int | None:
        """The integer an expression of literals and module constants stands for."""
        node = self.resolve(node)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value if abs(node.value) < MAX_INTEGER else None
        if isinstance(node, ast.BinOp) and depth:
            left = self.integer(node.left, depth - 1)
            right = self.integer(node.right, depth - 1)
            if left is None or right is None:
                return None
            return _combine(node.op, left, right)
        return None

    def number(self, node: ast.expr) -> float | None:
        """The non-negative number a literal or a named literal stands for."""
        node = self.resolve(node)
        if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
            return None
        if isinstance(node.value, float):
            return node.value
        return (
            float(node.value) if isinstance(node.value, int) and node.value < MAX_INTEGER else None
        )

    def items(self, node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
        """Items of a dict display, or of `dict(name=value)`; none if it is neither or has a `**`."""
        node = self.resolve(node)
        if isinstance(node, ast.Dict):
            if all(isinstance(k, ast.Constant) and isinstance(k.value, str) for k in node.keys):
                for key, value in zip(node.keys, node.values, strict=True):
                    yield str(key.value), value  # type: ignore[union-attr]
        elif isinstance(node, ast.Call) and _last_name(node.func) in ("dict", "OrderedDict"):
            if not node.args and all(k.arg for k in node.keywords):
                for keyword in node.keywords:
                    yield str(keyword.arg), keyword.value
            elif len(node.args) == 1 and not node.keywords:
                yield from self.items(node.args[0])


def _combine(op: ast.operator, left: int, right: int) -> int | None:
    function = ARITHMETIC.get(type(op))
    if isinstance(op, ast.LShift) and 0 <= right < 63:
        value = left << right
    elif isinstance(op, ast.Pow) and 0 <= right < 63 and abs(left) <= 2**20:
        value = left**right
    elif function is None or (right == 0 and isinstance(op, ast.FloorDiv | ast.Mod)):
        return None
    else:
        value = function(left, right)
    return value if abs(value) < MAX_INTEGER else None


def assigned_once(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """Names a block of statements assigns once, at its own level."""
    found: dict[str, ast.expr] = {}
    stores: dict[str, int] = {}
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stores[node.id] = stores.get(node.id, 0) + 1
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = statement.value
                elif isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                    pairs = zip(target.elts, statement.value.elts, strict=False)
                    found.update({t.id: v for t, v in pairs if isinstance(t, ast.Name)})
        elif (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.value is not None
        ):
            found[statement.target.id] = statement.value
    return {name: value for name, value in found.items() if stores.get(name) == 1}


def _parameter_names(function: ast.FunctionDef) -> set[str]:
    arguments = function.args
    return {a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs}


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def dtype_of(node: ast.expr) -> str | None:
    """The dtype a `torch.bfloat16`, `np.float32` or `"float32"` names, in canonical spelling."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        name = node.attr
    else:
        return None
    return name if name in CANONICAL else ALIASES.get(name)


def read_inputs(make_inputs: ast.FunctionDef, module: Scope) -> tuple[InputSource, ...]:
    """Inputs in order, if make_inputs has exactly one return and it is a dict display."""
    returns = [node for node in ast.walk(make_inputs) if isinstance(node, ast.Return)]
    if len(returns) != 1 or returns[0].value is None:
        return ()
    scope = module.within(make_inputs)
    return tuple(
        InputSource(name, *_array(scope.resolve(node), scope, 8), node.lineno)
        for name, node in scope.items(returns[0].value)
    )


Array = tuple[str | None, tuple[str | int, ...] | None]


def _array(node: ast.expr, scope: Scope, depth: int) -> Array:
    """(dtype, shape) of an array expression; None for what it does not say plainly."""
    node = scope.resolve(node)
    if depth == 0:
        return None, None
    if isinstance(node, ast.BinOp):
        return _scaled(node, scope, depth)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None, None
    method = node.func.attr
    if method in ("astype", "to", "type") or method in CASTS or method in KEEPS:
        dtype, shape = _array(node.func.value, scope, depth - 1)
        if method in CASTS:
            return CASTS[method], shape
        if method in KEEPS:
            return dtype, shape
        return _cast(node, scope, dtype), shape
    if method in FACTORIES:
        return _factory_dtype(node, scope), _factory_shape(node, scope)
    return None, None


def _scaled(node: ast.BinOp, scope: Scope, depth: int) -> Array:
    """A floating array times, over, plus or minus a Python number keeps its dtype."""
    left, right = scope.resolve(node.left), scope.resolve(node.right)
    array = right if isinstance(left, ast.Constant) else left
    number = left if array is right else right
    if not isinstance(number, ast.Constant | ast.UnaryOp):
        return None, None
    dtype, shape = _array(array, scope, depth - 1)
    return (dtype if dtype and "float" in dtype else None), shape


def _cast(node: ast.Call, scope: Scope, before: str | None) -> str | None:
    given = [*node.args, *(k.value for k in node.keywords if k.arg == "dtype")]
    named = [dtype for item in given if (dtype := dtype_of(scope.resolve(item)))]
    if named:
        return named[0]
    moved = all(
        isinstance(item, ast.Name | ast.Constant) and _is_device(item) for item in node.args
    )
    return before if moved and _last_name(node.func) == "to" else None


def _is_device(node: ast.Name | ast.Constant) -> bool:
    return (node.id if isinstance(node, ast.Name) else str(node.value)).startswith(
        ("device", "cuda", "cpu")
    )


def _is_torch(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and _last_name(node.value) == "torch"


def _factory_dtype(node: ast.Call, scope: Scope) -> str | None:
    name = _last_name(node.func)
    for keyword in node.keywords:
        if keyword.arg == "dtype":
            return dtype_of(scope.resolve(keyword.value))
    if name == "full":
        return None  # follows the fill value
    if name in ("randint", "integers"):
        return "int64"
    positional = {"zeros": 1, "ones": 1, "empty": 1, "standard_normal": 1, "random": 1}
    if not _is_torch(node.func):
        at = positional.get(name)
        if at is not None and len(node.args) > at:
            return dtype_of(scope.resolve(node.args[at]))
        return "float64"
    return "float32"


def _factory_shape(node: ast.Call, scope: Scope) -> tuple[str | int, ...] | None:
    kind, at = FACTORIES[_last_name(node.func)]
    named = [k.value for k in node.keywords if k.arg in ("size", "shape")]
    if named:
        return _dimensions(named[0], scope)
    if not node.args:
        return None
    first = scope.resolve(node.args[0])
    variadic = kind == "variadic" or (_is_torch(node.func) and _last_name(node.func) != "full")
    if kind == "nth":
        index = at or 0
        return _dimensions(node.args[index], scope) if len(node.args) > index else None
    if variadic and not isinstance(first, ast.Tuple | ast.List):
        return _dimensions(ast.Tuple(elts=list(node.args)), scope)
    return _dimensions(first, scope)


def _dimensions(node: ast.expr, scope: Scope) -> tuple[str | int, ...] | None:
    node = scope.resolve(node)
    elements = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    found: list[str | int] = []
    for element in elements:
        value = scope.integer(element)
        resolved = scope.resolve(element)
        if value is not None:
            found.append(value)
        elif isinstance(resolved, ast.Name):
            found.append(resolved.id)
        else:
            return None
    return tuple(found)

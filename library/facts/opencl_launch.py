"""What the launch function of a workload says: ranges, local size, options. Read, never run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from tree_sitter import Node

from gate.values.workload import Axes
from library.fact import Answer, Known, Missing
from library.facts.opencl_index import Indices, Polynomial
from library.languages.c_tree import find
from library.languages.opencl_kernel import KernelSource
from library.languages.opencl_source import function_name, kernel_definitions
from library.target import Locus
from library.workload_inputs import assigned_once
from library.workload_source import LaunchSource

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
Numbers = Callable[[Polynomial, Axes | None], int | Missing]
_MAX_DEPTH = 12
"""Of nested operations; also ends names that are set to each other."""
_DECLARE = 'write the launch as `return {"global": (…, …)}` in the workload file'


def global_element(source: KernelSource, dim: int) -> Locus | None:
    """Where the launch writes the global size of a dimension; None if it does not in plain sight."""
    value = source.launch.values.get("global") if source.launch else None
    return value.elements[dim] if value and dim < len(value.elements) else None


def bound_of(source: KernelSource, dim: int) -> tuple[str, str] | None:
    """(expression, where it is from) that a dimension's id stays below in every work-item.

    From the guard, or, without one, from a launch of exactly `axes["M"]` work-items where the
    kernel takes an integer M: the gate binds a scalar to the axis of its name.
    """
    variable = next((g.variable for g in source.global_ids if g.dim == dim), "")
    guard = source.guard.bounds.get(variable)
    if guard is not None:
        if not _steady(source, guard):
            return None
        return source.text(guard), f"line {source.line(guard)}: {variable} < {source.text(guard)}"
    element = global_element(source, dim)
    if element is None or source.launch is None or source.guard.statements:
        return None
    axis = _Expression(source.launch).axis(element.text)
    parameter = source.parameters.get(axis) if axis else None
    named = source.launch.values.get("arguments")
    if axis and parameter and not parameter.pointer and named is None and _same(source, axis):
        return axis, f"line {element.line} of {element.path}: global size {element.text}"
    return None


def _steady(source: KernelSource, bound: Node) -> bool:
    """Whether a bound has the same value wherever it is written again."""
    if any(find(bound, "assignment_expression", "update_expression", "call_expression")):
        return False
    return all(_same(source, source.text(name)) for name in find(bound, "identifier"))


def _same(source: KernelSource, name: str) -> bool:
    """Whether a name means one thing in the whole kernel, and never changes."""
    meanings = len(source.declared.get(name, ())) + (name in source.parameters)
    return name not in source.assigned and meanings <= 1


class _Expression:
    """Integer expressions of a launch function, over the axes and names it sets once."""

    def __init__(self, launch: LaunchSource) -> None:
        self._parameter = launch.parameter
        function = ast.parse(launch.locus.text).body[0]
        self._names = assigned_once(function.body) if isinstance(function, ast.FunctionDef) else {}

    def axis(self, text: str) -> str | None:
        """M, where the expression is `axes["M"]` or a name set to that."""
        return self._axis(_parsed(text))

    def value(self, text: str, axes: Axes) -> int | None:
        """The value at a shape, or None if it is more than plain arithmetic."""
        return self._value(_parsed(text), axes, depth=0)

    def _resolved(self, node: ast.expr) -> ast.expr:
        return self._names.get(node.id, node) if isinstance(node, ast.Name) else node

    def _axis(self, node: ast.expr) -> str | None:
        node = self._resolved(node)
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id == self._parameter
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
        ):
            return node.slice.value
        return None

    def _value(self, node: ast.expr, axes: Axes, depth: int) -> int | None:
        node = self._resolved(node)
        if depth > _MAX_DEPTH:
            return None
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._value(node.operand, axes, depth + 1)
            return None if value is None else -value
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left = self._value(node.left, axes, depth + 1)
            right = self._value(node.right, axes, depth + 1)
            divides = isinstance(node.op, ast.FloorDiv | ast.Mod)
            if left is None or right is None or (divides and right == 0):
                return None
            return _OPERATORS[type(node.op)](left, right)
        axis = self._axis(node)
        return axes.get(axis) if axis else None


def _parsed(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


class LaunchFacts:
    """Facts about ranges."""

    def __init__(self, source: KernelSource, indices: Indices, numbers: Numbers) -> None:
        self._source = source
        self._indices = indices
        self._numbers = numbers

    def launch_dim(self, dim: int) -> Answer:
        """Whether the launch writes a global size for the dimension where an edit can reach it."""
        element = global_element(self._source, dim)
        sharing = self._sharing()
        if sharing:
            return Known(False, f"launch also serves {', '.join(sharing)}; write launch_<kernel>")
        if element is not None:
            return Known(True, f"line {element.line} of {element.path}: {element.text}")
        launch = self._source.launch
        value = launch.values.get("global") if launch else None
        if value and value.elements:
            said = f"line {value.locus.line} of {value.locus.path}: {value.locus.text}"
            return Known(False, said)
        return self._unwritten("global")

    def _sharing(self) -> list[str]:
        """Other kernels of the file whose launch is the same function."""
        source = self._source
        if source.workload is None or source.launch is None:
            return []
        names = [function_name(source.unit, d.node) for d in kernel_definitions(source.unit)]
        return [
            name
            for name in names
            if name != source.kernel.entry and source.workload.launch_for(name) == source.launch
        ]

    def global_size(self, dim: int, axes: Axes | None) -> Answer:
        """Work-items along a dimension at a shape."""
        size = self._size(dim, axes)
        return size if isinstance(size, Missing) else Known(*size)

    def _size(self, dim: int, axes: Axes | None) -> tuple[int, str] | Missing:
        element = global_element(self._source, dim)
        launch = self._source.launch
        if launch is None or "global" not in launch.values:
            return self._unwritten("global")
        if element is None:
            said = f"{launch.symbol} writes no global size for dimension {dim}"
            return Missing(said, _DECLARE)
        value = _Expression(launch).value(element.text, axes or {})
        if value is None:
            said = f"global size {element.text} is not plain arithmetic over declared axes"
            return Missing(said, "write it over the axes, and declare SHAPES")
        return value, f"line {element.line} of {element.path}: {element.text}"

    def global_divides(self, dim: int, factor: int, axes: Axes | None) -> Answer:
        """Whether a dimension's global size is a multiple of `factor` at a shape."""
        size = self._size(dim, axes)
        if isinstance(size, Missing):
            return size
        return Known(size[0] % factor == 0, f"{size[1]} = {size[0]}")

    def local_size_given(self) -> Answer:
        """Whether the launch fixes the work-group size itself."""
        launch = self._source.launch
        if launch is None or "global" not in launch.values:
            return self._unwritten("local")
        value = launch.values.get("local")
        if value is None or value.locus.text == "None":
            return Known(False, f"{launch.symbol} leaves the local size to the driver")
        where = f"line {value.locus.line} of {value.locus.path}"
        return Known(True, f"{where}: local size {value.locus.text}")

    def bounded(self, dim: int, axes: Axes | None) -> Answer:
        """Whether an expression is known that the dimension's id stays below, and the launch covers:
        a smaller range would leave work-items out that an edit of the range could bring in."""
        bound = bound_of(self._source, dim)
        if bound is not None:
            return self._covered(dim, bound[1], axes)
        if all(g.dim != dim for g in self._source.global_ids):
            return Known(False, f"the kernel does not ask for get_global_id({dim})")
        return Missing(
            f"nothing in the kernel bounds get_global_id({dim})",
            "return early when the id is past its extent, as in `if (row >= M) return;`",
        )

    def _covered(self, dim: int, because: str, axes: Axes | None) -> Answer:
        variable = next((g.variable for g in self._source.global_ids if g.dim == dim), "")
        guard = self._source.guard.bounds.get(variable)
        if guard is None or axes is None:
            return Known(True, because)
        size = self._size(dim, axes)
        if isinstance(size, Missing):
            return size
        extent = self._numbers(self._indices.polynomial(guard), axes)
        if isinstance(extent, Missing):
            return extent
        return Known(size[0] >= extent, f"{because}; {size[1]} = {size[0]}")

    def _unwritten(self, key: str) -> Missing:
        launch = self._source.launch
        if launch is None:
            return Missing(
                "no launch function was found", "add a workload file with `launch(axes)`"
            )
        return Missing(f"{launch.symbol} does not write {key!r} in one returned dict", _DECLARE)

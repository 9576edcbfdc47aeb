"""What the launch function of a workload says: ranges, local size, options. Read, never run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from gate.values.workload import Axes
from library.fact import Answer, Known, Missing
from library.languages.opencl_kernel import KernelSource
from library.target import Locus

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
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
        return source.text(guard), f"line {source.line(guard)}: {variable} < {source.text(guard)}"
    element = global_element(source, dim)
    axis = _axis(element.text, source.launch.parameter) if element and source.launch else None
    parameter = source.parameters.get(axis) if axis else None
    if axis and element and parameter and not parameter.pointer and not source.guard.statements:
        return axis, f"line {element.line} of {element.path}: global size {element.text}"
    return None


def _axis(text: str, parameter: str) -> str | None:
    """M of `axes["M"]`."""
    node = ast.parse(text.strip(), mode="eval").body
    return _subscript(node, parameter)


def _subscript(node: ast.expr, parameter: str) -> str | None:
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == parameter
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    ):
        return node.slice.value
    return None


def _evaluate(node: ast.expr, parameter: str, axes: Axes) -> int | None:
    """Value of a launch expression at a shape, if it is plain integer arithmetic over the axes."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _evaluate(node.operand, parameter, axes)
        return None if value is None else -value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left = _evaluate(node.left, parameter, axes)
        right = _evaluate(node.right, parameter, axes)
        if (
            left is None
            or right is None
            or (isinstance(node.op, ast.FloorDiv | ast.Mod) and not right)
        ):
            return None
        return _OPERATORS[type(node.op)](left, right)
    axis = _subscript(node, parameter)
    return axes.get(axis) if axis else None


class LaunchFacts:
    """Facts about ranges."""

    def __init__(self, source: KernelSource) -> None:
        self._source = source

    def launch_dim(self, dim: int) -> Answer:
        """Whether the launch writes a global size for the dimension where an edit can reach it."""
        element = global_element(self._source, dim)
        if element is not None:
            return Known(True, f"line {element.line} of {element.path}: {element.text}")
        launch = self._source.launch
        value = launch.values.get("global") if launch else None
        if value and value.elements:
            said = f"line {value.locus.line} of {value.locus.path}: {value.locus.text}"
            return Known(False, said)
        return self._unwritten("global")

    def global_size(self, dim: int, axes: Axes | None) -> Answer:
        """Work-items along a dimension at a shape."""
        size = self._size(dim, axes)
        return size if isinstance(size, Missing) else Known(*size)

    def _size(self, dim: int, axes: Axes | None) -> tuple[int, str] | Missing:
        element = global_element(self._source, dim)
        launch = self._source.launch
        if element is None or launch is None:
            return self._unwritten("global")
        node = ast.parse(element.text.strip(), mode="eval").body
        value = _evaluate(node, launch.parameter, axes or {})
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

    def bounded(self, dim: int) -> Answer:
        """Whether an expression is known that the dimension's id stays below."""
        bound = bound_of(self._source, dim)
        if bound is not None:
            return Known(True, bound[1])
        return Missing(
            f"nothing in the kernel bounds get_global_id({dim})",
            "return early when the id is past its extent, as in `if (row >= M) return;`",
        )

    def _unwritten(self, key: str) -> Missing:
        launch = self._source.launch
        if launch is None:
            return Missing(
                "no launch function was found", "add a workload file with `launch(axes)`"
            )
        return Missing(f"{launch.symbol} does not write {key!r} in one returned dict", _DECLARE)

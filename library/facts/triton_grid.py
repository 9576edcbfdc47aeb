"""The launch grid, and which constants it divides by."""

from __future__ import annotations

from library.facts.triton_constants import Definition, definition, literal
from library.facts.triton_gemm import Gemm
from library.facts.triton_host import host_values
from library.facts.triton_model import Model
from library.languages.python_source import Node, field, nodes_of


def grid_expression(model: Model) -> Node | None:
    """The expression or function that computes the grid: behind one name, lambda or nested def."""
    if model.site is None:
        return None
    grid = model.site.grid
    if grid.type != "identifier":
        return grid
    name = model.text(grid)
    for function in model.module.functions:
        if function.name == name and function.node.start_byte >= model.site.host.node.start_byte:
            return function.body
    values = host_values(model, name)
    return values[0] if len(values) == 1 else None


def grid_tuple(model: Model) -> Node | None:
    """The tuple of program counts, wherever it is written, or None if there is no single one."""
    expression = grid_expression(model)
    if expression is None:
        return None
    if expression.type == "lambda":
        expression = field(expression, "body")
    if expression.type == "block":
        returns = list(nodes_of(expression, "return_statement"))
        if len(returns) != 1 or not returns[0].named_children:
            return None
        expression = returns[0].named_children[0]
    return expression if expression.type == "tuple" else None


def grid_roles(model: Model, gemm: Gemm) -> tuple[str, str] | None:
    """Which of `row` and `column` each axis of a 2-D grid counts, by the constant it divides by."""
    grid = grid_tuple(model)
    if grid is None or len(grid.named_children) != 2:
        return None
    roles = {gemm.block_m: "row", gemm.block_n: "column"}
    found = [
        roles[name]
        for axis in grid.named_children
        for name in _blocks_in(model, axis)
        if name in roles
    ]
    return (found[0], found[1]) if sorted(found) == ["column", "row"] else None


def grid_blocks(model: Model) -> frozenset[str]:
    """Constexpr parameters whose value the grid's divisions use, so that it follows their edits."""
    expression = grid_expression(model)
    return _blocks_in(model, expression) if expression is not None else frozenset()


def _blocks_in(model: Model, expression: Node) -> frozenset[str]:
    found = set()
    for divisor in _divisors(model, expression):
        if divisor.type == "subscript":  # META["BLOCK_M"]
            found.add(model.text(field(divisor, "subscript")).strip("\"'"))
        elif divisor.type == "identifier":
            found |= _defined_by(model, divisor)
    return frozenset(found & set(model.constexprs))


def _divisors(model: Model, expression: Node) -> list[Node]:
    found = []
    for call in nodes_of(expression, "call"):
        arguments = field(call, "arguments").named_children
        if model.module.callee(call).split(".")[-1] == "cdiv" and len(arguments) == 2:
            found.append(arguments[1])
    for node in nodes_of(expression, "binary_operator"):
        if model.text(field(node, "operator")) == "//":
            found.append(field(node, "right"))
    return found


def _defined_by(model: Model, name: Node) -> set[str]:
    """Constexprs whose one literal is the one a host name stands for."""
    value = literal(model, name, model.text(name))
    if not isinstance(value, Definition):
        return set()
    return {
        constexpr
        for constexpr in model.constexprs
        if isinstance(found := definition(model, constexpr), Definition)
        and found.node.start_byte == value.node.start_byte
    }

"""The launch grid, and which constants it divides by."""

from __future__ import annotations

from library.facts.triton_constants import Definition, definition, literal
from library.facts.triton_gemm import Gemm
from library.facts.triton_host import host_values
from library.facts.triton_model import Model
from library.languages.python_module import Function, parameters
from library.languages.python_source import Node, ancestors, field, inside, nodes_of, unwrap


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
    """Constexpr parameters whose tiles the grid counts, so that it follows their edits.

    None of them if some axis is anything but a product of counts rounded up: `M // BLOCK_M` loses
    the last rows once BLOCK_M no longer divides M.
    """
    grid = grid_tuple(model)
    if grid is None:
        return frozenset()
    counted = [_counted(model, axis) for axis in grid.named_children]
    if any(blocks is None for blocks in counted):
        return frozenset()
    return frozenset().union(*(blocks for blocks in counted if blocks is not None))


def _counted(model: Model, node: Node) -> frozenset[str] | None:
    """Constexprs whose tiles an axis counts; None if it uses one in any other way."""
    node = unwrap(node)
    if node.type == "call":
        given = field(node, "arguments").named_children
        name = model.module.callee(node).split(".")[-1]
        if name == "cdiv" and len(given) == 2 and not _mentions(model, given[0]):
            return _named(model, given[1])
        if name == "min":  # a persistent grid: no more programs than tiles
            counts = [_counted(model, each) for each in given]
            if all(blocks is not None for blocks in counts):
                return frozenset().union(*(blocks for blocks in counts if blocks is not None))
    if node.type == "binary_operator":
        operator = model.text(field(node, "operator"))
        left, right = field(node, "left"), field(node, "right")
        if operator == "*":
            counts = [_counted(model, left), _counted(model, right)]
            if all(blocks is not None for blocks in counts):
                return frozenset().union(*(blocks for blocks in counts if blocks is not None))
        top, block = model.canonical(left), model.canonical(right)
        if operator == "//" and top.endswith(f"+{block}-1"):
            return _named(model, right)
    return None if _mentions(model, node) else frozenset()


def other_use(model: Model, found: Definition) -> Node | None:
    """Where a constant that is set by name is used beyond this kernel's launch and grid."""
    bound = found.node.parent
    if bound is None or bound.type != "assignment" or field(bound, "left").type != "identifier":
        return None
    name, own = model.text(field(bound, "left")), field(bound, "left")
    allowed = [n for n in (grid_expression(model), model.site and model.site.call) if n]
    shadows = [f.node for f in model.module.functions if _binds(model, f, name, bound)]
    for use in nodes_of(model.source.root, "identifier"):
        keyword = use.parent is not None and use.parent.type == "keyword_argument"
        named = keyword and use == field(use.parent, "name")  # type: ignore[arg-type]
        if model.text(use) != name or use == own or named:
            continue
        if _describes(model, use) or any(inside(use, place) for place in (*allowed, *shadows)):
            continue
        return use
    return None


def _describes(model: Model, use: Node) -> bool:
    """Whether a name stands in the block shape of a descriptor, which is made anew for each launch."""
    calls = (outer for outer in ancestors(use) if outer.type == "call")
    return any("TensorDescriptor" in model.module.callee(call) for call in calls)


def _binds(model: Model, function: Function, name: str, bound: Node) -> bool:
    """Whether a function has a variable of its own of that name."""
    if any(p.name == name for p in parameters(model.source, function)):
        return True
    assigned = nodes_of(function.body, "assignment")
    return any(node != bound and model.text(field(node, "left")) == name for node in assigned)


def _mentions(model: Model, node: Node) -> bool:
    """Whether an expression depends on a constexpr of the kernel at all."""
    leaves = (n for kind in ("identifier", "subscript") for n in nodes_of(node, kind))
    return any(_named(model, leaf) for leaf in leaves)


def _named(model: Model, node: Node) -> frozenset[str]:
    """The constexprs a name or `META["BLOCK_M"]` stands for."""
    node = unwrap(node)
    if node.type == "subscript":
        names = {model.text(field(node, "subscript")).strip("\"'")}
    else:
        names = _defined_by(model, node) if node.type == "identifier" else set()
    return frozenset(names & set(model.constexprs))


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

"""The tiled product at the heart of a kernel: its loop, its tile, its operands, its program ids."""

from __future__ import annotations

from dataclasses import dataclass

from library.facts.triton_model import Loop, Model
from library.facts.triton_offsets import argument, product
from library.languages.python_source import Node, field, inside, nodes_of, unwrap


@dataclass(frozen=True, slots=True)
class Operand:
    """A or B: the name in the loop, and the loads that assign it (one a branch)."""

    name: str
    loads: tuple[Node, ...]
    """`tl.load` calls; descriptor loads are not among them."""


@dataclass(frozen=True, slots=True)
class Gemm:
    """`acc += tl.dot(a, b)` in a loop over K, with acc a (BLOCK_M, BLOCK_N) tile."""

    loop: Loop
    dot: Node
    update: Node
    """The statement that accumulates."""
    accumulator: str
    accumulator_dtype: str
    """`float32`, as the initial `tl.zeros` says; empty if it does not."""
    block_m: str
    block_n: str
    block_k: str
    a: Operand
    b: Operand


@dataclass(frozen=True, slots=True)
class ProgramIds:
    """How a program finds its tile."""

    row: str
    """The name that holds the tile's row."""
    column: str
    rows: str
    """Expression for the number of tile rows, valid inside the kernel."""
    columns: str
    linear: str
    """Expression for the program's place in launch order."""
    first: Node
    """First of the adjacent statements that decode the tile."""
    last: Node
    replaced: tuple[Node, ...]
    """The statements that assign row and column (and read the ids they come from)."""


def gemm_of(model: Model) -> Gemm | None:
    """The kernel's tiled product, if it has exactly one and it is of this form."""
    dots = model.calls("dot")
    if len(dots) != 1:
        return None
    dot = dots[0]
    loop = model.loop_at(dot)
    if loop is None or not loop.block:
        return None
    update = model.statement_of(dot)
    accumulator = _accumulator(model, dot, update)
    tile = _initial_tile(model, accumulator, loop) if accumulator else None
    left, right = argument(model, dot, "input", 0), argument(model, dot, "other", 1)
    if tile is None or left is None or right is None:
        return None
    a, b = _operand(model, left, loop), _operand(model, right, loop)
    if a is None or b is None:
        return None
    block_m, block_n, dtype = tile
    return Gemm(loop, dot, update, accumulator, dtype, block_m, block_n, loop.block, a, b)


def program_ids_of(model: Model, gemm: Gemm) -> ProgramIds | None:
    """The canonical row- or column-major decode of a 2-D tile, if that is how it is written."""
    reads = model.calls("program_id")
    axes = [_axis(model, call) for call in reads]
    if sorted(a for a in axes if a is not None and a < 2) == [0, 1]:
        return _two_axes(
            model, gemm, {a: c for a, c in zip(axes, reads, strict=True) if a is not None}
        )
    if axes.count(0) == 1 and 1 not in axes:
        return _one_axis(model, gemm, reads[axes.index(0)])
    return None


def _accumulator(model: Model, dot: Node, update: Node) -> str:
    """The name a dot accumulates into: `acc += dot(…)`, `acc = dot(…, acc)`, `acc = acc + dot(…)`."""
    node = update.named_children[0] if update.type == "expression_statement" else update
    if node.type == "augmented_assignment" and model.text(field(node, "operator")) == "+=":
        return model.text(field(node, "left")) if unwrap(field(node, "right")) == dot else ""
    if node.type != "assignment":
        return ""
    name, right = model.text(field(node, "left")), node.child_by_field_name("right")
    if right is None:
        return ""
    if unwrap(right) == dot:
        carried = argument(model, dot, "acc", 2)
        return name if carried is not None and model.canonical(carried) == name else ""
    return name if model.canonical(right).startswith(f"{name}+") else ""


def _initial_tile(model: Model, accumulator: str, loop: Loop) -> tuple[str, str, str] | None:
    """(BLOCK_M, BLOCK_N, dtype) of the `tl.zeros` the accumulator starts from."""
    for node in model.assignments.get(accumulator, ()):
        right = node.child_by_field_name("right")
        if node.type != "assignment" or right is None or inside(node, loop.node):
            continue
        if not model.is_language(unwrap(right), "zeros"):
            continue
        shape = argument(model, unwrap(right), "shape", 0)
        dtype = argument(model, unwrap(right), "dtype", 1)
        if shape is not None and shape.type in ("tuple", "list") and len(shape.named_children) == 2:
            rows, columns = (model.canonical(child) for child in shape.named_children)
            return rows, columns, model.text(dtype).split(".")[-1] if dtype is not None else ""
    return None


def _operand(model: Model, node: Node, loop: Loop) -> Operand | None:
    """The loads behind an argument of the dot, through casts and through one name."""
    node = _uncast(model, node)
    if node.type != "identifier":
        return None
    name = model.text(node)
    loads = []
    for bound in model.assignments.get(name, ()):
        if bound.type != "assignment" or not inside(bound, loop.node):
            return None
        right = bound.child_by_field_name("right")
        value = _uncast(model, right) if right is not None else None
        if value is not None and model.is_language(value, "load"):
            loads.append(value)
        elif value is None or value.type != "call" or not _is_descriptor_load(model, value):
            return None
    return Operand(name, tuple(loads))


def _uncast(model: Model, node: Node) -> Node:
    """What `x.to(dtype)` casts."""
    node = unwrap(node)
    while node.type == "call" and (function := field(node, "function")).type == "attribute":
        if model.text(field(function, "attribute")) != "to":
            break
        node = unwrap(field(function, "object"))
    return node


def _is_descriptor_load(model: Model, call: Node) -> bool:
    function = field(call, "function")
    return function.type == "attribute" and model.text(field(function, "attribute")) == "load"


def _axis(model: Model, call: Node) -> int | None:
    given = argument(model, call, "axis", 0)
    return int(model.text(given)) if given is not None and given.type == "integer" else None


def _assigned_name(model: Model, call: Node) -> tuple[str, Node] | None:
    """(name, statement) of `name = tl.program_id(…)`, if the name is assigned only there."""
    statement = model.statement_of(call)
    node = statement.named_children[0]
    if node.type != "assignment" or field(node, "left").type != "identifier":
        return None
    name, right = model.text(field(node, "left")), node.child_by_field_name("right")
    if right is None or unwrap(right) != call or len(model.assignments[name]) != 1:
        return None
    return name, statement


def _tile_role(model: Model, gemm: Gemm, name: str) -> str:
    """`row` if a name scales BLOCK_M somewhere, `column` if BLOCK_N, else empty."""
    texts = {
        product(model, node)
        for node in nodes_of(model.function.body, "binary_operator")
        if model.text(field(node, "operator")) == "*"
    }
    row = "*".join(sorted((name, gemm.block_m))) in texts
    column = "*".join(sorted((name, gemm.block_n))) in texts
    if row == column:
        return ""
    return "row" if row else "column"


def _two_axes(model: Model, gemm: Gemm, reads: dict[int, Node]) -> ProgramIds | None:
    names = {axis: _assigned_name(model, reads[axis]) for axis in (0, 1)}
    first, second = names[0], names[1]
    if first is None or second is None:
        return None
    roles = {_tile_role(model, gemm, first[0]): 0, _tile_role(model, gemm, second[0]): 1}
    if set(roles) != {"row", "column"}:
        return None
    statements = sorted((first[1], second[1]), key=lambda node: node.start_byte)
    if statements[0].next_named_sibling != statements[1]:
        return None
    by_axis = {0: first[0], 1: second[0]}
    row, column = roles["row"], roles["column"]
    return ProgramIds(
        by_axis[row],
        by_axis[column],
        f"num_programs({row})",
        f"num_programs({column})",
        "program_id(1) * num_programs(0) + program_id(0)",
        statements[0],
        statements[1],
        tuple(statements),
    )


def _one_axis(model: Model, gemm: Gemm, read: Node) -> ProgramIds | None:
    """`pid // n` and `pid % n` of one linear id, n the number of tile columns (or of rows)."""
    linear = _assigned_name(model, read)
    if linear is None:
        return None
    parts: dict[str, tuple[str, str, Node]] = {}
    for name, bound in model.assignments.items():
        right = bound[0].child_by_field_name("right")
        if len(bound) != 1 or bound[0].type != "assignment" or right is None:
            continue
        value = unwrap(right)
        if value.type != "binary_operator" or model.canonical(field(value, "left")) != linear[0]:
            continue
        parts[model.text(field(value, "operator"))] = (
            name,
            model.canonical(field(value, "right")),
            model.statement_of(bound[0]),
        )
    if set(parts) != {"//", "%"} or parts["//"][1] != parts["%"][1]:
        return None
    slow, fast, width = parts["//"], parts["%"], parts["//"][1]
    roles = (_tile_role(model, gemm, slow[0]), _tile_role(model, gemm, fast[0]))
    statements = sorted((slow[2], fast[2]), key=lambda node: node.start_byte)
    if statements[0].next_named_sibling != statements[1] or _mentioned_again(model, linear[0]):
        return None
    height = f"num_programs(0) // {width}"
    if roles == ("row", "column"):
        rows, columns = height, width
    elif roles == ("column", "row"):
        rows, columns = width, height
    else:
        return None
    row, column = (slow[0], fast[0]) if roles[0] == "row" else (fast[0], slow[0])
    return ProgramIds(
        row, column, rows, columns, linear[0], statements[0], statements[1], tuple(statements)
    )


def _mentioned_again(model: Model, name: str) -> bool:
    """Whether a linear program id is used beyond its definition and the two decodes."""
    uses = [n for n in nodes_of(model.function.body, "identifier") if model.text(n) == name]
    return len(uses) != 3

"""How a program of a tiled product finds its tile."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from library.facts.triton_gemm import Gemm
from library.facts.triton_model import Loop, Model
from library.facts.triton_offsets import argument, product, product_factors, sum_terms
from library.languages.python_source import Node, field, nodes_of, unwrap


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


@dataclass(frozen=True, slots=True)
class LinearId:
    """A 2-D grid read as one id in launch order, with the grid's extents by name."""

    name: str
    axis0: str
    """Name of `tl.num_programs(0)`."""
    axis1: str
    first: Node
    last: Node


def program_ids_of(model: Model, gemm: Gemm) -> ProgramIds | None:
    """The canonical row- or column-major decode of a 2-D tile, if that is how it is written."""
    persistent = persistent_loop(model)
    if persistent is not None:
        return _looped(model, gemm, persistent)
    reads = model.calls("program_id")
    axes = [_axis(model, call) for call in reads]
    if sorted(a for a in axes if a is not None and a < 2) == [0, 1]:
        return _two_axes(
            model, gemm, {a: c for a, c in zip(axes, reads, strict=True) if a is not None}
        )
    if axes.count(0) == 1 and 1 not in axes:
        return _one_axis(model, gemm, reads[axes.index(0)])
    return None


def persistent_loop(model: Model) -> Loop | None:
    """The loop over tiles that starts at the program's id and steps by the grid, if there is one."""
    for loop in model.loops:
        start = model.resolve(loop.start) if loop.start is not None else None
        step = model.resolve(loop.step) if loop.step is not None else None
        if start is None or step is None:
            continue
        if model.is_language(start, "program_id") and model.is_language(step, "num_programs"):
            return loop
    return None


def linear_id_of(model: Model) -> LinearId | None:
    """`n0 = num_programs(0)`, `n1 = num_programs(1)`, `pid = program_id(1) * n0 + program_id(0)`."""
    counts: dict[int, tuple[str, Node]] = {}
    for call in model.calls("num_programs"):
        axis, named = _axis(model, call), _assigned_name(model, call)
        if axis is not None and named is not None:
            counts[axis] = named
    if set(counts) != {0, 1} or len(model.calls("num_programs")) != 2:
        return None
    reads = model.calls("program_id")
    if sorted(_axis(model, call) or 0 for call in reads) != [0, 1]:
        return None
    statement = model.statement_of(reads[0])
    node = statement.named_children[0]
    right = node.child_by_field_name("right") if node.type == "assignment" else None
    if right is None or model.statement_of(reads[1]) != statement:
        return None
    terms = [product(model, term) for term in sum_terms(model, right)]
    calls = {_axis(model, call): model.canonical(call) for call in reads}
    if sorted(terms) != sorted([calls[0], "*".join(sorted((calls[1], counts[0][0])))]):
        return None
    statements = sorted((counts[0][1], counts[1][1], statement), key=lambda n: n.start_byte)
    adjacent = all(a.next_named_sibling == b for a, b in pairwise(statements))
    name = model.text(field(node, "left"))
    if not adjacent or len(model.assignments[name]) != 1:
        return None
    return LinearId(name, counts[0][0], counts[1][0], statements[0], statements[-1])


def _looped(model: Model, gemm: Gemm, loop: Loop) -> ProgramIds | None:
    """`tile // n` and `tile % n` of the variable of a persistent loop over `m * n` tiles."""
    counts = [model.canonical(factor) for factor in product_factors(model, loop.stop)]
    return _decoded(model, gemm, loop.variable, counts)


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
    return _decoded(model, gemm, linear[0], [])


def _decoded(model: Model, gemm: Gemm, linear: str, counts: list[str]) -> ProgramIds | None:
    """The tile as quotient and remainder of a linear id; `counts` are the grid's factors if known."""
    parts: dict[str, tuple[str, str, Node]] = {}
    for name, bound in model.assignments.items():
        right = bound[0].child_by_field_name("right")
        if len(bound) != 1 or bound[0].type != "assignment" or right is None:
            continue
        value = unwrap(right)
        if value.type != "binary_operator" or model.canonical(field(value, "left")) != linear:
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
    if statements[0].next_named_sibling != statements[1] or _mentioned_again(model, linear):
        return None
    height = f"num_programs(0) // {width}"
    if counts:
        if len(counts) != 2 or width not in counts:
            return None
        height = counts[0] if counts[1] == width else counts[1]
    if roles == ("row", "column"):
        rows, columns = height, width
    elif roles == ("column", "row"):
        rows, columns = width, height
    else:
        return None
    row, column = (slow[0], fast[0]) if roles[0] == "row" else (fast[0], slow[0])
    return ProgramIds(
        row, column, rows, columns, linear, statements[0], statements[1], tuple(statements)
    )


def _mentioned_again(model: Model, name: str) -> bool:
    """Whether a linear program id is used beyond its definition and the two decodes."""
    uses = [n for n in nodes_of(model.function.body, "identifier") if model.text(n) == name]
    return len(uses) != 3

"""A persistent grid: one program a multiprocessor, looping over tiles."""

from __future__ import annotations

from dataclasses import dataclass

from library.edits import ByteEdit, Refusal
from library.facts.triton_gemm import Gemm, gemm_of
from library.facts.triton_gemm_facts import output_bounds
from library.facts.triton_grid import grid_roles, grid_tuple
from library.facts.triton_host import tensor
from library.facts.triton_model import Model
from library.facts.triton_program_ids import linear_id_of, program_ids_of
from library.languages.python_source import Node, nodes_of
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.triton.source_edits import (
    fresh,
    indented,
    insert_before,
    joined,
    language_alias,
    model_of,
    replace,
    replace_range,
    triton_alias,
)


def persistent_grid(
    target: Target, captures: Captures, parameters: Parameters
) -> tuple[ByteEdit, ...] | Refusal:
    """Move the kernel's body into a flattened loop over tiles, in the order they were launched."""
    model = model_of(target)
    if isinstance(model, Refusal):
        return model
    gemm, tl, triton = gemm_of(model), language_alias(model), triton_alias(model)
    bounds, grid = output_bounds(model), grid_tuple(model)
    if gemm is None or tl is None or triton is None or bounds is None or model.site is None:
        return Refusal("no tiled product with a masked store, or no launch")
    body = _looped(model, gemm, tl, bounds)
    host = _host(model, gemm, grid)
    if isinstance(body, Refusal) or isinstance(host, Refusal):
        return body if isinstance(body, Refusal) else host if isinstance(host, Refusal) else ()
    return (body, *host)


@dataclass(frozen=True, slots=True)
class _Decode:
    """How the tile is found from the loop's variable, and what the old decode leaves over."""

    variable: str
    counts: list[str]
    """Lines before the loop."""
    total: str
    lines: list[str]
    """Lines at the top of the loop."""
    first: Node
    last: Node


def _looped(model: Model, gemm: Gemm, tl: str, bounds: tuple[str, str]) -> ByteEdit | Refusal:
    decode = _decode(model, gemm, tl, bounds)
    if isinstance(decode, Refusal):
        return decode
    statements = model.function.body.named_children
    after = [s for s in statements if s.start_byte > decode.last.start_byte]
    if not after or next(nodes_of(model.function.body, "return_statement"), None):
        return Refusal("the kernel returns early, which would end the loop over tiles")
    early = _set_before(model, decode.first)
    if early:
        return Refusal(f"{early} is set before the tile is decoded, and changed after")
    head = (
        f"for {decode.variable} in {tl}.range("
        f"{tl}.program_id(0), {decode.total}, {tl}.num_programs(0), flatten=True):"
    )
    lines = [*decode.counts, "", head, *(f"    {line}" for line in decode.lines)]
    previous = decode.last
    for statement in after:
        same_line = statement.start_point[0] == previous.end_point[0]
        if same_line:
            lines[-1] += f"  {model.text(statement)}"
            continue
        lines += [""] * (statement.start_point[0] > previous.end_point[0] + 1)
        lines += indented(model, statement)
        previous = statement
    indent = model.source.indent(decode.first)
    return replace_range(model, decode.first, after[-1], joined(lines, indent))


def _set_before(model: Model, decode: Node) -> str:
    """A name that statements before the decode set and later ones change: it would keep its value
    from one tile to the next."""
    for name, bindings in model.assignments.items():
        before = [node.start_byte < decode.start_byte for node in bindings]
        if any(before) and not all(before):
            return name
    return ""


def _decode(model: Model, gemm: Gemm, tl: str, bounds: tuple[str, str]) -> _Decode | Refusal:
    linear, ids = linear_id_of(model), program_ids_of(model, gemm)
    by_role = {
        "row": f"{tl}.cdiv({bounds[0]}, {gemm.block_m})",
        "column": f"{tl}.cdiv({bounds[1]}, {gemm.block_n})",
    }
    if linear is not None:  # already remapped: keep its decode, fed by the loop's variable
        roles = grid_roles(model, gemm)
        if roles is None:
            return Refusal("which axis of the grid counts rows is not plain")
        counts = [f"{linear.axis0} = {by_role[roles[0]]}", f"{linear.axis1} = {by_role[roles[1]]}"]
        total = f"{linear.axis0} * {linear.axis1}"
        return _Decode(linear.name, counts, total, [], linear.first, linear.last)
    if ids is None or ids.linear.isidentifier():
        return Refusal("the tile is not read from two program ids")
    tile, rows, columns = (fresh(model, name) for name in ("tile", "num_pid_m", "num_pid_n"))
    counts = [f"{rows} = {by_role['row']}", f"{columns} = {by_role['column']}"]
    if ids.rows == "num_programs(0)":
        lines = [f"{ids.row} = {tile} % {rows}", f"{ids.column} = {tile} // {rows}"]
    else:
        lines = [f"{ids.row} = {tile} // {columns}", f"{ids.column} = {tile} % {columns}"]
    return _Decode(tile, counts, f"{rows} * {columns}", lines, ids.first, ids.last)


def _host(model: Model, gemm: Gemm, grid: Node | None) -> tuple[ByteEdit, ...] | Refusal:
    """One program a multiprocessor, but no more than tiles."""
    if grid is None or model.site is None or len(grid.named_children) != 2:
        return Refusal("the grid is not written as a pair of tile counts")
    rows, columns = (model.text(node) for node in grid.named_children)
    load = gemm.a.loads[0] if gemm.a.loads else None
    device = next(
        (name for p in model.parameters if (name := tensor(model, p.name)) is not None), None
    )
    if device is None or load is None or "torch" not in model.module.imports:
        return Refusal("the wrapper passes no tensor by name, or does not import torch")
    sms = fresh(model, "num_sms")
    statement = model.statement_of(
        grid if model.site.host.node == _function(grid) else _function(grid)
    )
    return (
        insert_before(
            model,
            statement,
            [
                "# One program a multiprocessor; off the GPU (Triton's interpreter) one does it all.",
                f"{sms} = 1",
                f"if {device}.is_cuda:",
                f"    {sms} = torch.cuda.get_device_properties({device}.device).multi_processor_count",
                "",
            ],
        ),
        replace(model, grid, f"(min({sms}, {rows} * {columns}),)"),
    )


def _function(node: Node) -> Node:
    """The innermost function around a node."""
    while node.parent is not None and node.type != "function_definition":
        node = node.parent
    return node

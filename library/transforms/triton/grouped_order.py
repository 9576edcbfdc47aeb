"""Walk tiles in groups of rows, so that the operands of neighbouring programs stay in L2."""

from __future__ import annotations

from library.edits import ByteEdit, Refusal
from library.facts.triton_gemm import gemm_of
from library.facts.triton_program_ids import program_ids_of
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.triton.source_edits import (
    add_parameters,
    fresh,
    joined,
    language_alias,
    model_of,
    replace_range,
)


def grouped_order(
    target: Target, captures: Captures, parameters: Parameters
) -> tuple[ByteEdit, ...] | Refusal:
    """Remap the program's tile: `group` rows of tiles at a time, columns outermost in a group.

    The map is a bijection of the launched grid onto itself, whatever its size: the last group has
    as many rows as are left. Only the kernel is edited; GROUP_M is a constexpr with a default.
    """
    model = model_of(target)
    if isinstance(model, Refusal):
        return model
    gemm, tl = gemm_of(model), language_alias(model)
    ids = program_ids_of(model, gemm) if gemm is not None else None
    if ids is None or tl is None:
        return Refusal("the tile is not decoded from program ids in plain row-major order")
    group_m = fresh(model, "GROUP_M")
    pid, rows, columns = ids.linear, ids.rows, ids.columns
    lines = [f"# Walk {group_m} rows of tiles at a time: their operands stay in L2."]
    if not pid.isidentifier():
        rows, columns = fresh(model, "num_pid_m"), fresh(model, "num_pid_n")
        lines += [
            f"{rows} = {tl}.{ids.rows}",
            f"{columns} = {tl}.{ids.columns}",
        ]
        pid = fresh(model, "pid")
        fastest = rows if ids.rows == "num_programs(0)" else columns
        lines.append(f"{pid} = {tl}.program_id(1) * {fastest} + {tl}.program_id(0)")
    elif not rows.isidentifier():
        rows = fresh(model, "num_pid_m")
        lines.append(f"{rows} = {tl}.{ids.rows}")
    elif not columns.isidentifier():
        columns = fresh(model, "num_pid_n")
        lines.append(f"{columns} = {tl}.{ids.columns}")
    in_group, first_m = fresh(model, "num_pid_in_group"), fresh(model, "first_pid_m")
    size = fresh(model, "group_size_m")
    lines += [
        f"{in_group} = {group_m} * {columns}",
        f"{first_m} = ({pid} // {in_group}) * {group_m}",
        f"{size} = min({rows} - {first_m}, {group_m})",
        f"{ids.row} = {first_m} + ({pid} % {in_group}) % {size}",
        f"{ids.column} = ({pid} % {in_group}) // {size}",
    ]
    indent = model.source.indent(ids.first)
    return (
        add_parameters(model, f"{group_m}: {tl}.constexpr = {parameters['group']}"),
        replace_range(model, ids.first, ids.last, joined(lines, indent)),
    )

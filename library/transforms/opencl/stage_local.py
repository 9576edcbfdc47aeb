"""Tiles of both operands of a matrix product in local memory, shared by a work-group."""

from __future__ import annotations

from tree_sitter import Node

from library.edits import ByteEdit
from library.facts.opencl_gemm import Gemm, gemm_loop
from library.facts.opencl_launch import bound_of, global_element
from library.languages.c_tree import field
from library.languages.opencl_kernel import KernelSource
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.opencl.rewrite import (
    StuckError,
    analysis_of,
    edit,
    insert,
    lines,
    refusing,
    renamed,
)


@refusing
def stage_local(target: Target, captures: Captures, parameters: Parameters) -> tuple[ByteEdit, ...]:
    """Stage `tile` × `tile` blocks of A and B through local memory, one work-group a block of C.

    The early return goes, since every work-item must reach the barriers; loads past an edge give
    zero and the store is guarded. The launch gets the local size and rounds its range up to it.
    """
    analysis = analysis_of(target)
    found = gemm_loop(analysis.source, analysis.indices, analysis.memory)
    if isinstance(found, str):
        raise StuckError(found)
    return _Staged(analysis.source, found, int(parameters["tile"])).edits()


class _Staged:
    def __init__(self, source: KernelSource, gemm: Gemm, tile: int) -> None:
        self._source = source
        self._gemm = gemm
        self._tile = tile
        ids = {g.dim: g for g in source.global_ids if g.variable}
        bounds = bound_of(source, 0), bound_of(source, 1)
        if 0 not in ids or 1 not in ids or bounds[0] is None or bounds[1] is None:
            raise StuckError("row and column are not kept in variables with known extents")
        self._column, self._row = ids[0].variable, ids[1].variable
        self._columns, self._rows = bounds[0][0], bounds[1][0]
        self._macro = source.fresh("TILE", "GEMM_TILE")
        self._x, self._y = source.fresh("tx", "local_x"), source.fresh("ty", "local_y")
        self._base = source.fresh(f"{gemm.counter.variable}0", "tile_start")

    def edits(self) -> tuple[ByteEdit, ...]:
        source, gemm = self._source, self._gemm
        guard = source.guard
        if guard.block is not None:
            raise StuckError(
                "the kernel's body stands inside its guard; an early return can be edited"
            )
        top = source.definition.start
        start = next(
            offset for offset, _ in source.unit.blanked if offset >= top
        )  # the `kernel` qualifier
        edits = [insert(source, start, f"#define {self._macro} {self._tile}\n\n")]
        edits += [self._replaced(g) for g in guard.statements[:1]]
        edits += [self._removed(g) for g in guard.statements[1:]]
        edits.append(edit(source, gemm.loop, self._loop()))
        edits.append(self._stored())
        return (*edits, *self._launch())

    def _locals(self, indent: str) -> str:
        macro = self._macro
        left, right = self._tiles()
        kinds = [self._source.parameters[a.base].type for a in (self._gemm.left, self._gemm.right)]
        return lines(
            indent,
            f"const int {self._x} = get_local_id(0);",
            f"const int {self._y} = get_local_id(1);",
            "",
            f"__local {kinds[0]} {left}[{macro}][{macro}];",
            f"__local {kinds[1]} {right}[{macro}][{macro}];",
        ).replace(f"\n{indent}\n", "\n\n")

    def _tiles(self) -> tuple[str, str]:
        left = f"{self._gemm.left.base.lower()}_tile"
        right = f"{self._gemm.right.base.lower()}_tile"
        return self._source.fresh(left), self._source.fresh(right)

    def _replaced(self, guard: Node) -> ByteEdit:
        return edit(self._source, guard, self._locals(self._source.indent(guard)))

    def _removed(self, guard: Node) -> ByteEdit:
        data = self._source.unit.data
        end = data.find(b"\n", guard.end_byte) + 1 or len(data)
        start = data.rfind(b"\n", 0, guard.start_byte) + 1
        return ByteEdit(self._source.path, start, end, b"")

    def _loop(self) -> str:
        source, gemm = self._source, self._gemm
        counter, base, x, y = gemm.counter.variable, self._base, self._x, self._y
        extent = source.text(gemm.counter.bound)
        left, right = self._tiles()
        zero = "0.0f" if source.parameters[gemm.left.base].type == "float" else "0"
        load_left = renamed(source, gemm.left.node, {counter: f"{base} + {x}"})
        load_right = renamed(source, gemm.right.node, {counter: f"{base} + {y}"})
        indent = source.indent(gemm.loop)
        unit = source.indent_unit
        kind = source.text(field(field(gemm.loop, "initializer"), "type"))
        inner = indent + unit
        body = lines(
            inner,
            "// Work-items past an edge stay for the barriers; what they load counts as zero.",
            f"{left}[{y}][{x}] ="
            f" {self._row} < {self._rows} && {base} + {x} < {extent} ? {load_left} : {zero};",
            f"{right}[{y}][{x}] ="
            f" {base} + {y} < {extent} && {self._column} < {self._columns} ? {load_right} : {zero};",
            "barrier(CLK_LOCAL_MEM_FENCE);",
            f"for ({kind} {counter} = 0; {counter} < {self._macro}; ++{counter})",
            f"{unit}{gemm.accumulator} += {left}[{y}][{counter}] * {right}[{counter}][{x}];",
            "barrier(CLK_LOCAL_MEM_FENCE);",
        )
        head = f"for ({kind} {base} = 0; {base} < {extent}; {base} += {self._macro}) {{"
        return f"{head}\n{inner}{body}\n{indent}}}"

    def _stored(self) -> ByteEdit:
        source, store = self._source, self._gemm.store
        indent = source.indent(store) + source.indent_unit
        test = f"{self._row} < {self._rows} && {self._column} < {self._columns}"
        return insert(source, store.start_byte, f"if ({test})\n{indent}")

    def _launch(self) -> tuple[ByteEdit, ...]:
        launch = self._source.launch
        value = launch.values.get("global") if launch else None
        if launch is None or value is None:
            raise StuckError("the launch does not write its global size in one returned dict")
        edits = []
        for dim in (0, 1):
            place = global_element(self._source, dim)
            if place is None:
                raise StuckError(f"the launch does not write a global size for dimension {dim}")
            text = place.text.strip()
            text = text if text.isidentifier() or text.endswith("]") else f"({text})"
            rounded = f"({text} + {self._tile - 1}) // {self._tile} * {self._tile}"
            edits.append(ByteEdit(place.path, place.start, place.end, rounded.encode()))
        local = launch.values.get("local")
        size = f"({self._tile}, {self._tile})"
        if local is not None:
            where = local.locus
            edits.append(ByteEdit(where.path, where.start, where.end, size.encode()))
        else:
            where = value.locus
            edits.append(ByteEdit(where.path, where.end, where.end, f', "local": {size}'.encode()))
        return tuple(edits)

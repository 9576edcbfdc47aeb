"""`const` and `restrict` on pointers that deserve them."""

from __future__ import annotations

from tree_sitter import Node

from library.edits import ByteEdit
from library.fact import Known
from library.facts.opencl import OpenCLAnalysis
from library.languages.c_tree import declared_name, field, find
from library.languages.opencl_kernel import KernelSource
from library.languages.opencl_source import Parameter
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.opencl.rewrite import (
    StuckError,
    analysis_of,
    edit,
    insert,
    refusing,
    rewritten,
    rewritten_range,
)

_COLUMNS = 100
"""A parameter list with longer lines is laid out again."""


@refusing
def restrict(target: Target, captures: Captures, parameters: Parameters) -> tuple[ByteEdit, ...]:
    """Declare every global pointer `restrict`, and those never written `const`."""
    analysis = analysis_of(target)
    source = analysis.source
    edits = [e for p in source.parameters.values() for e in _qualified(analysis, p)]
    if not edits:
        raise StuckError("every pointer has its qualifiers")
    listed = next(find(field(source.function, "declarator"), "parameter_list"))
    text = rewritten(source, listed, edits)
    start = source.unit.data.rfind(b"\n", 0, listed.start_byte) + 1
    column = len(source.unit.data[start : listed.start_byte].decode())
    if column + len(text.split("\n")[0]) <= _COLUMNS and not any(
        len(line) > _COLUMNS for line in text.split("\n")[1:]
    ):
        return tuple(edits)
    if any(node.type == "comment" for node in listed.children):
        return tuple(edits)
    return (edit(source, listed, _laid_out(source, listed, edits, column + 1)),)


def _qualified(analysis: OpenCLAnalysis, parameter: Parameter) -> list[ByteEdit]:
    if not parameter.pointer or parameter.space != "global":
        return []
    edits = []
    written = analysis.buffers.written(parameter.name)
    if not parameter.const and isinstance(written, Known) and not written.value:
        kind = field(parameter.node, "type")
        edits.append(insert(analysis.source, kind.start_byte, "const "))
    if not parameter.restrict:
        declarator = next(find(parameter.node, "pointer_declarator"), None)
        name = declared_name(declarator) if declarator is not None else None
        if name is None:
            raise StuckError(f"{parameter.name} is not written as a pointer")
        edits.append(insert(analysis.source, name.start_byte, "restrict "))
    return edits


def _laid_out(source: KernelSource, listed: Node, edits: list[ByteEdit], column: int) -> str:
    """The parameter list with as many parameters on a line as fit, below the first one."""
    commas = [n for n in listed.children if n.type == ","]
    starts = [listed.start_byte + 1, *(c.end_byte for c in commas)]
    ends = [*(c.start_byte for c in commas), listed.end_byte - 1]
    lines: list[str] = []
    for start, end in zip(starts, ends, strict=True):
        inside = [e for e in edits if start <= e.start < end]
        text = " ".join(rewritten_range(source, start, end, inside).split())
        if lines and column + len(lines[-1]) + 2 + len(text) < _COLUMNS:
            lines[-1] += f", {text}"
        else:
            lines.append(text)
    return "(" + f",\n{' ' * column}".join(lines) + ")"

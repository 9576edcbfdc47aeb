"""Neighbouring work-items on neighbouring elements: dimensions 0 and 1 change places."""

from __future__ import annotations

from library.edits import ByteEdit
from library.facts.opencl_control import BY_DIMENSION
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.opencl.rewrite import StuckError, analysis_of, edit, refusing


@refusing
def unit_stride(target: Target, captures: Captures, parameters: Parameters) -> tuple[ByteEdit, ...]:
    """Swap dimensions 0 and 1 wherever the kernel asks for one, and in the launch's ranges."""
    source = analysis_of(target).source
    edits = []
    for name, call in source.calls():
        if name not in BY_DIMENSION:
            continue
        arguments = source.arguments(call)
        dim = source.text(arguments[0]) if len(arguments) == 1 else ""
        if not dim.isdigit():
            raise StuckError(
                f"line {source.line(call)}: the dimension of {name} is not written out"
            )
        if dim in ("0", "1"):
            edits.append(edit(source, arguments[0], "10"[int(dim)]))
    values = source.launch.values if source.launch else {}
    for key in ("global", "local"):
        value = values.get(key)
        if value is None or value.locus.text == "None":
            continue
        if len(value.elements) < 2:
            raise StuckError(f"the launch's {key} size is not written as a tuple")
        first, second = value.elements[:2]
        edits.append(ByteEdit(first.path, first.start, first.end, second.text.encode()))
        edits.append(ByteEdit(first.path, second.start, second.end, first.text.encode()))
    return tuple(edits)

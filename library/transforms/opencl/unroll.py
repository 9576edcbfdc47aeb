"""An unroll hint before a loop."""

from __future__ import annotations

from library.edits import ByteEdit
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.opencl.rewrite import StuckError, analysis_of, insert, refusing


@refusing
def unroll(target: Target, captures: Captures, parameters: Parameters) -> tuple[ByteEdit, ...]:
    """Put `#pragma unroll <factor>` before the captured `loop`."""
    source = analysis_of(target).source
    node = source.node_at(captures["loop"][0], "for_statement")
    if node is None:
        raise StuckError("the anchor captured no for loop")
    if node.parent is None or node.parent.type != "compound_statement":
        raise StuckError(f"line {source.line(node)} is the whole body of another statement")
    indent = source.indent(node)
    text = f"#pragma unroll {int(parameters['factor'])}\n{indent}"
    return (insert(source, node.start_byte, text),)

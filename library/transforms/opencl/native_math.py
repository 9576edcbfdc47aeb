"""The device's own approximate functions in place of the precise ones."""

from __future__ import annotations

from library.edits import ByteEdit
from library.facts.opencl_control import PRECISE
from library.languages.c_tree import field
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.opencl.rewrite import StuckError, analysis_of, edit, refusing


@refusing
def native_math(target: Target, captures: Captures, parameters: Parameters) -> tuple[ByteEdit, ...]:
    """Call `native_exp` for `exp`, and so on for each function that has such a form."""
    source = analysis_of(target).source
    edits = [
        edit(source, field(call, "function"), f"native_{name}")
        for name, call in source.calls()
        if name in PRECISE
    ]
    if not edits:
        raise StuckError("no function that has a native form is called")
    return tuple(edits)

"""Tell L2 which pass over a row is the last."""

from __future__ import annotations

from library.edits import ByteEdit, Refusal
from library.facts.triton_rows import row_passes_of
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.triton.source_edits import edit_arguments, model_of


def eviction_hints(
    target: Target, captures: Captures, parameters: Parameters
) -> tuple[ByteEdit, ...] | Refusal:
    """`evict_last` on every load of a row but the last, `evict_first` on that one."""
    model = model_of(target)
    if isinstance(model, Refusal):
        return model
    rows = row_passes_of(model)
    if rows is None:
        return Refusal("the kernel's loops are not several passes over the same row")
    edits: list[ByteEdit] = []
    for loads in rows.reread:
        for load in loads:
            policy = "evict_first" if load == loads[-1] else "evict_last"
            edits += edit_arguments(model, load, {}, [f'eviction_policy="{policy}"'])
    return tuple(edits)

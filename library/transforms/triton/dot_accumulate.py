"""Accumulate inside the MMA: `acc = tl.dot(a, b, acc)`."""

from __future__ import annotations

from library.edits import ByteEdit, Refusal
from library.facts.triton_gemm import gemm_of
from library.languages.python_source import field
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.triton.source_edits import model_of, replace


def dot_accumulate(
    target: Target, captures: Captures, parameters: Parameters
) -> tuple[ByteEdit, ...] | Refusal:
    """Pass the accumulator to `tl.dot` instead of adding its result."""
    model = model_of(target)
    if isinstance(model, Refusal):
        return model
    gemm = gemm_of(model)
    if gemm is None or gemm.update.type != "expression_statement":
        return Refusal("no `acc += tl.dot(a, b)` in a loop")
    arguments = [model.text(node) for node in field(gemm.dot, "arguments").named_children]
    positional = [text for text in arguments if "=" not in text]
    if len(positional) != 2:
        return Refusal(f"`{model.text(gemm.dot)}` already carries an accumulator")
    named = arguments[len(positional) :]
    given = ", ".join([*positional, gemm.accumulator, *named])
    function = model.text(field(gemm.dot, "function"))
    return (replace(model, gemm.update, f"{gemm.accumulator} = {function}({given})"),)

"""Show the compiler what divides a row's strides and width, so that its loads are vectors."""

from __future__ import annotations

from library.edits import ByteEdit, Refusal
from library.facts.triton_model import Model
from library.facts.triton_rows import row_integers
from library.languages.python_source import field
from library.languages.triton_kernels import is_jit
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.triton.source_edits import (
    add_parameters,
    decorate,
    fresh,
    insert_before,
    language_alias,
    model_of,
    triton_alias,
)


def row_alignment(
    target: Target, captures: Captures, parameters: Parameters
) -> tuple[ByteEdit, ...] | Refusal:
    """Round strides and width down to their common power-of-two divisor, which changes nothing.

    Triton itself only tells the compiler of arguments that 16 divides; a row of 1000 elements falls
    back to one element a load. `tl.multiple_of` on an argument is dropped (checked in the PTX of
    Triton 3.9), the rounding is not. ALIGN is a heuristic, so it is true of whatever is passed.
    """
    model = model_of(target)
    if isinstance(model, Refusal):
        return model
    tl, triton, names = language_alias(model), triton_alias(model), row_integers(model)
    jit = next((d for d in model.function.decorators if is_jit(model.module, d)), None)
    if tl is None or triton is None or jit is None or jit.parent is None or not names:
        return Refusal("no row strides and width, or the kernel is not decorated with jit")
    align = fresh(model, "ALIGN")
    read = ", ".join(f'args["{name}"]' for name in names)
    heuristic = f'{{"{align}": lambda args: math.gcd({read}, 16)}}'
    body = [s for s in field(model.function.node, "body").named_children if s.type != "comment"]
    is_docstring = body[0].type == "expression_statement" and body[0].children[0].type == "string"
    first = body[1] if is_docstring else body[0]
    default = " = 1" if any(p.default is not None for p in model.parameters) else ""
    lines = [
        f"# Exact, since {align} divides them: shows the compiler how rows are aligned.",
        *(f"{name} = {name} // {align} * {align}" for name in names),
    ]
    return (
        *_import_math(model),
        decorate(model, jit.parent, f"{triton}.heuristics", heuristic),
        add_parameters(model, f"{align}: {tl}.constexpr{default}"),
        insert_before(model, first, lines),
    )


def _import_math(model: Model) -> tuple[ByteEdit, ...]:
    """`import math` before the module's first import, unless it is there."""
    imports = model.module.imports
    if "math" in imports:
        return ()
    first = min((item.node for item in imports.values()), key=lambda node: node.start_byte)
    return (ByteEdit(model.source.path, first.start_byte, first.start_byte, b"import math\n\n"),)

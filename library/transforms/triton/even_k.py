"""Leave the K term out of the operands' masks when K is a multiple of BLOCK_K."""

from __future__ import annotations

from library.edits import ByteEdit, Refusal
from library.fact import Missing
from library.facts.triton_constants import definition
from library.facts.triton_gemm import Gemm, Operand, gemm_of
from library.facts.triton_model import Model
from library.facts.triton_offsets import Bound, bounds_of, is_loop_bound
from library.languages.python_source import field
from library.languages.triton_kernels import is_jit
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.triton.loop_loads import load_group
from library.transforms.triton.source_edits import (
    add_parameters,
    decorate,
    fresh,
    joined,
    language_alias,
    loaded_as,
    model_of,
    otherwise,
    replace_range,
    triton_alias,
)


def even_k(
    target: Target, captures: Captures, parameters: Parameters
) -> tuple[ByteEdit, ...] | Refusal:
    """Load under `if EVEN_K:` without the K term; keep the masked loads for every other K.

    EVEN_K is a heuristic, `K % BLOCK_K == 0`, computed on the host at each launch, so it follows
    later edits of the tile and holds for whatever K is passed.
    """
    model = model_of(target)
    if isinstance(model, Refusal):
        return model
    gemm, tl, triton = gemm_of(model), language_alias(model), triton_alias(model)
    if gemm is None or tl is None or triton is None:
        return Refusal("no tiled product, or triton is not imported by name")
    jit = next((d for d in model.function.decorators if is_jit(model.module, d)), None)
    if jit is None or jit.parent is None:
        return Refusal("the kernel is not decorated with jit, so a heuristic has no place")
    found = definition(model, gemm.block_k)
    if isinstance(found, Missing) or found.place == "the default":
        return Refusal(f"the launch does not pass {gemm.block_k}, so a heuristic cannot read it")
    if any(len(operand.loads) != 1 for operand in (gemm.a, gemm.b)):
        return Refusal("an operand is not loaded by exactly one tl.load")
    fast = [f"    {_unmasked(model, gemm, operand)}" for operand in (gemm.a, gemm.b)]
    group = load_group(model, gemm, fast)
    if isinstance(group, Refusal):
        return group
    even = fresh(model, "EVEN_K")
    statements = group.statements
    lines = [f"if {even}:", *fast, *otherwise(model, statements)]
    divides = f'args["{gemm.loop.bound}"] % args["{gemm.block_k}"] == 0'
    heuristic = f'{{"{even}": lambda args: {divides}}}'
    # The heuristic always passes it; a default is only needed after parameters that have one.
    default = " = False" if any(p.default is not None for p in model.parameters) else ""
    return (
        decorate(model, jit.parent, f"{triton}.heuristics", heuristic),
        add_parameters(model, f"{even}: {tl}.constexpr{default}"),
        replace_range(
            model, statements[0], statements[-1], joined(lines, model.source.indent(statements[0]))
        ),
    )


def _unmasked(model: Model, gemm: Gemm, operand: Operand) -> str:
    """`a = tl.load(a_ptrs, mask=offs_m[:, None] < M, other=0.0)`: what is left of the mask."""
    load = operand.loads[0]
    kept = [b for b in bounds_of(model, load) or () if not is_loop_bound(model, b, gemm.loop)]
    parts = []
    for given in field(load, "arguments").named_children:
        keyword = given.type == "keyword_argument"
        name = model.text(field(given, "name")) if keyword else ""
        if given.type == "comment" or (name == "other" and not kept):
            continue
        if name == "mask":
            if kept:
                parts.append(f"mask={_conjunction(model, kept)}")
        else:
            parts.append(model.text(given))
    loaded = f"{model.text(field(load, 'function'))}({', '.join(parts)})"
    return f"{operand.name} = {loaded_as(model, load, loaded)}"


def _conjunction(model: Model, bounds: list[Bound]) -> str:
    texts = [_comparison_text(model, bound) for bound in bounds]
    return texts[0] if len(texts) == 1 else " & ".join(f"({text})" for text in texts)


def _comparison_text(model: Model, bound: Bound) -> str:
    """The comparison as it is used in the mask, with the expansion that follows it."""
    parent = bound.node.parent
    while parent is not None and parent.type == "parenthesized_expression":
        parent = parent.parent
    if parent is not None and parent.type == "subscript":
        return model.text(parent)
    return model.text(bound.node)

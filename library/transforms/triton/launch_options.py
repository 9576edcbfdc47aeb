"""Set launch constants: tile sizes, num_warps, num_stages."""

from __future__ import annotations

from library.edits import ByteEdit, Refusal
from library.fact import Missing
from library.facts.triton_constants import Definition, definition, option, tuning_configs
from library.facts.triton_gemm import gemm_of
from library.facts.triton_model import Model
from library.languages.python_source import Node, field
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.triton.source_edits import edit_arguments, model_of, replace

OPTIONS = ("num_warps", "num_stages")


def launch_options(
    target: Target, captures: Captures, parameters: Parameters
) -> tuple[ByteEdit, ...] | Refusal:
    """Set the options named in the parameters where they are written, or add them to the launch."""
    model = model_of(target)
    if isinstance(model, Refusal):
        return model
    return _set(model, {}, parameters)


def gemm_tile(
    target: Target, captures: Captures, parameters: Parameters
) -> tuple[ByteEdit, ...] | Refusal:
    """Set BLOCK_M, BLOCK_N and BLOCK_K (`m`, `n`, `k`) and the options that go with them."""
    model = model_of(target)
    if isinstance(model, Refusal):
        return model
    gemm = gemm_of(model)
    if gemm is None:
        return Refusal("no tiled product was recognised")
    names = {gemm.block_m: "m", gemm.block_n: "n", gemm.block_k: "k"}
    return _set(model, {name: parameters[which] for name, which in names.items()}, parameters)


def _set(
    model: Model, constants: Parameters, parameters: Parameters
) -> tuple[ByteEdit, ...] | Refusal:
    """Edit each literal where it is written; options that are nowhere are added to the launch."""
    if model.site is None:
        return Refusal("no launch was found")
    values = {**constants, **{n: v for n, v in parameters.items() if n in OPTIONS}}
    literals: dict[int, tuple[Node, str]] = {}
    added = []
    for name, value in values.items():
        found = option(model, name) if name in OPTIONS else definition(model, name)
        if isinstance(found, Missing):
            return Refusal(f"{name}: {found.reason}")
        if isinstance(found, Definition):
            literals[found.node.start_byte] = (found.node, str(value))
        elif found != value:
            added.append(f"{name}={value}")
    changed = {at: (node, new) for at, (node, new) in literals.items() if model.text(node) != new}
    configs = tuning_configs(model)  # an autotuner passes its config's options itself
    call = configs[0] if configs else model.site.call
    group = field(call, "arguments")
    inside_call = {at: new for at, (node, new) in changed.items() if _is_argument(node, group)}
    elsewhere = [
        replace(model, node, new) for at, (node, new) in changed.items() if at not in inside_call
    ]
    return (*elsewhere, *edit_arguments(model, call, inside_call, added))


def _is_argument(node: Node, group: Node) -> bool:
    """Whether a node is the whole value of one argument of a call."""
    parent = node.parent
    if parent is not None and parent.type == "keyword_argument":
        parent = parent.parent
    return parent == group

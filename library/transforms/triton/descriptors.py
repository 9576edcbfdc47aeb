"""Load operands by TMA: host-side tensor descriptors, with the pointer path kept beside them."""

from __future__ import annotations

from dataclasses import dataclass

from library.edits import ByteEdit, Refusal
from library.facts.triton_gemm import Gemm, Operand, gemm_of
from library.facts.triton_model import Model
from library.facts.triton_offsets import Offset
from library.facts.triton_operand_facts import matrix_of, operand_address
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.triton.loop_loads import load_group
from library.transforms.triton.source_edits import (
    add_parameters,
    edit_arguments,
    fresh,
    insert_before,
    joined,
    loaded_as,
    model_of,
    otherwise,
    replace_range,
)


def descriptors(
    target: Target, captures: Captures, parameters: Parameters
) -> tuple[ByteEdit, ...] | Refusal:
    """Pass descriptors of A and B where their rows suit a tensor map, None where they do not.

    In the kernel `if a_desc is not None:` is decided at compile time; the masked loads stay as the
    path for every other stride and alignment. Blocks outside a tensor read zeros, as the masks did.
    """
    model = model_of(target)
    if isinstance(model, Refusal):
        return model
    gemm = gemm_of(model)
    if gemm is None or model.site is None:
        return Refusal("no tiled product, or no launch")
    operands = (gemm.a, gemm.b)
    tensors = [name for op in operands if (name := matrix_of(model, gemm, op)) is not None]
    tiles = [tile for op in operands if (tile := _tile_of(model, gemm, op)) is not None]
    if len(tensors) != 2 or len(tiles) != 2:
        return Refusal("an operand is not a plain tile of a whole 2-D tensor")
    group = load_group(model, gemm, [tile.origin for tile in tiles])
    if isinstance(group, Refusal):
        return group
    named = _named_blocks(model, {block for tile in tiles for block in tile.blocks})
    if isinstance(named, Refusal):
        return named
    descs = [fresh(model, f"{name}_desc") for name in tensors]
    statements = group.statements
    lines = [
        f"if {descs[0]} is not None:",
        *(
            f"    {op.name} = {loaded_as(model, op.loads[0], f'{desc}.load([{tile.origin}])')}"
            for op, desc, tile in zip(operands, descs, tiles, strict=True)
        ),
        *otherwise(model, statements),
    ]
    indent = model.source.indent(statements[0])
    shapes = [", ".join(named.names[block] for block in tile.blocks) for tile in tiles]
    return (
        *_import(model),
        add_parameters(model, *(f"{desc}=None" for desc in descs)),
        replace_range(model, statements[0], statements[-1], joined(lines, indent)),
        insert_before(
            model,
            model.statement_of(model.site.call),
            [*named.lines, *_host_lines(model, tensors, descs, shapes)],
        ),
        *edit_arguments(
            model, model.site.call, named.literals, [f"{desc}={desc}" for desc in descs]
        ),
    )


@dataclass(frozen=True, slots=True)
class _Tile:
    """Where a program's block of an operand starts, and its shape."""

    origin: str
    """`pid_m * BLOCK_M, k * BLOCK_K`."""
    blocks: tuple[str, ...]
    """Constexpr parameters, rows first."""


@dataclass(frozen=True, slots=True)
class _NamedBlocks:
    """Host names for the block sizes, and what introduces those that were literals."""

    names: dict[str, str]
    lines: list[str]
    literals: dict[int, str]
    """By offset of the literal at the launch."""


def _tile_of(model: Model, gemm: Gemm, operand: Operand) -> _Tile | None:
    address = operand_address(model, operand)
    if address is None:
        return None
    offsets = {term.offset.axis: term.offset for term in address.terms}
    if set(offsets) != {0, 1}:
        return None
    along_k = 1 if operand is gemm.a else 0
    origin = [_origin(gemm, offsets[axis], axis == along_k) for axis in (0, 1)]
    return _Tile(", ".join(origin), (offsets[0].block, offsets[1].block))


def _origin(gemm: Gemm, offset: Offset, along_k: bool) -> str:
    """The first element of a block along one axis."""
    if along_k:
        loop = gemm.loop
        return f"{loop.variable} * {loop.block}" if loop.counts_tiles else loop.variable
    terms = []
    for term in offset.base:
        factors = term.split("*")
        terms.append(" * ".join(sorted(factors, key=lambda factor: factor == offset.block)))
    return " + ".join(terms) or "0"


def _named_blocks(model: Model, blocks: set[str]) -> _NamedBlocks | Refusal:
    """The descriptors and the launch must agree on the block, so a literal gets a name."""
    found = _NamedBlocks({}, [], {})
    for block in [name for name in model.constexprs if name in blocks]:
        node = model.site.arguments.get(block) if model.site is not None else None
        if node is None or node.type not in ("identifier", "integer"):
            return Refusal(f"the launch does not pass {block} as a number or a name")
        if node.type == "identifier":
            found.names[block] = model.text(node)
            continue
        taken = block in model.module.definitions or block in model.module.imports
        name = fresh(model, block) if taken else block
        found.names[block] = name
        found.lines.append(f"{name} = {model.text(node)}")
        found.literals[node.start_byte] = name
    if set(found.names) != blocks:
        return Refusal("a block size is not a constexpr parameter")
    return found


def _host_lines(model: Model, tensors: list[str], descs: list[str], shapes: list[str]) -> list[str]:
    fit = fresh(model, "rows_fit")
    return [
        "# A tensor map needs contiguous rows that start on 16 bytes; the rest keep the pointers.",
        f"{fit} = all(",
        "    t.stride(1) == 1 and t.stride(0) * t.element_size() % 16 == 0 and t.data_ptr() % 16 == 0",
        f"    for t in ({', '.join(tensors)})",
        ")",
        *(
            f"{desc} = TensorDescriptor.from_tensor({tensor}, [{shape}]) if {fit} else None"
            for tensor, desc, shape in zip(tensors, descs, shapes, strict=True)
        ),
    ]


def _import(model: Model) -> tuple[ByteEdit, ...]:
    """The import of TensorDescriptor, after the module's last import of Triton."""
    if "TensorDescriptor" in model.module.imports:
        return ()
    nodes = [
        item.node
        for item in model.module.imports.values()
        if item.module.split(".")[0] == "triton" and item.node.parent == model.source.root
    ]
    last = max(nodes, key=lambda node: node.start_byte)
    text = "\nfrom triton.tools.tensor_descriptor import TensorDescriptor"
    return (ByteEdit(model.source.path, last.end_byte, last.end_byte, text.encode()),)

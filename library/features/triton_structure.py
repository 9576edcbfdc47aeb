"""Features that the statements of a Triton kernel show."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from library.facts.triton_gemm import gemm_of
from library.facts.triton_model import Model
from library.facts.triton_offsets import argument, bounds_of, product
from library.facts.triton_pointers import address_of
from library.features.triton_seen import (
    Seen,
    absent,
    bodies,
    call_of,
    language_calls,
    present,
    unknown,
)
from library.languages.python_source import Node, ancestors, field, inside, nodes_of, unwrap

DESCRIPTOR_METHODS = ("load", "store", "gather", "scatter", "atomic_add")


def _tiling(model: Model) -> Seen:
    """F01: a block of offsets placed by a program id."""
    ids = {name for name, nodes in model.assignments.items() if _reads_program_id(model, nodes)}
    for call in model.calls("arange"):
        end = argument(model, call, "end", 1)
        if end is None or model.text(end) not in model.constexprs:
            continue
        block = model.canonical(end)
        for node in nodes_of(model.function.body, "binary_operator"):
            factors = product(model, node).split("*")
            if block in factors and ids.intersection(factors):
                return present(model, node, f"tl.arange(0, {block}) at {model.text(node)}")
        return present(model, call, f"tl.arange(0, {block})")
    gemm = gemm_of(model)
    if gemm is not None:
        return present(model, gemm.update, f"a {gemm.block_m} x {gemm.block_n} tile a program")
    return absent(model, None, "no tl.arange over a constexpr block")


def _register_blocking(model: Model) -> Seen:
    """F05: an accumulator tile carried by a loop."""
    gemm = gemm_of(model)
    if gemm is None:
        return unknown("no accumulator tile was recognised; registers are seen in the binary")
    tile = f"{gemm.block_m} x {gemm.block_n}"
    return present(model, gemm.update, f"{gemm.accumulator} is a {tile} tile in registers")


def _accumulation(model: Model) -> Seen:
    """F08: products accumulate in fp32."""
    gemm = gemm_of(model)
    if gemm is None:
        return unknown("no tiled product was recognised")
    if gemm.accumulator_dtype == "float32":
        return present(model, gemm.update, f"{gemm.accumulator} is float32")
    return absent(model, None, f"{gemm.accumulator} is {gemm.accumulator_dtype or 'of no dtype'}")


def _descriptors(model: Model) -> Seen:
    """F10: a descriptor made in the kernel, or one that is passed and loaded from."""
    for source, call in language_calls(model, "make_tensor_descriptor"):
        return present(model, call, "tl.make_tensor_descriptor", source)
    names = {parameter.name for parameter in model.parameters}
    for call in nodes_of(model.function.body, "call"):
        function = field(call, "function")
        if function.type != "attribute" or field(function, "object").type != "identifier":
            continue
        owner, method = (
            model.text(field(function, "object")),
            model.text(field(function, "attribute")),
        )
        if owner in names and method in DESCRIPTOR_METHODS:
            return present(model, call, f"{owner} is a descriptor")
    return absent(model, None, "no descriptor is made or passed")


def _loop_option(name: str) -> Callable[[Model], Seen]:
    """Present if some `tl.range` has the option set."""

    def detect(model: Model) -> Seen:
        for loop in model.loops:
            given = argument(model, field(loop.node, "right"), name, None)
            if given is not None and model.text(given) not in ("False", "None", "0"):
                return present(model, loop.node, f"{name}={model.text(given)}")
        return absent(model, None, f"no loop has {name}")

    return detect


def _persistent(model: Model) -> Seen:
    """F13: a loop over tiles that starts at the program's id."""
    for loop in model.loops:
        start = model.resolve(loop.start) if loop.start is not None else None
        if start is not None and model.is_language(start, "program_id") and loop.step is not None:
            return present(model, loop.node, f"tiles step by {model.text(loop.step)}")
    return absent(model, None, "no loop over tiles")


def _rasterization(model: Model) -> Seen:
    """F14: `tl.swizzle2d`, or a remainder by the size of a group that may be cut off."""
    for source, call in language_calls(model, "swizzle2d"):
        return present(model, call, "tl.swizzle2d", source)
    for module, body in bodies(model):
        groups = set()
        for node in nodes_of(body, "assignment"):
            right = node.child_by_field_name("right")
            if right is None or unwrap(right).type != "call":
                continue
            if module.callee(unwrap(right)).split(".")[-1] in ("min", "minimum"):
                groups.add(module.source.text(field(node, "left")))
        for node in nodes_of(body, "binary_operator"):
            operator = module.source.text(field(node, "operator"))
            if operator == "%" and module.source.text(unwrap(field(node, "right"))) in groups:
                return present(model, node, "tiles are walked in groups", module.source)
    return absent(model, None, "tiles are walked in launch order")


def _split_k(model: Model) -> Seen:
    """F16: partial products added by atomics."""
    gemm = gemm_of(model)
    adds = model.calls("atomic_add")
    if gemm is not None and adds and not inside(adds[0], gemm.loop.node):
        return present(model, adds[0], "partial tiles are added by tl.atomic_add")
    return absent(model, None, "no partial tiles are added")


def _shuffles(model: Model) -> Seen:
    """F20: reductions there are; how the compiler does them the source cannot show."""
    for source, call in language_calls(model, "sum", "max", "min", "argmax", "argmin", "reduce"):
        return unknown(
            f"{source.text(call).split('(')[0]} is reduced by the compiler; PTX shows shfl"
        )
    return absent(model, None, "no reduction")


def _online_softmax(model: Model) -> Seen:
    """F21: a running maximum with a rescaled sum, in one loop."""
    for loop in model.loops:
        for node in nodes_of(loop.node, "assignment"):
            right = node.child_by_field_name("right")
            if right is None or not model.is_language(unwrap(right), "maximum"):
                continue
            old = model.canonical(field(unwrap(right), "arguments").named_children[0])
            difference = f"{old}-{model.text(field(node, 'left'))}"
            for call in (*model.calls("exp", loop.node), *model.calls("exp2", loop.node)):
                if model.canonical(field(call, "arguments").named_children[0]).startswith(
                    difference
                ):
                    return present(model, call, "a running sum is rescaled")
    return absent(model, None, "no running maximum rescales a sum")


def _mask_elision(model: Model) -> Seen:
    """F25: a load without (part of) its mask, proved by a constexpr or by the caller."""
    for kind, call in model.accesses():
        address = address_of(model, call)
        if kind != "load" or address is None or not address.terms:
            continue
        if bounds_of(model, call) == () and not any(t.offset.wrap for t in address.terms):
            return present(model, call, "a block is loaded without a mask")
        branch = _constexpr_branch(model, call)
        if branch is not None:
            return present(model, call, f"under `if {model.text(branch)}`")
    return absent(model, None, "every load is masked or wrapped")


def _constexpr_branch(model: Model, node: Node) -> Node | None:
    """The condition of an `if` on a constexpr around a load, which has a branch for the rest."""
    for outer in ancestors(node):
        if outer.type == "if_statement" and outer.child_by_field_name("alternative") is not None:
            condition = field(outer, "condition")
            if model.text(condition) in model.constexprs:
                return condition
    return None


def _cache_hints(model: Model) -> Seen:
    """F27: how the caches should treat an access."""
    for _, call in model.accesses():
        for name in ("eviction_policy", "cache_modifier"):
            given = argument(model, call, name, None)
            if given is not None:
                return present(model, call, f"{name}={model.text(given)}")
    return absent(model, None, "no eviction_policy and no cache_modifier")


def _fast_math(model: Model) -> Seen:
    """F28: exp2, libdevice's fast forms, or tf32 products of fp32."""
    for source, call in language_calls(model, "exp2"):
        return present(model, call, "exp2", source)
    for module, body in bodies(model):
        for call in nodes_of(body, "call"):
            if module.callee(call).split(".")[-1].startswith("fast_"):
                return present(model, call, module.callee(call).split(".")[-1], module.source)
    for call in model.calls("dot"):
        for name in ("input_precision", "allow_tf32"):
            given = argument(model, call, name, None)
            if given is not None and model.text(given).strip("\"'") in ("tf32", "True"):
                return present(model, call, f"{name}={model.text(given)}")
    return absent(model, None, "no exp2, fast_* or tf32 asked for")


def _unrolling(model: Model) -> Seen:
    """F29: `tl.static_range` or an unroll factor."""
    for loop in model.loops:
        if loop.kind == "tl.static_range":
            return present(model, loop.node, "tl.static_range")
    return _loop_option("loop_unroll_factor")(model)


def _reads_program_id(model: Model, nodes: tuple[Node, ...]) -> bool:
    return any(model.calls("program_id", node) for node in nodes)


STRUCTURE_DETECTORS: Mapping[str, Callable[[Model], Seen]] = {
    "F01": _tiling,
    "F05": _register_blocking,
    "F06": lambda model: call_of(model, "dot", "dot_scaled"),
    "F08": _accumulation,
    "F10": _descriptors,
    "F12": _loop_option("warp_specialize"),
    "F13": _persistent,
    "F14": _rasterization,
    "F16": _split_k,
    "F17": _loop_option("flatten"),
    "F20": _shuffles,
    "F21": _online_softmax,
    "F25": _mask_elision,
    "F26": lambda model: call_of(model, "multiple_of", "max_contiguous", "assume"),
    "F27": _cache_hints,
    "F28": _fast_math,
    "F29": _unrolling,
}

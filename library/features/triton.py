"""The state of a Triton kernel as its source shows it.

What the compiler supplies (shared-memory staging, vector widths, wgmma, shuffles) is unknown at this
layer, with the layer that would show it; nothing is inferred from wishful names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from library.facts.triton_constants import Definition, option, tuning_configs
from library.facts.triton_model import Model
from library.facts.triton_offsets import argument
from library.features import NAMES
from library.features.triton_seen import Seen, absent, call_of, present, unknown
from library.features.triton_structure import STRUCTURE_DETECTORS
from library.languages.python_source import field, nodes_of
from library.languages.triton_kernels import AUTOTUNE, HEURISTICS, wrapper_call
from library.target import Feature, Layer, Presence

COMPILER_PROVIDED: Mapping[str, str] = {
    "F02": "the compiler stages operands; TTGIR shows local_alloc",
    "F03": "the compiler chooses vector widths; PTX shows .v2 and .v4",
    "F04": "the compiler chooses layouts; TTGIR shows convert_layout",
    "F07": "the compiler chooses the MMA; PTX shows wgmma",
    "F09": "the compiler chooses the copy; PTX shows cp.async",
    "F15": "the compiler swizzles; TTGIR shows the shared encoding",
}


def features_of(model: Model) -> tuple[Feature, ...]:
    """Every feature looked for, in order of id."""
    detectors: Mapping[str, Callable[[Model], Seen]] = {**STRUCTURE_DETECTORS, **LAUNCH_DETECTORS}
    seen = {identity: detector(model) for identity, detector in detectors.items()}
    for identity, detail in COMPILER_PROVIDED.items():
        seen[identity] = unknown(detail)
    missing = _unfound_helpers(model)
    return tuple(_feature(model, identity, seen[identity], missing) for identity in sorted(seen))


def _feature(model: Model, identity: str, seen: Seen, missing: str) -> Feature:
    if seen.presence is Presence.ABSENT and missing and not seen.of_launch:
        seen = unknown(f"{missing} is called and its source was not found")
    locus = (
        seen.source.locus(seen.node) if seen.source is not None and seen.node is not None else None
    )
    return Feature(identity, NAMES[identity], seen.presence, Layer.SOURCE, locus, seen.detail)


def _unfound_helpers(model: Model) -> str:
    """A function the kernel calls that is imported from somewhere that was not found."""
    for call in nodes_of(model.function.body, "call"):
        callee = field(call, "function")
        if callee.type != "identifier":
            continue
        name = model.text(callee)
        item = model.module.imports.get(name)
        if item is None or name in model.module.definitions:
            continue
        known = item.module.lstrip(".").split(".")[0] in ("triton", "torch", "math")
        if not known and model.repository.imported(model.module, item) is None:
            return name
    return ""


# ---- what the launch and the decorators say ---------------------------------------------------


def _pipeline(model: Model) -> Seen:
    """F11: `num_stages` of the launch or of a loop; by default Triton pipelines loops with a dot."""
    for loop in model.loops:
        given = argument(model, field(loop.node, "right"), "num_stages", None)
        if given is not None:
            deep = given.type != "integer" or int(model.text(given)) > 1
            verdict = present if deep else absent
            return verdict(model, loop.node, f"num_stages={model.text(given)} of the loop")
    found = option(model, "num_stages")
    dots = [loop for loop in model.loops if model.calls("dot", loop.node)]
    if isinstance(found, Definition):
        verdict = present if found.value > 1 and model.loops else absent
        return verdict(model, found.node, f"num_stages={found.value}")
    if isinstance(found, int):
        if dots:
            return present(model, dots[0].node, f"by Triton's default num_stages={found}")
        return absent(model, None, "no loop with a tl.dot, and no num_stages")
    return unknown(found.reason)


def _tuned(model: Model) -> Seen:
    """F24: autotune or heuristics."""
    call = wrapper_call(model.module, model.jit, AUTOTUNE | HEURISTICS)
    if call is None:
        return absent(model, None, "no autotune and no heuristics")
    count = len(tuning_configs(model))
    return present(model, call, f"{count} configs" if count else "heuristics")


def _occupancy(model: Model) -> Seen:
    """F31: an explicit number of warps or registers."""
    if model.site is not None and "maxnreg" in model.site.options:
        return present(model, model.site.options["maxnreg"], "maxnreg")
    found = option(model, "num_warps")
    if isinstance(found, Definition):
        return present(model, found.node, f"num_warps={found.value}")
    if isinstance(found, int):
        return absent(model, None, f"Triton's default num_warps={found}", of_launch=True)
    if model.site is not None and "num_warps" in model.site.options:
        return present(model, model.site.options["num_warps"], found.reason)
    return unknown(found.reason)


def _clusters(model: Model) -> Seen:
    """F18: `num_ctas` above 1."""
    node = model.site.options.get("num_ctas") if model.site is not None else None
    if node is None or model.text(node) == "1":
        return absent(model, None, "num_ctas is 1", of_launch=True)
    return present(model, node, f"num_ctas={model.text(node)}")


def _dependent_launch(model: Model) -> Seen:
    """F19: programmatic dependent launch."""
    node = model.site.options.get("launch_pdl") if model.site is not None else None
    return present(model, node, "launch_pdl") if node else call_of(model, "gdc_wait")


LAUNCH_DETECTORS: Mapping[str, Callable[[Model], Seen]] = {
    "F11": _pipeline,
    "F18": _clusters,
    "F19": _dependent_launch,
    "F24": _tuned,
    "F31": _occupancy,
}

"""The state of an OpenCL kernel: which optimization features its source shows.

Features that only a compiler or a GPU's own instructions could show (F07, F09–F13, F15–F19) have no
form in OpenCL C and are left out; F06 is listed because people ask.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tree_sitter import Node

from library.fact import Known, Missing
from library.facts.opencl_control import BARRIERS
from library.facts.opencl_loop_facts import VECTOR_MOVE, VECTOR_TYPE
from library.facts.opencl_loops import counted, loops, unroll_hint
from library.facts.opencl_reduction import loop_body
from library.features import NAMES
from library.languages.c_tree import field, find
from library.target import Feature, Layer, Locus, Presence

if TYPE_CHECKING:
    from library.facts.opencl import OpenCLAnalysis

_MATRIX = re.compile(r"\w*matrix_mad\w*|intel_sub_group_\w*dpas\w*|\w*joint_matrix\w*")
_REDUCE = re.compile(r"(?:work|sub)_group_(?:reduce|scan_inclusive|scan_exclusive)_\w+")
_FAST = re.compile(r"(?:native|half)_\w+|mad")
_CACHE = re.compile(r"prefetch|__builtin_nontemporal_(?:load|store)|__builtin_prefetch")
_FAST_OPTION = "-cl-fast-relaxed-math"

Row = tuple[Presence, Locus | None, str]


def features(analysis: OpenCLAnalysis) -> tuple[Feature, ...]:
    """One row for each feature OpenCL source can show or rule out."""
    return tuple(
        Feature(id, NAMES[id], presence, Layer.SOURCE, locus, detail)
        for id, row in _ROWS.items()
        for presence, locus, detail in (row(analysis),)
    )


def _present(analysis: OpenCLAnalysis, node: Node) -> Row:
    text = analysis.source.text(node).split("\n")[0]
    return Presence.PRESENT, analysis.source.locus(node), text


def _absent(why: str) -> Row:
    return Presence.ABSENT, None, why


def _called(analysis: OpenCLAnalysis, pattern: re.Pattern[str]) -> Node | None:
    return next((c for name, c in analysis.source.calls() if pattern.fullmatch(name)), None)


def _local_declarations(analysis: OpenCLAnalysis) -> Iterator[Node]:
    for declared in analysis.source.declared.values():
        for entry in declared:
            if analysis.source.space_of(entry.declaration) == "local":
                yield entry.declaration


def _tiling(analysis: OpenCLAnalysis) -> Row:
    for node in loops(analysis.source):
        loop = counted(analysis.source, node)
        nested = loop is not None and len(list(loops(analysis.source, node))) > 1
        if loop is not None and loop.step > 1 and nested:
            return _present(analysis, node)
    group = _called(analysis, re.compile("get_group_id"))
    if group is not None and next(loops(analysis.source), None) is not None:
        return _present(analysis, group)
    return _absent("no loop steps over tiles, and no index is scaled by get_group_id")


def _staging(analysis: OpenCLAnalysis) -> Row:
    barrier = _called(analysis, re.compile("|".join(BARRIERS)))
    declaration = next(_local_declarations(analysis), None)
    parameter = next(
        (p.node for p in analysis.source.parameters.values() if p.space == "local"), None
    )
    place = declaration or parameter
    if place is not None and barrier is not None:
        return _present(analysis, place)
    return _absent("no __local array with a barrier around its use")


def _vectors(analysis: OpenCLAnalysis) -> Row:
    for node in find(analysis.source.body, "identifier", "type_identifier"):
        text = analysis.source.text(node)
        if VECTOR_TYPE.fullmatch(text) or VECTOR_MOVE.fullmatch(text):
            return _present(analysis, node)
    for parameter in analysis.source.parameters.values():
        if VECTOR_TYPE.fullmatch(parameter.type):
            return _present(analysis, parameter.node)
    return _absent("no vector types, vload or vstore")


def _coalescing(analysis: OpenCLAnalysis) -> Row:
    along = [analysis.buffers.unit_stride(dim) for dim in (0, 1)]
    if isinstance(along[0], Known) and along[0].value:
        return Presence.PRESENT, None, along[0].because
    if isinstance(along[1], Known) and along[1].value:
        return _absent(f"{along[1].because}, and none along dimension 0")
    return (
        Presence.UNKNOWN,
        None,
        "no access has a stride of 1 along a global id that can be followed",
    )


def _register_blocking(analysis: OpenCLAnalysis) -> Row:
    source = analysis.source
    for node in loops(source):
        if node.type != "for_statement":
            continue
        sums = [r for r in loop_body(source, field(node, "body")).reductions if r.operator == "+"]
        for form in {_form(source.text(r.term)) for r in sums}:
            # A sum beside a sum of squares is no block: its accumulators are fed alike.
            names = {r.variable: None for r in sums if _form(source.text(r.term)) == form}
            if len(names) > 1:
                return Presence.PRESENT, source.locus(node), f"accumulators {', '.join(names)}"
        for target in _private_sums(analysis, node):
            return Presence.PRESENT, source.locus(target), source.text(target)
    return _absent("no loop feeds more than one accumulator")


def _form(expression: str) -> str:
    """An expression without its names and spaces: equal for the rows of a block."""
    return re.sub(r"\s+", "", re.sub(r"[A-Za-z_]\w*", "_", expression))


def _matrix(analysis: OpenCLAnalysis) -> Row:
    call = _called(analysis, _MATRIX)
    if call is not None:
        return _present(analysis, call)
    return _absent("OpenCL C has no matrix multiply; vendor extensions that do are not used")


def _accumulation(analysis: OpenCLAnalysis) -> Row:
    source = analysis.source
    for node in loops(source):
        if node.type != "for_statement":
            continue
        names = [r.variable for r in loop_body(source, field(node, "body")).reductions]
        names += [source.text(target).split("[")[0] for target in _private_sums(analysis, node)]
        for name in names:
            declared = source.declared[name][0].declaration
            kind = source.text(field(declared, "type"))
            if kind.startswith(("float", "double")):
                return _present(analysis, declared)
            if kind.startswith("half"):
                return _absent(f"{name} accumulates in {kind}")
    return _absent("no loop accumulates")


def _private_sums(analysis: OpenCLAnalysis, loop: Node) -> Iterator[Node]:
    """Elements of private arrays that a loop adds to: `acc[i]` of `acc[i] += …`."""
    source = analysis.source
    for assignment in find(loop, "assignment_expression"):
        target = field(assignment, "left")
        if target.type != "subscript_expression" or analysis.memory.place(target) is not None:
            continue
        declared = source.text(target).split("[")[0] in source.declared
        if declared and source.text(field(assignment, "operator")) == "+=":
            yield target


def _rasterization(analysis: OpenCLAnalysis) -> Row:
    for name, call in analysis.source.calls():
        parent = call.parent
        if name != "get_group_id" or parent is None or parent.type != "binary_expression":
            continue
        if analysis.source.text(field(parent, "operator")) in "/%":
            return _present(analysis, parent)
    return _absent("group ids are used as they are")


def _group_reduction(analysis: OpenCLAnalysis) -> Row:
    call = _called(analysis, _REDUCE)
    return _present(analysis, call) if call else _absent("no work_group_reduce or sub_group_reduce")


def _constants(analysis: OpenCLAnalysis) -> Row:
    source = analysis.source
    used = {source.text(node) for node in find(source.function, "identifier")}
    for name, constant in source.constants.items():
        if name in used:
            return Presence.PRESENT, None, constant.because
    if source.required_group_size is not None:
        return Presence.PRESENT, None, f"reqd_work_group_size({source.required_group_size})"
    return _absent("no integer macro and no reqd_work_group_size")


def _no_mask(analysis: OpenCLAnalysis) -> Row:
    guard = analysis.source.guard.statements
    if guard:
        return _absent(analysis.source.text(guard[0]).split("\n")[0])
    for node in find(analysis.source.body, "if_statement", "conditional_expression"):
        ids = [f"get_global_id({g.dim})" for g in analysis.source.global_ids]
        condition = field(node, "condition")
        if any(analysis.indices.depends(condition, symbol) for symbol in ids):
            return _absent(analysis.source.text(condition))
    return Presence.PRESENT, None, "no work-item tests its id against an extent"


def _no_alias(analysis: OpenCLAnalysis) -> Row:
    answer = analysis.buffers.all_restrict()
    pointers = [p for p in analysis.source.parameters.values() if p.pointer and p.space == "global"]
    if answer.value and pointers:
        return Presence.PRESENT, analysis.source.locus(pointers[0].node), answer.because
    return _absent(answer.because if pointers else "no global pointers")


def _cache_hints(analysis: OpenCLAnalysis) -> Row:
    call = _called(analysis, _CACHE)
    return _present(analysis, call) if call else _absent("no prefetch, no non-temporal access")


def _fast_math(analysis: OpenCLAnalysis) -> Row:
    call = _called(analysis, _FAST)
    if call is not None:
        return _present(analysis, call)
    launch = analysis.source.launch
    options = launch.values.get("options") if launch else None
    if options is not None and _FAST_OPTION in options.locus.text:
        return Presence.PRESENT, options.locus, _FAST_OPTION
    return _absent("no native_ or half_ functions, no mad, no -cl-fast-relaxed-math")


def _unrolling(analysis: OpenCLAnalysis) -> Row:
    for node in loops(analysis.source):
        hint = unroll_hint(analysis.source, node)
        if hint is not None:
            return Presence.PRESENT, analysis.source.locus(node), hint
    return _absent("no loop has an unroll hint")


def _group_size(analysis: OpenCLAnalysis) -> Row:
    required = analysis.source.required_group_size
    if required is not None:
        return Presence.PRESENT, None, f"reqd_work_group_size({required})"
    answer = analysis.launch.local_size_given()
    if isinstance(answer, Missing):
        return Presence.UNKNOWN, None, answer.reason
    return (Presence.PRESENT if answer.value else Presence.ABSENT), None, answer.because


_ROWS: dict[str, Callable[[OpenCLAnalysis], Row]] = {
    "F01": _tiling,
    "F02": _staging,
    "F03": _vectors,
    "F04": _coalescing,
    "F05": _register_blocking,
    "F06": _matrix,
    "F08": _accumulation,
    "F14": _rasterization,
    "F20": _group_reduction,
    "F24": _constants,
    "F25": _no_mask,
    "F26": _no_alias,
    "F27": _cache_hints,
    "F28": _fast_math,
    "F29": _unrolling,
    "F31": _group_size,
}

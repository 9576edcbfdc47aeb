"""Damaged kernels: half-typed code is what a watcher sees most, and nothing may raise on it."""

from __future__ import annotations

import re

import opencl_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st
from opencl_builders import POCL, SHIPPED, Case, trace_of

from library.detect import detect, target_for
from library.edits import Refusal
from library.materialize import materialize
from library.retrieval.offer import Answer
from library.retrieval.retrieve import retrieve
from library.store import Place, Store
from library.transforms.opencl import TRANSFORMS
from library.workload_source import find_workload

KERNELS = [case for case in vars(cases).values() if isinstance(case, Case)]
STORE = Store([Place("shipped", SHIPPED)]).load()
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
ANCHORS = {"loop": "(for_statement) @loop", "kernel": "(function_definition) @kernel"}


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, bytes]:
    """A kernel with a few tokens dropped, doubled, swapped or taken from elsewhere."""
    case = draw(st.sampled_from(KERNELS))
    words = TOKEN.findall(case.source)
    for _ in range(draw(st.integers(1, 4))):
        i = draw(st.integers(0, len(words) - 1))
        j = draw(st.integers(0, len(words) - 1))
        match draw(st.sampled_from(["drop", "double", "swap", "copy"])):
            case "drop":
                words[i] = ""
            case "double":
                words[i] *= 2
            case "swap":
                words[i], words[j] = words[j], words[i]
            case _:
                words[i] = words[j]
    return case.files() | {"k.cl": "".join(words).encode()}


@settings(max_examples=120, deadline=None)
@given(damaged())
def test_a_damaged_kernel_is_a_matter_of_problems_and_refusals(files: dict[str, bytes]) -> None:
    for kernel in detect("k.cl", files["k.cl"], files.get, {}).kernels:
        workload = find_workload("k.cl", files.get, {})
        target = target_for(kernel, workload, POCL, (trace_of(kernel),))
        for offer in retrieve(target, STORE).offers:
            if offer.answer is Answer.APPLIES:
                materialize(offer.entry.card, offer.match, target)


@settings(max_examples=60, deadline=None)
@given(damaged(), st.sampled_from(sorted(TRANSFORMS)))
def test_a_transform_edits_or_refuses_whatever_its_card_would_say(
    files: dict[str, bytes], name: str
) -> None:
    parameters = {"dim": 1, "factor": 4, "width": 8, "tile": 16}
    for kernel in detect("k.cl", files["k.cl"], files.get, {}).kernels:
        target = target_for(kernel, find_workload("k.cl", files.get, {}), POCL)
        for query in ANCHORS.values():
            for match in target.analysis.anchors(query):
                captures = {key: match.get("loop", match.get("kernel", ())) for key in ANCHORS}
                result = TRANSFORMS[name](target, captures, parameters)
                assert isinstance(result, tuple | Refusal)

"""Detect, retrieve and materialize on the sample kernels, with the shipped skills."""

from __future__ import annotations

from pathlib import Path

import pytest
from target_builders import platform

import library
from gate.values.candidate import Candidate
from gate.values.platform import Platform
from library.detect import detect, target_for
from library.materialize import materialize
from library.retrieval import Answer, explain, retrieve
from library.store import Place, Store
from library.target import Target
from library.workload_source import find_workload

ROOT = Path(library.__file__).parent.parent
CPU = platform(
    "pocl-cpu",
    device_type="cpu",
    compute_units=2,
    local_memory_bytes=524288,
    max_work_group_size=4096,
    preferred_vector_float=8,
    native_vector_float=8,
)
HOPPER = platform(
    "sm_90a",
    device_type="gpu",
    compute_units=132,
    shared_memory_per_block_optin_bytes=232448,
    registers_per_sm=65536,
    l2_bytes=52428800,
    cp_async=True,
    tma=True,
    wgmma=True,
)
NAIVE = [
    ("sample_kernels/gemm/opencl/gemm_naive.cl", CPU),
    ("sample_kernels/row_softmax/opencl/softmax_naive.cl", CPU),
    ("sample_kernels/gemm/triton/gemm_naive.py", HOPPER),
    ("sample_kernels/row_softmax/triton/softmax_naive.py", HOPPER),
]


def read(path: str) -> bytes | None:
    file = ROOT / path
    return file.read_bytes() if file.is_file() else None


def target_at(path: str, on: Platform) -> Target:
    (kernel,) = detect(path, (ROOT / path).read_bytes(), read, {}).kernels
    return target_for(kernel, find_workload(path, read, {}), on)


@pytest.fixture(scope="module")
def shipped() -> Store:
    return Store([Place("shipped", ROOT / "library" / "skills")]).load()


@pytest.mark.parametrize(("path", "on"), NAIVE)
def test_every_skill_that_applies_makes_a_kernel_that_still_parses(
    path: str, on: Platform, shipped: Store
) -> None:
    target = target_at(path, on)
    applying = retrieve(target, shipped).having(Answer.APPLIES)
    assert len(applying) >= 2
    for offer in applying:
        name = offer.entry.card.skill_id
        candidate = materialize(offer.entry.card, offer.match, target)
        assert isinstance(candidate, Candidate), f"{name}: {candidate}"
        after = {file.path: file.data for file in candidate.files_over(target.kernel)}
        found = detect(path, after[path], lambda p, after=after: after.get(p) or read(p), {})
        assert found.problems == (), name
        (edited,) = found.kernels
        assert edited.entry == target.kernel.entry
        assert edited.closure != target.kernel.closure, f"{name} left the closure as it was"


@pytest.mark.parametrize(("path", "on"), NAIVE)
def test_retrieval_on_a_kernel_is_the_same_every_time(
    path: str, on: Platform, shipped: Store
) -> None:
    first, second = (retrieve(target_at(path, on), shipped).offers for _ in range(2))
    assert [(o.id, o.answer, o.reason) for o in first] == [
        (o.id, o.answer, o.reason) for o in second
    ]
    assert len({offer.id for offer in first}) == len(first)


@pytest.mark.parametrize(("path", "on"), NAIVE)
def test_every_shipped_skill_can_be_explained_on_a_kernel(
    path: str, on: Platform, shipped: Store
) -> None:
    target = target_at(path, on)
    answers = {offer.entry.digest: offer.answer for offer in retrieve(target, shipped).offers}
    for entry in shipped.entries:
        explanation = explain(entry, target)
        assert explanation.answer is answers[entry.digest]
        assert not any("could not be judged" in line for line in explanation.lines)


def test_a_comment_leaves_offers_alone_and_an_edit_of_the_kernel_renews_them(
    shipped: Store,
) -> None:
    path = "sample_kernels/gemm/opencl/gemm_naive.cl"
    source = (ROOT / path).read_bytes()

    def ids(data: bytes) -> list[str]:
        (kernel,) = detect(path, data, read, {}).kernels
        target = target_for(kernel, find_workload(path, read, {}), CPU)
        return [offer.id for offer in retrieve(target, shipped).having(Answer.APPLIES)]

    assert ids(b"// a comment\n" + source) == ids(source)
    assert set(ids(source.replace(b"+=", b"-="))).isdisjoint(ids(source))

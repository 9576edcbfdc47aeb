"""From files to targets, with the real languages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from target_builders import platform

from gate.values.kernel import Language, LaunchKind
from gate.values.workload import Workload
from library.conditions import TargetFacts, Truth, judge, parse
from library.detect import SUPPORTED, detect, support, target_for

SCALE = b"""__kernel void scale(__global const float *x, __global float *y, int N) {
    int i = get_global_id(0);
    if (i < N) y[i] = 2.0f * x[i];
}
"""
WORKLOAD = b"""import numpy as np
OPERATOR = "scale"
SHAPES = [{"N": 1024}, {"N": 1000}]
def make_inputs(N=1024, seed=0):
    return {"x": np.random.default_rng(seed).standard_normal(N).astype(np.float32)}
def numpy_ref(x):
    return {"y": 2 * x}
def launch(axes):
    return {"global": (axes["N"],)}
"""
TRITON = b"""import triton
import triton.language as tl

@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)

def launch_scale(x, y):
    scale[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
"""
NOTHING: dict[str, bytes] = {}


def test_an_opencl_kernel_is_found_with_its_workload_and_becomes_a_target() -> None:
    files = {"k/scale.cl": SCALE, "k/workload.py": WORKLOAD}
    found = detect("k/scale.cl", SCALE, files.get, {})
    assert found.problems == ()
    (kernel,) = found.kernels
    assert kernel.launch is not None
    assert (kernel.entry, kernel.launch.kind, kernel.launch.path) == (
        "scale",
        LaunchKind.NDRANGE,
        "k/workload.py",
    )
    target = target_for(kernel, Workload("k/workload.py", WORKLOAD), platform())
    assert target.case == "scale"
    judgement = judge(parse("N % 8 == 0"), TargetFacts(target), {})
    assert judgement.truth is Truth.MET
    assert (
        judge(parse("N % 64 == 0"), TargetFacts(target), {}).because
        == "N=1000 % 64 == 0 (at N=1000)"
    )


def test_a_triton_kernel_is_found_with_its_wrapper() -> None:
    (kernel,) = detect("k/scale.py", TRITON, NOTHING.get, {}).kernels
    assert kernel.language is Language.TRITON
    assert kernel.launch is not None
    assert kernel.launch.symbol == "launch_scale"


def test_a_problem_of_the_workload_is_shown_with_the_kernel_that_uses_it() -> None:
    broken = WORKLOAD.replace(b'[{"N": 1024}, {"N": 1000}]', b"pick()")
    found = detect("scale.cl", SCALE, {"workload.py": broken}.get, {})
    (problem,) = found.problems
    assert (problem.path, problem.line) == ("workload.py", 3)


def test_a_configured_workload_wins() -> None:
    files = {"w/other.py": WORKLOAD, "workload.py": WORKLOAD}
    (kernel,) = detect("scale.cl", SCALE, files.get, {"scale.cl": "w/other.py"}).kernels
    assert kernel.launch is not None
    assert kernel.launch.path == "w/other.py"


@pytest.mark.parametrize("path", ["notes.md", "kernel", "a.cl.bak"])
def test_a_suffix_of_no_language_gives_nothing(path: str) -> None:
    found = detect(path, SCALE, NOTHING.get, {})
    assert (found.kernels, found.problems) == ((), ())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x7fELF\0\0", "not a text file"),
        (b"// caf\xe9\n", "not UTF-8 at byte 6"),
        (b" " * (4 * 1024 * 1024 + 1), "larger than 4 MiB"),
    ],
)
@pytest.mark.parametrize("path", ["a.cl", "a.py"])
def test_a_file_that_cannot_be_source_is_one_problem(path: str, data: bytes, message: str) -> None:
    found = detect(path, data, NOTHING.get, {})
    assert found.kernels == ()
    assert [message in problem.message for problem in found.problems] == [True]


@given(
    path=st.sampled_from(["a.cl", "a.py"]),
    data=st.one_of(
        st.binary(max_size=200),
        st.tuples(st.sampled_from([SCALE, TRITON]), st.integers(0, 300), st.binary(max_size=8)).map(
            lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + 5 :]
        ),
    ),
)
@settings(max_examples=150, deadline=None)
def test_garbage_never_raises_and_what_still_parses_can_be_analysed(path: str, data: bytes) -> None:
    for kernel in detect(path, data, {"workload.py": WORKLOAD}.get, {}).kernels:
        target = target_for(kernel, None, None)
        assert target.analysis.anchors("(identifier) @name") is not None


def test_every_language_is_supported_once() -> None:
    assert len({each.language for each in SUPPORTED}) == len(SUPPORTED)
    assert support(Language.OPENCL).language is Language.OPENCL
    with pytest.raises(KeyError):
        support(Language.CUDA)

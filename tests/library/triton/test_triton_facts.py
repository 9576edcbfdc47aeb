"""Facts and features of Triton kernels, with and without launch traces."""

from __future__ import annotations

from functools import lru_cache
from types import CodeType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton_builders import ROOT, edited, subject, target, workload

from gate.values.trace import ArgumentTrace, LaunchTrace
from library.fact import Known, Missing
from library.facts.triton import FUNCTIONS
from library.languages.triton import Triton
from library.target import Analysis
from library.transforms.triton import TRANSFORMS

FIRST = {"M": 4096, "N": 4096, "K": 4096}
LOOPS = "((for_statement body: (block)) @loop)"
LOADS = '((call function: (attribute attribute: (identifier) @f)) @load (#eq? @f "load"))'


def value(
    analysis: Analysis, function: str, *arguments: object, axes: dict[str, int] | None = None
) -> object:
    """The value of a fact; fails on Missing."""
    answer = analysis.call(function, arguments, axes or FIRST)  # type: ignore[arg-type]
    assert isinstance(answer, Known), answer
    return answer.value


def present(name: str) -> set[str]:
    return {f.id for f in subject(name).target.analysis.features if f.presence == "present"}


def test_constants_come_from_the_launch_the_module_the_default_and_the_config() -> None:
    naive = subject("gemm_naive")
    assert naive.target.analysis.name("BLOCK_K", FIRST) == Known(
        32, "BLOCK_K=32 at the launch, line 74"
    )
    assert subject("linear_relu").target.analysis.name("TN", FIRST) == Known(
        32, "TN=32 at module level, line 7"
    )
    default = naive.source.replace("BLOCK_K: tl.constexpr", "BLOCK_K: tl.constexpr = 16")
    default = default.replace("        BLOCK_K=32,\n", "")
    answer = target(default, naive.workload).analysis.name("BLOCK_K", FIRST)
    assert isinstance(answer, Known)
    assert answer.value == 16
    tuned = naive.source.replace("        BLOCK_K=32,\n", "").replace(
        "@triton.jit",
        '@triton.autotune([triton.Config({"BLOCK_K": 64}, num_stages=5)], ["K"])\n@triton.jit',
    )
    analysis = target(tuned, naive.workload).analysis
    assert value(analysis, "tile_k") == 64
    assert value(analysis, "num_stages") == 5


def test_kernel_parameters_follow_the_wrapper_to_the_declared_axes() -> None:
    analysis = subject("linear_relu").target.analysis
    assert value(analysis, "value", "depth") == 4096
    assert value(analysis, "value", "sx0") == 4096
    assert value(analysis, "value", "sx1") == 1
    assert value(analysis, "stride_of", "X", 0) == 4096
    assert value(analysis, "contiguous_axis", "W") == 1
    assert value(analysis, "dtype_of", "Bias") == "bfloat16"
    assert value(analysis, "dtype_of", "Y") == "bfloat16"
    assert value(analysis, "written", "Y") is True
    assert value(analysis, "written", "X") is False


def test_a_trace_is_believed_over_the_source() -> None:
    naive = subject("gemm_naive")
    plain = naive.target
    trace = LaunchTrace(
        FIRST,
        "gemm_kernel",
        (64, 64),
        (128,),
        {"num_warps": 4, "num_stages": 3},
        {
            "a_ptr": ArgumentTrace("pointer", "float16", None, 8, (4096, 4096), (8192, 2)),
            "K": ArgumentTrace("scalar", "int32", 4096),
        },
    )
    analysis = Triton().analyse(plain.kernel, plain.workload, plain.platform, (trace,))
    assert value(analysis, "pointer_alignment", "a_ptr") == 8
    assert value(analysis, "stride_of", "a_ptr", 0) == 8192
    assert value(analysis, "dtype_of", "a_ptr") == "float16"
    assert value(analysis, "rows_aligned", 16) is False
    assert isinstance(plain.analysis.call("pointer_alignment", ("a_ptr",), FIRST), Missing)


def test_a_missing_fact_says_what_supplies_it() -> None:
    answer = subject("gemm_naive").target.analysis.call("pointer_alignment", ("a_ptr",), FIRST)
    assert isinstance(answer, Missing)
    assert (
        answer.supply
        == "gate this kernel once: klineage gate sample_kernels/gemm/triton/gemm_naive.py"
    )


def test_an_unknown_function_and_an_unknown_name_are_missing() -> None:
    analysis = subject("gemm_naive").target.analysis
    assert isinstance(analysis.call("no_such_fact", (), FIRST), Missing)
    assert isinstance(analysis.name("no_such_name", FIRST), Missing)


def test_loops_know_their_trips_and_whether_they_hold_a_dot() -> None:
    analysis = subject("gemm_naive").target.analysis
    (loop,) = (match["loop"][0] for match in analysis.anchors(LOOPS))
    assert value(analysis, "trip_count", loop) == 128
    assert value(analysis, "loop_has_dot", loop) is True
    assert value(analysis, "constant_trip", loop) is False


def test_mask_bounds_are_read_from_either_load() -> None:
    analysis = subject("gemm_naive").target.analysis
    bounds = [value(analysis, "mask_bounds", match["load"][0]) for match in analysis.anchors(LOADS)]
    assert bounds == [("M", "K-k*BLOCK_K"), ("K-k*BLOCK_K", "N")]


def test_anchors_stay_inside_the_kernel_and_its_launch() -> None:
    analysis = subject("linear_relu").target.analysis
    names = [
        m["n"][0].text for m in analysis.anchors("(function_definition name: (identifier) @n)")
    ]
    assert names == ["linear_kernel"]
    (launch,) = analysis.anchors("(call function: (subscript value: (identifier) @kernel)) @launch")
    assert launch["kernel"][0].text == "linear_kernel"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gemm_naive", {"F01", "F05", "F06", "F08", "F11"}),
        (
            "gemm_expert",
            {"F01", "F05", "F06", "F08", "F10", "F11", "F13", "F14", "F17", "F31"},
        ),
        ("softmax_naive", {"F01"}),
        ("softmax_expert", {"F01", "F27", "F28", "F31"}),
        ("log_softmax", {"F01", "F31"}),
    ],
)
def test_features_present(name: str, expected: set[str]) -> None:
    assert present(name) == expected


def test_what_the_compiler_supplies_is_unknown_with_the_layer_that_shows_it() -> None:
    features = {f.id: f for f in subject("gemm_naive").target.analysis.features}
    for identity, layer in (("F02", "TTGIR"), ("F03", "PTX"), ("F07", "PTX"), ("F09", "PTX")):
        assert features[identity].presence == "unknown"
        assert features[identity].layer == "source"
        assert layer in features[identity].detail


@pytest.mark.parametrize(
    ("before", "after", "feature"),
    [
        ("acc += tl.dot(a, b)", "acc += tl.dot(a, b, allow_tf32=True)", "F28"),
        ("offs_k = tl.arange(0, BLOCK_K)", "offs_k = tl.max_contiguous(tl.arange(0, BLOCK_K), BLOCK_K)", "F26"),
        ("in range(tl.cdiv", "in tl.range(tl.cdiv", ""),
        ("range(tl.cdiv(K, BLOCK_K))", "tl.range(tl.cdiv(K, BLOCK_K), warp_specialize=True)", "F12"),
        ("range(tl.cdiv(K, BLOCK_K))", "tl.range(tl.cdiv(K, BLOCK_K), loop_unroll_factor=2)", "F29"),
        ("BLOCK_K=32", "BLOCK_K=32, num_warps=8", "F31"),
        ("BLOCK_K=32", "BLOCK_K=32, num_ctas=2", "F18"),
        ("tl.store(c_ptrs, acc", "tl.atomic_add(c_ptrs, acc", "F16"),
        ("a = tl.load(a_ptrs, mask=a_mask, other=0.0)", 'a = tl.load(a_ptrs, mask=a_mask, other=0.0, cache_modifier=".cg")', "F27"),
        ("a = tl.load(a_ptrs, mask=a_mask, other=0.0)", "a = tl.load(a_ptrs)", "F25"),
    ],
)  # fmt: skip
def test_a_feature_is_seen_where_it_is_written(before: str, after: str, feature: str) -> None:
    naive = subject("gemm_naive")
    assert before in naive.source
    features = target(naive.source.replace(before, after), naive.workload).analysis.features
    added = {f.id for f in features if f.presence == "present"} - present("gemm_naive")
    assert added == ({feature} if feature else set())


@lru_cache(maxsize=1)
def grouped_order() -> tuple[CodeType, ...]:
    """The arithmetic triton.grouped-order writes, taken from its own text."""
    text = edited("triton.grouped-order", subject("gemm_naive").target)
    names = ("num_pid_in_group", "first_pid_m", "group_size_m", "pid_m", "pid_n")
    heads = tuple(f"{name} = " for name in names)
    lines = [line.strip() for line in text.splitlines()]
    return tuple(compile(line, "grouped", "exec") for line in lines if line.startswith(heads))


def grouped(pid: int, rows: int, columns: int, group: int) -> tuple[int, int]:
    names = {"GROUP_M": group, "num_pid_m": rows, "num_pid_n": columns, "pid": pid}
    for line in grouped_order():
        exec(line, names)
    return names["pid_m"], names["pid_n"]


@settings(deadline=None)
@given(st.integers(1, 13), st.integers(1, 13), st.integers(1, 9))
def test_grouped_order_is_a_bijection_of_the_grid(rows: int, columns: int, group: int) -> None:
    tiles = {grouped(pid, rows, columns, group) for pid in range(rows * columns)}
    assert tiles == {(m, n) for m in range(rows) for n in range(columns)}


def test_a_shape_without_axes_still_answers() -> None:
    analysis = target(subject("gemm_naive").source, workload(shapes="M=1 N=1 K=1")).analysis
    assert value(analysis, "k_divides") is False


def test_the_documentation_names_every_fact_function_and_transform() -> None:
    text = (ROOT / "docs" / "triton.md").read_text()
    missing = [name for name in FUNCTIONS if f"{name}(" not in text]
    missing += [name for name in TRANSFORMS if f"`{name}`" not in text]
    assert missing == []

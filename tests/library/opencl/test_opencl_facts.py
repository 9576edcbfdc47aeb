"""Facts: their values, what they come from, and what would supply the missing ones."""

from __future__ import annotations

import dataclasses

import opencl_cases as cases
import pytest
from opencl_builders import POCL, Case, kernel_of, target_of, trace_of, workload

from gate.values.trace import ArgumentTrace
from library.fact import Answer, Known, Missing
from library.facts.opencl import OpenCLAnalysis
from library.languages.opencl import OpenCL

SIZES = {"M": 48, "N": 40, "K": 24}


def analysis_of(case: Case, *, traced: bool = False) -> OpenCLAnalysis:
    analysis = target_of(case.files(), case.entry, traced=traced).analysis
    assert isinstance(analysis, OpenCLAnalysis)
    return analysis


def body(
    text: str, parameters: str = "global const float *x, global float *y, int n, int m"
) -> Case:
    """A kernel of two dimensions with this body."""
    source = f"kernel void f({parameters}) {{\n int i = get_global_id(0);\n int j = get_global_id(1);\n{text}\n}}\n"
    shape = workload(
        "'x': rng.random(n)", "[{'n': 64, 'm': 8}]", "{'global': (axes['n'], axes['m'])}"
    )
    return Case(source, shape)


def value(answer: Answer) -> object:
    assert isinstance(answer, Known), answer
    return answer.value


def loop_fact(case: Case, name: str, which: int = 0, axes: dict[str, int] | None = None) -> Answer:
    analysis = analysis_of(case)
    return analysis.call(name, analysis.anchors("(for_statement) @loop")[which]["loop"], axes)


def test_axes_macros_and_options_are_names() -> None:
    files = cases.BLUR.files()
    files["workload.py"] = files["workload.py"].replace(
        b'"local": None', b'"local": None, "options": "-D WIDE=8 -DNAMED=x"'
    )
    analysis = target_of(files).analysis
    assert analysis.name("W", {"H": 19, "W": 37}) == Known(37, "SHAPES of workload.py")
    assert analysis.name("TAPS", None) == Known(5, "line 2 of k.cl: #define TAPS 5")
    assert analysis.name("WIDE", None) == Known(8, "options of launch: -D WIDE=8")
    assert isinstance(analysis.name("W", None), Missing)
    unknown = analysis.name("NAMED", None)
    assert isinstance(unknown, Missing)
    assert "SHAPES" in unknown.supply


@pytest.mark.parametrize(
    ("index", "along_0", "along_1"),
    [
        ("j * n + i", True, False),
        ("i * n + j", False, True),
        ("(j * n) + (int)(i)", True, False),
        ("i + n * (j - 1) + 7", True, False),
        ("2 * i", False, False),
        ("i * n + j * n", False, False),
        ("n - i", False, False),
        ("i / 2", False, False),
        ("(i + j) * n - i * (n - 1)", True, False),
    ],
)
def test_strides_are_symbolic(index: str, along_0: bool, along_1: bool) -> None:
    analysis = analysis_of(body(f" y[{index}] = 1.0f;"))
    assert value(analysis.call("unit_stride", (0,), None)) is along_0
    assert value(analysis.call("unit_stride", (1,), None)) is along_1


def test_strides_are_followed_through_variables_and_pointers() -> None:
    text = " const int at = j * n; global float *row = y + at; row[i] = x[at + i]; vstore4((float4)(0), i, row);"
    answer = analysis_of(body(text)).call("lanes_contiguous", (0,), None)
    assert answer == Known(
        False,
        "line 4: vstore4((float4)(0), i, row) has stride 4 along dimension 0",
    )


def test_a_gather_has_no_fixed_stride() -> None:
    answer = analysis_of(body(" y[i] = x[(int)x[i]];")).call("lanes_contiguous", (0,), None)
    assert value(answer) is False
    assert isinstance(answer, Known)
    assert "no fixed stride" in answer.because


@pytest.mark.parametrize(
    ("header", "trips"),
    [
        ("int k = 0; k < K; ++k", 24),
        ("int k = 0; k <= K; k++", 25),
        ("int k = 4; k < K; k += 8", 3),
        ("int k = 0; k < K / 2; ++k", None),
        ("int k = 0; k < 2 * K - 1; ++k", 47),
        ("int k = 0; K > k; ++k", None),
        ("int k = K; k > 0; --k", None),
        ("int k = 0; k < M; k += 16", 3),
    ],
)
def test_trip_counts_come_from_the_header_and_the_axes(header: str, trips: int | None) -> None:
    source = cases.GEMM_NT.source.replace("int k = 0; k < K; ++k", header)
    answer = loop_fact(Case(source, cases.GEMM_NT.workload), "trip_count", axes=SIZES)
    assert isinstance(answer, Missing) if trips is None else value(answer) == trips


def test_a_trip_count_without_an_axis_comes_from_a_traced_launch() -> None:
    case = body(
        " for (int k = 0; k < m; ++k) y[i] += x[k];",
        "global const float *x, global float *y, int m",
    )
    kernel = kernel_of(case.files())
    bare = OpenCL().analyse(dataclasses.replace(kernel), None, POCL)
    loop = bare.anchors("(for_statement) @loop")[0]["loop"]
    unknown = bare.call("trip_count", loop, None)
    assert isinstance(unknown, Missing)
    assert "klineage gate" in unknown.supply
    trace = trace_of(kernel)
    passed = {**trace.arguments, "m": ArgumentTrace("scalar", "int32", value=12)}
    traced = OpenCL().analyse(kernel, None, POCL, (dataclasses.replace(trace, arguments=passed),))
    assert value(traced.call("trip_count", loop, None)) == 12


def test_constant_trips_are_those_written_in_the_source() -> None:
    assert value(loop_fact(cases.BLUR, "constant_trip")) is True
    assert value(loop_fact(cases.GEMM_NT, "constant_trip")) is False


def test_what_is_written_and_what_only_read() -> None:
    analysis = analysis_of(cases.SGEMM)
    assert value(analysis.call("written", ("C",), None)) is True
    assert value(analysis.call("never_written", ("A",), None)) is True
    assert isinstance(analysis.call("written", ("alpha",), None), Missing)


def test_a_pointer_that_is_not_followed_leaves_writes_unknown() -> None:
    case = body(" global float *p = y; p += i; *p = x[i];")
    answer = analysis_of(case).call("written", ("y",), None)
    assert isinstance(answer, Missing)
    assert answer.supply == "index the parameter directly"


def test_overlap_is_known_from_traces_only() -> None:
    untraced = analysis_of(cases.SGEMM).call("disjoint", (), None)
    assert isinstance(untraced, Missing)
    assert "klineage gate" in untraced.supply
    assert value(analysis_of(cases.SGEMM, traced=True).call("disjoint", (), None)) is True
    touching = target_of(cases.SGEMM.files(), overlaps=("C",)).analysis.call("disjoint", (), None)
    assert touching == Known(False, "traced: A overlaps C")


def test_a_bound_comes_from_the_guard_or_from_an_exact_launch() -> None:
    guarded = analysis_of(cases.SGEMM)
    assert guarded.call("bounded", (0,), None) == Known(True, "line 7: n < N")
    exact = analysis_of(cases.GEMM_BIAS).call("bounded", (1,), None)
    assert isinstance(exact, Known)
    assert 'axes["M"]' in exact.because
    assert value(exact) is True


def test_ranges_are_evaluated_at_each_shape() -> None:
    analysis = analysis_of(cases.BLUR)
    assert value(analysis.call("global_size", (0,), {"H": 19, "W": 37})) == 40
    assert value(analysis.call("global_divides", (0, 16), {"H": 19, "W": 37})) is False
    assert value(analysis.call("global_divides", (0, 16), {"H": 32, "W": 48})) is True
    named = cases.BLUR.files()
    named["workload.py"] = named["workload.py"].replace(
        b'    return {"global": ((axes["W"]', b'    W = axes["W"]\n    return {"global": ((W'
    )
    assert value(target_of(named).analysis.call("global_size", (0,), {"H": 1, "W": 9})) == 16


def test_an_unwritten_launch_leaves_ranges_missing() -> None:
    files = cases.SGEMM.files()
    files["workload.py"] = files["workload.py"].replace(b"return {", b"found = {")
    analysis = target_of(files).analysis
    for name, arguments in (("global_size", (0,)), ("local_size_given", ()), ("launch_dim", (0,))):
        answer = analysis.call(name, arguments, SIZES)
        assert isinstance(answer, Missing)
        assert "global" in answer.supply


def test_dependence_goes_through_variables_conditions_and_arrays() -> None:
    indices = analysis_of(
        body(
            " float a = x[i], b = 0, c[2], d; int e = 3;\n"
            " if (a > 0) b = 1;\n c[0] = b;\n d = c[1];\n e += 1;\n y[j] = d + e;"
        )
    ).indices
    assert indices.dependent("get_global_id(0)") == {"i", "a", "b", "c", "d"}
    assert indices.dependent("get_global_id(1)") == {"j"}


def test_a_guard_does_not_make_everything_depend_on_the_id() -> None:
    indices = analysis_of(cases.SGEMM).indices
    assert "sum" in indices.dependent("get_global_id(0)")
    assert "k" not in indices.dependent("get_global_id(0)")


def test_facts_that_do_not_exist_and_wrong_arguments_are_missing_not_errors() -> None:
    analysis = analysis_of(cases.SGEMM)
    for name, arguments in (("warp_size", ()), ("bounded", ()), ("trip_count", (1, 2, 3))):
        answer = analysis.call(name, arguments, None)
        assert isinstance(answer, Missing)
        assert "docs/opencl.md" in answer.supply


def test_group_dependence_is_seen_in_helpers_too() -> None:
    helped = Case(
        "float h(void) { return get_local_id(0); }\n" + cases.SAXPY.source.replace("a *", "h() *"),
        cases.SAXPY.workload,
    )
    answer = analysis_of(helped).call("uses_group", (), None)
    assert answer == Known(True, "a helper calls get_local_id")


def test_an_array_that_a_helper_fills_depends_on_what_the_helper_is_given() -> None:
    source = cases.GEMV.source.replace(
        "const __global float* A", "const __global float* A", 1
    ).replace("    float sum = 0;", "    float sum = 0, t[2];\n    fill(A[row*K], t);")
    pre = "void fill(float v, float *t) { t[0] = t[1] = v; }\n"
    analysis = analysis_of(Case(pre + source, cases.GEMV.workload))
    assert "t" in analysis.indices.dependent("get_global_id(0)")

"""Kernels that look right for a card and are not: a condition says so, or the transform refuses."""

from __future__ import annotations

from collections.abc import Callable

import opencl_cases as cases
import pytest
from opencl_builders import Case, applying, refusal, target_of

GUARDED = "    if (row >= M || col >= N)\n        return;\n"


def edited(case: Case, *changes: tuple[str, str], workload: tuple[str, str] = ("", "")) -> Case:
    source = case.source
    for before, after in changes:
        assert before in source, before
        source = source.replace(before, after)
    assert workload[0] in case.workload
    return Case(source, case.workload.replace(*workload) if workload[0] else case.workload)


NT = cases.GEMM_NT
ROWS = [
    ("needs an atomic", edited(NT, ("C[row * N + col] = acc;", "atomic_add(&C[row * N + col], 1);")), "no-atomics"),
    ("loop ends at the row", edited(NT, ("k < K", "k <= row")), "uniform-over-rows"),
    ("leaves at some rows", edited(NT, ("    float acc", "    if (row == 3) return;\n    float acc")), "uniform-over-rows"),
    ("nothing is shared", edited(NT, ("B[col * K + k]", "B[(row * N + col) * K + k]")), "shared-load"),
    ("no loop", edited(cases.SCALE_SWAPPED), "sums"),
    ("waits at a barrier", edited(NT, ("    C[row", "    barrier(CLK_GLOBAL_MEM_FENCE);\n    C[row")), "no-groups"),
    ("asks for its local id", edited(NT, ("= acc;", "= acc + get_local_id(0);")), "no-groups"),
    ("fixed work-group", edited(NT, ("__kernel void", "__kernel __attribute__((reqd_work_group_size(8, 8, 1))) void")), "no-groups"),
    ("launch gives groups", edited(NT, workload=('axes["M"])}', 'axes["M"]), "local": (1, 1)}')), "driver-chooses-groups"),
    ("no guard over a padded range", edited(NT, (GUARDED, ""), workload=('axes["M"])', '(axes["M"] + 7) // 8 * 8)')), "row-bounded"),
    ("row changes", edited(NT, ("    float acc", "    row += 1;\n    float acc")), "one-row"),
    ("row asked for twice", edited(NT, ("C[row * N", "C[get_global_id(1) * N")), "one-row"),
    ("launch is computed", edited(NT, workload=('return {"global"', 'shape = {"global"')), "launch-written"),
    ("stores one element for all", edited(NT, ("C[row * N + col] = acc", "C[col] = acc")), "stores to one element"),
    ("macro hides a variable", edited(NT, ("\n__kernel", "\n#define HERE C[row * N + col]\n__kernel"), ("    C[row * N + col] =", "    HERE =")), "no-hidden-code"),
    ("macro hides a return", edited(NT, ("\n__kernel", "\n#define STOP(c) if (c) return\n__kernel"), ("    float acc", "    STOP(col > 99);\n    float acc")), "no-hidden-code"),
    ("helper stores", edited(NT, ("\n__kernel", "\nfloat put(__global float *c) { *c = 1.0f; return 0.0f; }\n__kernel"), ("    float acc = 0.0f;", "    float acc = 0.0f;\n    float seen = put(&C[row * N + col]);")), "may store"),
    ("stores through a pointer that moves", edited(NT, ("    C[row", "    __global float *c = C;\n    c += row * N + col;\n    *c = 0.0f;\n    C[row")), "not followed"),
    ("launch serves two kernels", edited(NT, ("\n__kernel", "\n__kernel void g(__global float *C) { C[0] = 1.0f; }\n\n__kernel")), "launch-written"),
    ("while loop", edited(NT, ("    float acc", "    while (K > 9) K--;\n    float acc")), "uniform-over-rows"),
    ("bounds columns by the row", edited(NT, ("row >= M || col >= N", "row >= M || col >= row")), "uniform-over-rows"),
    ("two guards on the row", edited(NT, ("    if (row >= M ||", "    if (row >= M - 5)\n        return;\n    if (row >= M ||")), "uniform-over-rows"),
    ("bound changes", edited(NT, ("    float acc", "    M = 1;\n    float acc")), "row-bounded"),
    ("bound is shadowed", edited(NT, ("    C[row", "    for (int i = 0; i < 1; ++i) { int M = 1; acc += M; }\n    C[row")), "row-bounded"),
    ("launch leaves rows out", edited(NT, workload=('axes["M"])}', 'axes["M"] // 2)}')), "row-bounded"),
    ("counts backwards", edited(NT, ("row = get_global_id(1)", "row = M - 1 - (int)(get_global_id(1))")), "one-row"),
    ("dimension by a name", edited(NT, ("\n__kernel", "\n#define ROWS 1\n__kernel"), ("= acc;", "= acc + get_global_id(ROWS);")), "one-row"),
    ("dimension with a suffix", edited(NT, ("= acc;", "= acc + get_global_id(1u);")), "one-row"),
    ("counts inside an index", edited(NT, ("    float acc", "    int i = 0;\n    float acc"), ("A[row * K + k]", "A[row * K + i++]")), "i++ would be done"),
    ("scales inside the term", edited(NT, ("    float acc", "    float g = 1.0f;\n    float acc"), ("B[col * K + k]", "B[col * K + k] * (g *= 0.9f)")), "would be done"),
]  # fmt: skip
COLUMNS = [
    ("a column apart", NT, "contiguous-lanes"),
    ("gather", edited(cases.SAXPY, ("x[i]", "x[(int)x[i]]")), "contiguous-lanes"),
    ("every other element", edited(cases.SAXPY, ("x[i]", "x[2 * i]")), "contiguous-lanes"),
    ("backwards", edited(cases.SAXPY, ("x[i]", "x[n - 1 - i]")), "contiguous-lanes"),
    ("uses the column as a number", edited(cases.SAXPY, ("a * x", "(float)i * x")), "not written for lanes"),
    ("chooses lane by lane", edited(cases.SAXPY, ("a * x[i]", "(x[i] > 0 ? a : 0.0f)")), "not written for lanes"),
    ("branches lane by lane", edited(cases.SAXPY, ("\ty[i] +=", "\tif (x[i] > 0.0f) y[i] +=")), "uniform-over-columns"),
    ("helper of its own", edited(cases.SAXPY, ("kernel void", "float h(float v) { return v; }\nkernel void"), ("a * x[i]", "h(x[i])")), "not known to work lane by lane"),
    ("changes what outlives a column", edited(cases.SAXPY, ("\ty[i]", "\tfloat s = x[i];\n\ta *= 2.0f;\n\ty[i]")), "outlives a column"),
    ("mixed types", edited(cases.SAXPY, ("global const float *x", "global const int *x")), "one-element-type"),
    ("declares another index with the column", edited(cases.SAXPY, ("int i = get_global_id(0);", "int i = get_global_id(0), j = i + 0;"), ("y[i]", "y[j]")), "declares j together"),
    ("wraps at 256", edited(cases.SAXPY, ("x[i]", "x[(unsigned char)(i + 5)]")), "contiguous-lanes"),
    ("bounded by itself", edited(cases.SAXPY, ("if (i >= n)", "if (i >= n - i)")), "uniform-over-columns"),
    ("changes a scalar argument", edited(cases.SAXPY, ("\ty[i]", "\ta = x[i];\n\ty[i]")), "outlives a column"),
]  # fmt: skip
ROW = [
    ("down a column", edited(cases.GEMV, ("A[row*K + k]", "A[k*M + row]")), "contiguous"),
    ("stops early", edited(cases.GEMV, ("      sum +=", "      if (sum > 9.0f) break;\n      sum +=")), "independent"),
    ("uses the sum so far", edited(cases.GEMV, ("x[k];", "x[k];\n      y[row] = sum;")), "independent"),
    ("steps by two", edited(cases.GEMV, ("k++", "k += 2")), "counted"),
    ("starts later", edited(cases.GEMV, ("int k = 0", "int k = 1")), "counted"),
    ("no tolerance for a sum", edited(cases.GEMV, workload=("TOLERANCE = {'atol': 1e-4, 'rtol': 1e-4}", "")), "order"),
    ("short", edited(cases.GEMV, ("k < K", "k < 8")), "long"),
    ("unrolled", edited(cases.GEMV, ("    for (", "#pragma unroll 4\n    for (")), "scalar"),
    ("exact", edited(cases.GEMV, workload=("'atol': 1e-4, 'rtol': 1e-4", "'atol': 0.0, 'rtol': 0.0")), "order"),
    ("scales inside the term", edited(cases.GEMV, ("float sum = 0;", "float sum = 0, g = 1;"), ("x[k]", "x[k] * (g *= 0.9f)")), "independent"),
    ("a ring of 256", edited(cases.GEMV, ("      sum +=", "      uchar slot = row + k;\n      sum +="), ("x[k]", "x[slot]")), "contiguous"),
    ("private array", edited(cases.GEMV, ("float sum = 0;", "float sum = 0, t[4];"), ("      sum +=", "      t[k % 4] = 0;\n      sum +=")), "independent"),
]  # fmt: skip
STRIDE = [
    ("is right already", NT, ""),
    ("a transpose has both", edited(cases.SCALE_SWAPPED, ("* x[row * W + col]", "* x[col * H + row]")), "provides"),
    ("fixed work-group", edited(cases.SCALE_SWAPPED, ("__kernel void", "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void")), "no-fixed-group"),
    ("dimension in a helper", edited(cases.SCALE_SWAPPED, ("__kernel", "int d(void) { return get_global_id(0); }\n__kernel"), ("3.0f *", "d() * 0.0f + 3.0f *")), "dimensions-in-sight"),
    ("scans a group", edited(cases.SCALE_SWAPPED, ("3.0f *", "work_group_scan_inclusive_add(1.0f) *")), "dimensions-in-sight"),
    ("one dimension", cases.GEMV, ""),
    ("launch is computed", edited(cases.SCALE_SWAPPED, workload=('return {"global"', 'shape = {"global"')), "launch-written"),
]  # fmt: skip
UNROLL = [
    ("while loop", edited(cases.GEMV, ("for (int k = 0; k < K; k++)", "int k = 0; while (k++ < K - 1)")), "anchor"),
    ("short", edited(cases.GEMV, ("k < K", "k < 4")), "long"),
    ("unrolled", edited(cases.GEMV, ("    for (", "#pragma unroll 4\n    for (")), "not-unrolled"),
    ("hinted by attribute", edited(cases.GEMV, ("    for (", "    __attribute__((opencl_unroll_hint(2)))\n    for (")), "not-unrolled"),
    ("waits at a barrier", edited(cases.GEMV, ("      sum +=", "      barrier(CLK_LOCAL_MEM_FENCE);\n      sum +=")), "no-barrier"),
    ("counts down", edited(cases.GEMV, ("int k = 0; k < K; k++", "int k = K - 1; k >= 0; k--")), "counted"),
    ("changes its bound", edited(cases.GEMV, ("      sum +=", "      if (sum > 9.0f) K = 0;\n      sum +="), ("const int K", "int K")), "counted"),
]  # fmt: skip
STAGE = [
    ("B is transposed", NT, "matrix-product"),
    ("starts from C", edited(cases.GEMM_ALPHA, ("float s = 0;", "float s = C[m*N + n];")), "matrix-product"),
    ("guard is a block", cases.SGEMM, "guard-returns"),
    ("launch gives groups", edited(cases.GEMM_ALPHA, workload=('axes["M"])}', 'axes["M"]), "local": (1, 1)}')), "driver-chooses-groups"),
    ("ends at the row", edited(cases.GEMM_ALPHA, ("k < K", "k < m")), "matrix-product"),
    ("starts at one", edited(cases.GEMM_ALPHA, ("int k = 0", "int k = 1")), "matrix-product"),
    ("below the diagonal", edited(cases.GEMM_ALPHA, ("n >= N", "n >= m")), "matrix-product"),
    ("three dimensions", edited(cases.GEMM_ALPHA, workload=('axes["M"])}', 'axes["M"], 1)}')), "launch-written"),
    ("two sums", edited(cases.GEMM_ALPHA, ("    float s = 0;", "    float s = 0;\n    float t = 0;"), ("        s +=", "        t += 1, s +=")), "matrix-product"),
    ("a filter", cases.BLUR, "matrix-product"),
]  # fmt: skip
NATIVE = [
    ("no tolerance", edited(cases.SIGMOID, workload=("TOLERANCE = {'atol': 1e-4, 'rtol': 1e-4}", "")), "tolerance"),
    ("a strict tolerance", edited(cases.SIGMOID, workload=("'rtol': 1e-4", "'rtol': 1e-7")), "tolerance"),
    ("double", edited(cases.SIGMOID, ("const float *x", "const double *x")), "single-precision"),
    ("nothing to replace", cases.SAXPY, "precise-calls"),
]  # fmt: skip
OUTPUTS = [
    ("columns are coalesced", edited(cases.GEMV, ("A[row*K + k]", "A[k*M + row]")), "not-coalesced"),
    ("two dimensions", NT, "one-dimension"),
    ("no guard over a padded range", edited(cases.DISTANCE, ("    if (p >= P)\n        return;\n", ""), workload=('(axes["P"],)', '((axes["P"] + 7) // 8 * 8,)')), "output-bounded"),
    ("walks only its own row", edited(cases.DISTANCE, (" - centre[d]", "")), "shared-load"),
]  # fmt: skip

ALL = [
    *((f"coarsen-rows-{n}", *miss) for n in (4, 8) for miss in ROWS),
    *((f"vector-columns-{n}", *miss) for n in (8, 16) for miss in COLUMNS),
    *(("vector-row-8", *miss) for miss in ROW),
    *(("unit-stride", *miss) for miss in STRIDE),
    *(("unroll-4", *miss) for miss in UNROLL),
    *(("stage-local-16", *miss) for miss in STAGE),
    *(("native-math", *miss) for miss in NATIVE),
    *(("coarsen-outputs-4", *miss) for miss in OUTPUTS),
]


@pytest.mark.parametrize(
    ("name", "case", "because"),
    [(name, case, because) for name, _, case, because in ALL],
    ids=[f"{name}: {what}" for name, what, _, _ in ALL],
)
def test_a_near_miss_is_refused(name: str, case: Case, because: str) -> None:
    assert because in refusal(name, target_of(case.files()))


def test_only_the_loops_that_carry_nothing_are_vectorized() -> None:
    last = "(x[r * D + j] - mean) * inv * gamma[j]"
    prefix_sum = edited(cases.LAYERNORM, (last, "y[r * D + j - 1] + x[r * D + j]"))
    assert len(applying("vector-row-8", target_of(cases.LAYERNORM.files()))) == 3
    assert len(applying("vector-row-8", target_of(prefix_sum.files()))) == 2


RESTRICT: list[tuple[str, Callable[[], str], str]] = [
    ("untraced", lambda: refusal("restrict", target_of(cases.SGEMM.files(), traced=False)), "disjoint"),
    ("overlapping", lambda: refusal("restrict", target_of(cases.SGEMM.files(), overlaps=("B",))), "disjoint"),
    ("one pointer", lambda: refusal("restrict", target_of(edited(cases.SIGMOID, ("__global const float *x, ", ""), ("x[i]", "y[i]")).files())), "several-pointers"),
    ("all restrict", lambda: refusal("restrict", target_of(cases.ROW_RANGE.files())), "provides"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("ask", "because"), [(a, b) for _, a, b in RESTRICT], ids=[n for n, _, _ in RESTRICT]
)
def test_restrict_is_not_promised_without_proof(ask: Callable[[], str], because: str) -> None:
    assert because in ask()


def test_a_store_that_may_alias_blocks_a_vector_loop_until_a_launch_is_traced() -> None:
    files = cases.LAYERNORM.files()
    assert len(applying("vector-row-8", target_of(files, traced=True))) == 3
    assert len(applying("vector-row-8", target_of(files, traced=False))) == 2

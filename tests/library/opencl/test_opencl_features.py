"""The state of a kernel: which features its source shows."""

from __future__ import annotations

from pathlib import Path

import opencl_cases as cases
import pytest
from opencl_builders import Case, applied, target_of

import sample_kernels.gemm
from library.target import Layer, Presence, Target

SAMPLES = Path(next(iter(sample_kernels.gemm.__path__))).parent
EMPTY = cases.SAXPY.workload


def sample(folder: str, name: str) -> Target:
    at = SAMPLES / folder / "opencl"
    files = {f"{name}.cl": (at / f"{name}.cl").read_bytes()}
    files["workload.py"] = (at / "workload.py").read_bytes()
    return target_of(files, name, path=f"{name}.cl")


def present(target: Target) -> set[str]:
    return {f.id for f in target.analysis.features if f.presence is Presence.PRESENT}


def test_the_naive_gemm_has_what_a_first_version_has() -> None:
    assert present(sample("gemm", "gemm_naive")) == {"F04", "F08"}


def test_the_expert_gemm_shows_its_features() -> None:
    shown = present(sample("gemm", "gemm_expert"))
    assert {"F03", "F04", "F05", "F08", "F24", "F26", "F29"} <= shown


def test_the_expert_softmax_shows_its_features() -> None:
    naive, expert = (
        present(sample("row_softmax", "softmax_naive")),
        present(sample("row_softmax", "softmax_expert")),
    )
    assert "F03" not in naive
    assert {"F03", "F08", "F24", "F26"} <= expert


SNIPPETS = {
    "F01": "for (int t = 0; t < n; t += 16) for (int u = t; u < t + 16; ++u) y[u] = 0;",
    "F02": "local float t[8]; t[0] = a; barrier(CLK_LOCAL_MEM_FENCE); y[0] = t[0];",
    "F03": "float4 v = vload4(0, x); y[0] = v.x;",
    "F05": "float p = 0, q = 0; for (int k = 0; k < n; ++k) { p += x[k] * a; q += y[k] * a; } y[0] = p + q;",
    "F08": "float p = 0; for (int k = 0; k < n; ++k) p += x[k]; y[0] = p;",
    "F14": "int tile = get_group_id(0) % 4; y[tile] = 0;",
    "F20": "y[0] = work_group_reduce_add(a);",
    "F25": "y[get_global_id(0)] = a;",
    "F27": "prefetch(x, 16); y[0] = a;",
    "F28": "y[0] = native_exp(a);",
    "F29": "#pragma unroll 2\nfor (int k = 0; k < n; ++k) y[k] = a;",
}


@pytest.mark.parametrize("feature", SNIPPETS)
def test_a_feature_is_seen_where_it_is(feature: str) -> None:
    head = "kernel void f(global const float *x, global float *y, float a, int n) {\n"
    shown = present(target_of(Case(head + SNIPPETS[feature] + "\n}\n", EMPTY).files()))
    assert feature in shown
    others = {"F25", "F08"} if feature != "F25" else {"F04"}
    assert shown - {feature} <= others | ({"F24"} if feature == "F29" else set())


def test_a_sum_beside_a_sum_of_squares_is_no_register_block() -> None:
    source = (
        "kernel void f(global const float *x, global float *y, float a, int n) {\n"
        "float s = 0, q = 0; for (int k = 0; k < n; ++k) { s += x[k]; q += x[k] * x[k]; }\n"
        "y[0] = q - s * s;\n}\n"
    )
    assert "F05" not in present(target_of(Case(source, EMPTY).files()))


def test_restrict_macros_and_group_sizes_are_features_of_the_whole() -> None:
    source = (
        "#define WIDTH 8\n__attribute__((reqd_work_group_size(8, 1, 1)))\n"
        "kernel void f(global const float *restrict x, global float *__restrict y, float a, int n)"
        " { if (get_global_id(0) < n) y[0] = x[WIDTH]; }\n"
    )
    assert present(target_of(Case(source, EMPTY).files())) == {"F24", "F26", "F31"}


def test_every_row_says_what_was_seen_or_why_not() -> None:
    features = target_of(cases.SGEMM.files()).analysis.features
    assert all(feature.detail and feature.layer is Layer.SOURCE for feature in features)
    matrix = next(feature for feature in features if feature.id == "F06")
    assert matrix.presence is Presence.ABSENT
    assert "no matrix multiply" in matrix.detail


def test_a_card_provides_the_feature_it_says() -> None:
    for name, case, feature in [
        ("coarsen-rows-4", cases.SGEMM, "F05"),
        ("vector-columns-8", cases.SGEMM, "F03"),
        ("stage-local-16", cases.GEMM_ALPHA, "F02"),
        ("restrict", cases.SGEMM, "F26"),
        ("native-math", cases.SIGMOID, "F28"),
        ("unit-stride", cases.SCALE_SWAPPED, "F04"),
    ]:
        before = target_of(case.files())
        assert feature not in present(before)
        assert feature in present(target_of(applied(name, before)))


def test_a_locus_points_at_what_was_seen() -> None:
    target = sample("gemm", "gemm_expert")
    vectors = next(f for f in target.analysis.features if f.id == "F03")
    assert vectors.locus is not None
    data = target.kernel.file("gemm_expert.cl").data
    assert data[vectors.locus.start : vectors.locus.end] == b"float16"
    assert data[: vectors.locus.start].count(b"\n") + 1 == vectors.locus.line

"""Each shipped OpenCL card on kernels it was not written for, run on a real device."""

from __future__ import annotations

import numpy as np
import opencl_cases as cases
import pytest
from opencl_builders import Case, Device, applied, applying, shapes_of, target_of

FIRES = [
    ("coarsen-rows-4", cases.SGEMM),
    ("coarsen-rows-8", cases.SGEMM),
    ("coarsen-rows-4", cases.BLUR),
    ("coarsen-rows-8", cases.BLUR),
    ("coarsen-rows-4", cases.GEMM_NT),
    ("coarsen-rows-8", cases.GEMM_NT),
    ("coarsen-rows-4", cases.OWN_ARRAYS),
    ("coarsen-rows-4", cases.SHARED_LOADS),
    ("coarsen-outputs-4", cases.GEMV),
    ("coarsen-outputs-4", cases.DISTANCE),
    ("vector-columns-8", cases.SGEMM),
    ("vector-columns-16", cases.SGEMM),
    ("vector-columns-8", cases.GEMM_BIAS),
    ("vector-columns-16", cases.GEMM_BIAS),
    ("vector-columns-8", cases.SAXPY),
    ("vector-columns-16", cases.SIGMOID),
    ("vector-columns-8", cases.BLUR),
    ("vector-row-8", cases.LAYERNORM),
    ("vector-row-8", cases.ROW_RANGE),
    ("vector-row-8", cases.GEMV),
    ("vector-row-8", cases.GEMM_NT),
    ("unit-stride", cases.SCALE_SWAPPED),
    ("unit-stride", cases.GROUPS_SWAPPED),
    ("unroll-4", cases.GEMV),
    ("unroll-4", cases.SGEMM),
    ("restrict", cases.SAXPY),
    ("restrict", cases.SGEMM),
    ("stage-local-16", cases.GEMM_BIAS_GUARDED),
    ("stage-local-16", cases.GEMM_ALPHA),
    ("native-math", cases.SIGMOID),
    ("native-math", cases.DISTANCE),
]


def agree(device: Device, case: Case, before: dict[str, bytes], after: dict[str, bytes]) -> None:
    for axes in shapes_of(before):
        expected = device.run(before, axes, case.entry)
        actual = device.run(after, axes, case.entry)
        for name, array in expected.items():
            np.testing.assert_allclose(actual[name], array, rtol=2e-4, atol=2e-4, err_msg=str(axes))


def name_of(case: Case) -> str:
    return next(name for name, value in vars(cases).items() if value is case)


@pytest.mark.parametrize(("name", "case"), FIRES, ids=[f"{n}-{name_of(c)}" for n, c in FIRES])
def test_a_card_fires_and_the_kernel_still_computes_the_same(
    device: Device, name: str, case: Case
) -> None:
    target = target_of(case.files(), case.entry)
    assert applying(name, target)
    for which in range(len(applying(name, target))):
        after = applied(name, target, which)
        assert after != case.files()
        agree(device, case, case.files(), after)


CHAINS = [
    (["coarsen-rows-4", "vector-columns-8"], cases.SGEMM),
    (["vector-columns-8", "coarsen-rows-4"], cases.SGEMM),
    (["coarsen-rows-8", "vector-columns-16"], cases.GEMM_BIAS),
    (["vector-columns-16", "coarsen-rows-8"], cases.GEMM_BIAS),
    (["coarsen-rows-4", "vector-columns-8", "restrict"], cases.BLUR),
    (["unit-stride", "vector-columns-8"], cases.SCALE_OPEN),
    (["vector-row-8"] * 3 + ["native-math", "restrict"], cases.LAYERNORM),
    (["coarsen-outputs-4", "unroll-4"], cases.GEMV),
    (["unroll-4", "coarsen-rows-4", "vector-columns-8"], cases.SGEMM),
]


@pytest.mark.parametrize(
    ("names", "case"), CHAINS, ids=[f"{'+'.join(n)}-{name_of(c)}" for n, c in CHAINS]
)
def test_cards_apply_one_after_the_other(device: Device, names: list[str], case: Case) -> None:
    files = case.files()
    for name in names:
        files = applied(name, target_of(files, case.entry))
        agree(device, case, case.files(), files)


def test_a_card_whose_feature_is_there_is_not_offered_again() -> None:
    once = applied("coarsen-rows-4", target_of(cases.SGEMM.files()))
    assert not applying("coarsen-rows-4", target_of(once))
    assert not applying("coarsen-rows-8", target_of(once))
    wide = applied("vector-columns-8", target_of(cases.SGEMM.files()))
    assert not applying("vector-columns-16", target_of(wide))
    walked = cases.LAYERNORM.files()
    for left in (2, 1, 0):
        walked = applied("vector-row-8", target_of(walked))
        assert len(applying("vector-row-8", target_of(walked))) == left


def test_an_edit_leaves_everything_else_as_it_was() -> None:
    files = cases.SGEMM.files()
    files["k.cl"] = (
        b"// a head note\n" + files["k.cl"] + b"\n\nint unrelated(int x) { return  x ; }\n"
    )
    after = applied("vector-columns-8", target_of(files))
    assert after["k.cl"].startswith(b"// a head note\n\nkernel void f(const int M")
    assert after["k.cl"].endswith(b"\n\nint unrelated(int x) { return  x ; }\n")
    changed = set(after["workload.py"].splitlines()) ^ set(files["workload.py"].splitlines())
    assert all(b"global" in line for line in changed)


def test_a_load_that_rows_share_is_made_once_and_no_load_that_might_not_be_made() -> None:
    after = applied("coarsen-rows-4", target_of(cases.SHARED_LOADS.files()))["k.cl"].decode()
    body = after[after.index("for (int t") : after.index("C[row * N")]
    assert body.count("w[pick[t]]") == 1
    assert body.count("t > 0 ? w[t - 1] : 0.0f") == 4
    assert body.count(" = w[u];") == 2

"""Torch tensors on their way from a workload to a kernel and back."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from gate.worker.arrays import read_array, to_float64, write_array
from gate.worker.comparison import compare
from gate.worker.distributions import NAMES, redraw
from gate.worker.oracle import Oracle
from gate.worker.values import in_form_of, redrawn, to_input, widened

torch = pytest.importorskip("torch", reason="torch is not installed here")

WORKLOAD = """\
import torch

SHAPES = [{"rows": 3, "cols": 4}]


def make_inputs(rows=3, cols=4, seed=0, device="cpu"):
    draw = torch.Generator().manual_seed(seed)
    return {"x": torch.randn(cols, rows, generator=draw).to(device, torch.bfloat16).T}


def torch_ref(x):
    return x.float().softmax(-1).to(x.dtype)
"""


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int32"])
def test_dtypes_and_strides_cross(name: str, tmp_path: Path) -> None:
    value = torch.arange(-6, 6).reshape(3, 4).to(getattr(torch, name)).T

    tensor = to_input("x", value)
    write_array(tmp_path / "a", tensor)
    back = read_array(tmp_path / "a")

    assert back.dtype == name
    assert back.array.strides == (back.array.itemsize, 4 * back.array.itemsize)
    assert np.array_equal(to_float64(back), value.double().numpy())
    assert torch.equal(in_form_of(back, value).double(), value.double())


def test_a_redrawn_tensor_keeps_dtype_and_layout() -> None:
    value = torch.randn(4, 6, dtype=torch.float16).T

    redrew = redrawn({"x": value, "n": 3}, "shifted", 1)

    assert redrew is not None
    assert redrew["x"].dtype == torch.float16
    assert redrew["x"].stride() == value.stride()
    assert redrew["n"] == 3
    assert redrawn({"i": torch.arange(3)}, "shifted", 1) is None


def test_only_floats_are_widened() -> None:
    assert widened(torch.ones(2, dtype=torch.bfloat16)).dtype == torch.float64
    assert widened(torch.ones(2, dtype=torch.int32)).dtype == torch.int32


def test_the_oracle_judges_bfloat16(tmp_path: Path) -> None:
    (tmp_path / "w.py").write_text(WORKLOAD)
    oracle = Oracle()
    path = str(tmp_path / "w.py")
    loaded = oracle.load({"path": path, "data": path, "root": str(tmp_path)})
    case = {"axes": {"rows": 3, "cols": 4}, "seed": 5, "distribution": "normal"}
    case |= {"slot": 0, "keep": []}

    made = oracle.case({**case, "folder": str(tmp_path / "inputs")})

    assert loaded["reference"] == "torch"
    assert made["outputs"] == [
        {"name": "output", "dtype": "bfloat16", "shape": [3, 4], "bytes": 24}
    ]
    assert oracle.controls({"slot": 0}) == {"fooled_by": []}

    right = torch.softmax(
        in_form_of(
            read_array(tmp_path / "inputs" / "0.bin"), torch.ones(1, dtype=torch.bfloat16)
        ).float(),
        -1,
    )
    for factor, passed in ((1.0, True), (1.1, False)):
        output = to_input("output", (right * factor).to(torch.bfloat16))
        write_array(tmp_path / "out", output)
        outputs = [{"name": "output", "file": str(tmp_path / "out")}]
        judged = oracle.judge({"slot": 0, "outputs": outputs, "original": True})
        assert judged["passed"] is passed


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float8_e5m2])
def test_torch_and_numpy_compare_alike(dtype: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gate.worker.comparison.CHUNK", 7)
    exact = torch.linspace(-3.0, 3.0, 40, dtype=torch.float64).reshape(5, 8)
    moved = exact.clone()
    moved[3, 1] *= 2.0
    actual = moved.to(dtype)
    tensor = to_input("y", actual)

    torchs, numpys = (
        compare("y", tensor, expected, tensor.dtype, None) for expected in (exact, exact.numpy())
    )

    assert torchs.wrong == numpys.wrong == 1
    assert torchs.first == numpys.first
    assert torchs.first.startswith("y[3, 1] = ")
    assert torchs.error == pytest.approx(numpys.error)
    assert torchs.max_abs == pytest.approx(numpys.max_abs)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_tensor_with_odd_numbers_equals_only_its_like(odd: float) -> None:
    exact = torch.tensor([odd, 1.0, 2.0], dtype=torch.float64)
    like, unlike = torch.tensor([odd, 1.0, 2.0]), torch.tensor([0.0, 1.0, 2.0])

    assert compare("y", to_input("y", like), exact, "float32", None).wrong == 0
    assert compare("y", to_input("y", unlike), exact, "float32", None).wrong == 1


@pytest.mark.parametrize("name", NAMES)
def test_tensors_are_redrawn_as_arrays_are(name: str) -> None:
    values = torch.randn(50, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(3))

    tensor, again = redraw(values, name, 5), redraw(values, name, 5)
    array = redraw(values.numpy(), name, 5)

    assert torch.equal(tensor, again)
    if name == "wide":  # drawn by another generator: from the same powers of two
        powers = {math.log2(ratio) for ratio in (tensor / values).flatten().tolist()}
        assert powers == {float(power) for power in range(-6, 7)}
    else:
        np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-12)

"""Torch tensors on their way from a workload to a kernel and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gate.worker.arrays import read_array, to_float64, write_array
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

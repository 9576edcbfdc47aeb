"""The pieces inside a worker, called directly."""

from __future__ import annotations

import ctypes
import math
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.worker.arrays import read_array, read_arrays, to_float64, write_array, write_arrays
from gate.worker.comparison import compare, within_budget
from gate.worker.distributions import NAMES, redraw
from gate.worker.framing import MAX_FRAME_BYTES, Decoder, FrameTooLong, encode
from gate.worker.languages import Tensor
from gate.worker.languages.opencl_launch import read_launch
from gate.worker.pocl_cpu import built_for_host, level_of, name_host_cpu
from gate.worker.problems import EnvironmentProblem, kind_of
from gate.worker.workload_module import WorkloadModule


@given(st.lists(st.dictionaries(st.text(), st.integers())), st.integers(1, 50))
def test_frames_survive_any_split(messages: list[dict[str, object]], step: int) -> None:
    stream = b"".join(encode(message) for message in messages)
    decoder = Decoder()

    bodies = [
        body
        for start in range(0, len(stream), step)
        for body in decoder.feed(stream[start : start + step])
    ]

    assert [encode(message)[4:] for message in messages] == bodies


def test_a_frame_that_announces_too_much_is_refused() -> None:
    with pytest.raises(FrameTooLong, match=str(MAX_FRAME_BYTES)):
        Decoder().feed(b"\xff\xff\xff\xff")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint64", "bool", "float16"])
def test_arrays_cross_unchanged(dtype: str, tmp_path: Path) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)

    write_array(tmp_path / "a", Tensor(dtype, array))
    back = read_array(tmp_path / "a")

    assert back.dtype == dtype
    assert np.array_equal(back.array, array)


@pytest.mark.parametrize(
    "view",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0)[::3],
        np.broadcast_to(np.float64(3), (4, 2)),
        np.zeros((0, 3)),
        np.array(1.5),
    ],
)
def test_strides_survive(view: np.ndarray, tmp_path: Path) -> None:
    write_array(tmp_path / "a", Tensor("float64", view))
    back = read_array(tmp_path / "a").array

    assert back.strides == view.strides or view.size == 0
    assert np.array_equal(back, view)


def test_a_truncated_array_is_refused(tmp_path: Path) -> None:
    write_array(tmp_path / "a", Tensor("float32", np.zeros(100, np.float32)))
    whole = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(whole[:-4])

    with pytest.raises(ValueError, match="99 elements where 100"):
        read_array(tmp_path / "a")


def test_a_full_disk_is_the_machines_lack(tmp_path: Path) -> None:
    # Files are written beside their place first; this one leads to a device that is always full.
    (tmp_path / f"0.bin.{os.getpid()}").symlink_to("/dev/full")

    with pytest.raises(OSError, match="No space left") as caught:
        write_array(tmp_path / "0.bin", Tensor("float32", np.zeros(100_000, np.float32)))

    assert kind_of(caught.value) == "environment"


def test_scalars_cross_in_the_manifest(tmp_path: Path) -> None:
    values = {"x": Tensor("float32", np.ones(2, np.float32)), "alpha": 0.5, "flag": True, "n": 3}

    back = read_arrays(write_arrays(tmp_path / "c", values))

    assert list(back) == ["x", "alpha", "flag", "n"]
    assert back["flag"] is True


def test_narrow_floats_decode_to_their_values() -> None:
    bfloat = Tensor("bfloat16", np.array([0x3F80, 0xC000, 0x7F80], np.uint16))
    e4m3 = Tensor("float8_e4m3fn", np.array([0x38, 0x7E, 0x01, 0x7F], np.uint8))
    e5m2 = Tensor("float8_e5m2", np.array([0x3C, 0x7B, 0x7C], np.uint8))

    assert to_float64(bfloat).tolist() == [1.0, -2.0, math.inf]
    assert to_float64(e4m3)[:3].tolist() == [1.0, 448.0, 2.0**-9]
    assert math.isnan(to_float64(e4m3)[3])
    assert to_float64(e5m2).tolist() == [1.0, 57344.0, math.inf]


def difference(actual: object, expected: object, dtype: str = "float32", declared=None):
    tensor = Tensor(dtype, np.asarray(actual, dtype))
    wide = np.asarray(expected, np.float64 if dtype.startswith("float") else dtype)
    return compare("y", tensor, wide, dtype, declared)


def test_close_values_agree_and_far_ones_are_named() -> None:
    assert difference([1.0, 2.00001], [1.0, 2.0]).wrong == 0

    far = difference([1.0, 2.5], [1.0, 2.0])

    assert far.wrong == 1
    assert far.first == "y[1] = 2.5, expected 2"
    assert far.max_abs == 0.5


def test_zeros_never_agree_with_small_numbers() -> None:
    assert difference([0.0] * 8, [1e-12] * 8).wrong == 8


@pytest.mark.parametrize("actual", [math.nan, math.inf, -math.inf])
def test_nothing_finite_equals_nan_or_infinity(actual: float) -> None:
    odd = difference([actual, 1.0], [1.0, 1.0])

    assert odd.wrong == 1
    assert odd.error == math.inf


def test_nan_equals_nan_only_where_it_is_expected() -> None:
    assert difference([math.nan], [math.nan]).wrong == 0
    assert difference([1.0], [math.nan]).wrong == 1


def test_overflow_of_the_dtype_is_expected_infinity() -> None:
    assert difference([math.inf], [1e39]).wrong == 0
    assert difference([-math.inf], [1e39]).wrong == 1


def test_integers_must_be_equal() -> None:
    assert difference([1, 2], [1, 3], "int64").wrong == 1
    assert difference([2**62 + 1], [2**62], "int64").wrong == 1
    assert difference([True], [False], "bool").first == "y[0] = True, expected False"


def test_another_shape_or_dtype_is_wrong_whole() -> None:
    assert difference([1.0, 2.0], [1.0]).first == "y is float32[2], expected float32[1]"


def test_comparison_goes_by_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gate.worker.comparison.CHUNK", 10)
    actual = np.ones(95)
    actual[77] = 3.0

    assert difference(actual, np.ones(95)).first == "y[77] = 3, expected 1"


def test_the_error_budget_is_twice_the_originals_or_the_floor() -> None:
    assert within_budget(1e-5, 0.0, "float32")
    assert not within_budget(1e-3, 1e-4, "float32")
    assert within_budget(1.9e-4, 1e-4, "float32")


@pytest.mark.parametrize("name", NAMES)
def test_distributions_are_finite_and_repeatable(name: str) -> None:
    values = np.random.default_rng(0).standard_normal((5, 7))

    first, again = redraw(values, name, 3), redraw(values, name, 3)

    assert np.isfinite(first).all()
    assert first.shape == values.shape
    assert np.array_equal(first, again)
    assert name == "normal" or not np.array_equal(first, values)


class Record:
    """A device of PoCL's: memory of our own, with a pointer to the CPU's name at a given word."""

    def __init__(self, version: str, word: int, name: bytes) -> None:
        self.platform = SimpleNamespace(version=f"OpenCL 3.0 PoCL {version}  Linux")
        self._name = ctypes.create_string_buffer(name)
        self.words = (ctypes.c_uint64 * 128)()
        self.words[word] = ctypes.addressof(self._name)
        self.int_ptr = ctypes.addressof(self.words)


def test_the_cpu_is_named_where_its_name_is_known_to_be() -> None:
    record = Record("3.0-rc2", 80, b"generic")

    name = name_host_cpu(record)

    assert ctypes.string_at(record.words[80]) == name.encode()
    assert name.startswith("x86-64")


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (Record("5.0", 80, b"generic"), "for 3.0 only"),
        (Record("3.0", 81, b"generic"), "laid out in another way"),
        (Record("3.0", 80, b"znver3"), "laid out in another way"),
        (Record("3.0", 80, b""), "laid out in another way"),
    ],
)
def test_a_record_of_another_layout_is_left_alone(record: Record, told: str) -> None:
    before = bytes(record.words)

    with pytest.raises(EnvironmentProblem, match=told):
        name_host_cpu(record)

    assert bytes(record.words) == before


def test_a_build_that_is_refused_for_another_reason_names_nothing() -> None:
    record = Record("3.0", 80, b"generic")

    def build() -> None:
        raise cl.Error("use of undeclared identifier 'facto'")

    with pytest.raises(cl.Error, match="facto"):
        built_for_host(record, build)

    assert ctypes.string_at(record.words[80]) == b"generic"


def test_a_build_that_is_refused_still_says_what_the_environment_lacks() -> None:
    def build() -> None:
        raise cl.Error("error: unknown target CPU 'generic'")

    with pytest.raises(EnvironmentProblem, match=r"naming it had no effect; pip install"):
        built_for_host(Record("3.0", 80, b"generic"), build)


def test_cpu_levels_follow_the_flags() -> None:
    v2 = {"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"}
    v3 = v2 | {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}

    assert level_of(set()) == "x86-64"
    assert level_of(v2) == "x86-64-v2"
    assert level_of(v3) == "x86-64-v3"
    assert level_of(v3 | {"avx512f"}) == "x86-64-v3"
    assert level_of(v3 | {f"avx512{x}" for x in ("f", "bw", "cd", "dq", "vl")}) == "x86-64-v4"


def test_a_launch_may_leave_out_all_but_the_global_size() -> None:
    launch = read_launch({"global": 64}, "launch")

    assert launch.global_size == (64,)
    assert launch.local_size is None
    assert launch.arguments is None


def module(tmp_path: Path, text: str) -> WorkloadModule:
    return WorkloadModule(tmp_path / "w.py", text.encode(), tmp_path)


def test_a_workload_without_shapes_has_its_defaults(tmp_path: Path) -> None:
    made = module(
        tmp_path,
        "def make_inputs(n=8, scale=0.5, seed=0):\n    return {'n': n, 'seed': seed}\n"
        "def numpy_ref(n, seed):\n    import numpy as np\n    return np.ones(n), np.zeros(1)\n",
    )

    assert made.shapes == [{"n": 8}]
    assert made.inputs({"n": 3}, 11) == {"n": 3, "seed": 11}
    assert list(made.expected([3, 11])) == ["output_0", "output_1"]


def test_named_tuples_name_the_outputs(tmp_path: Path) -> None:
    made = module(
        tmp_path,
        "import collections, numpy as np\nPair = collections.namedtuple('Pair', 'values index')\n"
        "def make_inputs(): return {'x': np.ones(2)}\n"
        "def numpy_ref(x): return Pair(x, x.astype('int32'))\n",
    )

    assert list(made.expected([np.ones(2)])) == ["values", "index"]

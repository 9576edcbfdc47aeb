"""What is read from a workload file without running it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.values.workload import Workload
from library.target import Locus
from library.workload_source import Tolerance, WorkloadSource, find_workload, read_workload

INPUTS = "def make_inputs(M=64, N=32, seed=0):\n    return {}\n"


def read(text: str) -> WorkloadSource:
    return read_workload(Workload("gemm/workload.py", text.encode()))


def inputs_of(
    body: str, parameters: str = "M=64, N=32, *, seed=0, device='cpu'"
) -> dict[str, object]:
    found = read(f"import torch\nimport numpy as np\ndef make_inputs({parameters}):\n{body}").inputs
    return {each.name: (each.dtype, each.shape) for each in found}


def test_shapes_are_the_literal_ones_with_missing_axes_from_the_defaults() -> None:
    source = read(f"BIG = 1 << 8\nSHAPES = [{{'M': BIG * 2, 'N': 8}}, dict(M=3)]\n{INPUTS}")
    assert source.shapes == ({"M": 512, "N": 8}, {"M": 3, "N": 32})
    assert source.problems == ()


def test_without_shapes_the_defaults_of_make_inputs_are_the_one_shape() -> None:
    assert read(INPUTS).shapes == ({"M": 64, "N": 32},)
    assert read("def make_inputs(*, K=4, seed=1):\n    return {}\n").shapes == ({"K": 4},)


def test_computed_shapes_are_unknown_and_said_to_be() -> None:
    source = read(f"\nSHAPES = sweep(3)\n{INPUTS}")
    assert source.shapes == ()
    (problem,) = source.problems
    assert (problem.path, problem.line) == ("gemm/workload.py", 2)
    assert "SHAPES" in problem.message


def test_operator_tolerance_mutates_reference_and_outputs_are_read() -> None:
    source = read(
        "OPERATOR: str = 'gemm'\nTOLERANCE = {'atol': 1e-3, 'rtol': 0.01}\nMUTATES = ('c',)\n"
        f"def numpy_ref(a, b):\n    return {{'C': a @ b}}\n{INPUTS}"
    )
    assert source.operator == "gemm"
    assert source.tolerance == Tolerance(1e-3, 0.01)
    assert source.mutates == ("c",)
    assert source.reference == "numpy_ref"
    assert source.outputs == ("C",)


def test_one_number_is_both_tolerances_and_a_computed_one_is_a_problem() -> None:
    assert read(f"TOLERANCE = 2e-2\n{INPUTS}").tolerance == Tolerance(2e-2, 2e-2)
    computed = read(f"TOLERANCE = pick()\n{INPUTS}")
    assert computed.tolerance is None
    assert "TOLERANCE" in computed.problems[0].message


@pytest.mark.parametrize(
    ("expression", "dtype", "shape"),
    [
        ("torch.randn(M, N, dtype=torch.bfloat16, device=device)", "bfloat16", ("M", "N")),
        ("torch.randn((M, 4), device=device).to(torch.half)", "float16", ("M", 4)),
        ("torch.randn(M, N)", "float32", ("M", "N")),
        ("torch.randn(M, N).bfloat16().cuda()", "bfloat16", ("M", "N")),
        ("torch.randn(M, N, dtype=torch.float16) / 16", "float16", ("M", "N")),
        ("0.5 * torch.zeros(M, dtype=torch.float32)", "float32", ("M",)),
        ("torch.randint(0, 9, (M,))", "int64", ("M",)),
        ("torch.full((M, N), 1.0, dtype=torch.float32)", "float32", ("M", "N")),
        ("torch.empty(M, N, dtype=torch.float16).normal_()", "float16", ("M", "N")),
        ("rng.standard_normal((M, N)).astype(np.float32)", "float32", ("M", "N")),
        ("rng.standard_normal((M, N), dtype=np.float32)", "float32", ("M", "N")),
        ("rng.standard_normal((M, N), 'float32')", "float32", ("M", "N")),
        ("rng.standard_normal(N)", "float64", ("N",)),
        ("rng.uniform(-1, 1, size=(M, N)).astype('float32')", "float32", ("M", "N")),
        ("rng.integers(0, 4, size=M, dtype=np.int32)", "int32", ("M",)),
        ("np.zeros((M, N), np.float32)", "float32", ("M", "N")),
        ("torch.randn(M * 2, N)", "float32", None),
        ("torch.randn(M, N, dtype=pick())", None, ("M", "N")),
        ("torch.randn(N, M).t()", None, None),
        ("load('x.npy')", None, None),
        ("M", None, None),
    ],
)
def test_dtypes_and_shapes_of_inputs_are_read_where_they_are_plain(
    expression: str, dtype: str | None, shape: tuple[object, ...] | None
) -> None:
    assert inputs_of(f"    return {{'x': {expression}}}\n") == {"x": (dtype, shape)}


def test_inputs_are_followed_through_names_assigned_once() -> None:
    body = (
        "    dt = torch.float16\n    a = torch.randn(M, N, dtype=dt)\n"
        "    b = torch.randn(M, N)\n    b = b.to(torch.float16)\n    return {'a': a, 'b': b}\n"
    )
    assert inputs_of(body) == {"a": ("float16", ("M", "N")), "b": (None, None)}


def test_a_dtype_parameter_has_its_default() -> None:
    body = "    return {'a': torch.zeros((M,), dtype=dtype)}\n"
    assert inputs_of(body, "M=4, dtype=torch.bfloat16") == {"a": ("bfloat16", ("M",))}


def test_two_returns_leave_the_inputs_unknown() -> None:
    assert inputs_of("    if M:\n        return {'a': 1}\n    return {'b': 2}\n") == {}


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_launch_values_are_found_at_their_bytes(newline: str, mark: str) -> None:
    text = (
        "# größe\ndef launch_naive(axes):\n    '''Größe.'''\n    size = (axes['N'], 8)\n"
        "    return {'é': 1, 'global': (axes['M'], 64), 'local': size, 'options': '-DK=4'}\n"
    )
    data = (mark + text + INPUTS).replace("\n", newline).encode()
    source = read_workload(Workload("w.py", data))
    launch = source.launches["launch_naive"]

    def at(locus: Locus) -> str:
        assert data[locus.start : locus.end].decode() == locus.text
        return locus.text

    assert launch.parameter == "axes"
    assert at(launch.values["global"].locus) == "(axes['M'], 64)"
    assert [at(each) for each in launch.values["global"].elements] == ["axes['M']", "64"]
    assert [at(each) for each in launch.values["local"].elements] == ["axes['N']", "8"]
    assert at(launch.values["options"].locus) == "'-DK=4'"
    assert launch.locus.line == 2
    assert at(launch.locus).startswith("def launch_naive")
    assert at(launch.locus).endswith("}")


def test_a_decorated_launch_begins_at_its_decorator() -> None:
    launch = read(f"@ cached\ndef launch(axes):\n    return {{}}\n{INPUTS}").launches["launch"]
    assert launch.locus.text.startswith("@ cached\ndef launch")
    assert launch.locus.line == 1


def test_a_launch_with_two_returns_has_no_values_to_edit() -> None:
    text = (
        "def launch(a):\n    if a:\n        return {'global': (1,)}\n    return {'global': (2,)}\n"
    )
    assert read(text + INPUTS).launches["launch"].values == {}


def test_the_launch_of_an_entry_wins_over_the_common_one() -> None:
    text = f"def launch(a):\n    return {{}}\ndef launch_fast(a):\n    return {{}}\n{INPUTS}"
    source = read(text)
    assert source.launch_for("fast") is source.launches["launch_fast"]
    assert source.launch_for("slow") is source.launches["launch"]
    assert read(INPUTS).launch_for("slow") is None


def test_a_normalized_launch_ignores_comments_and_layout_alone() -> None:
    plain = read(f"def launch(a):\n    return {{'global': (a['M'],)}}\n{INPUTS}")
    spaced = read(
        f"def launch(a):\n    '''Doc.'''\n    # why\n    return {{'global':\n (a['M'],)}}\n{INPUTS}"
    )
    other = read(f"def launch(a):\n    return {{'global': (a['N'],)}}\n{INPUTS}")
    assert plain.launches["launch"].normalized == spaced.launches["launch"].normalized
    assert plain.launches["launch"].normalized != other.launches["launch"].normalized


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"x = 1\ndef make_inputs(:\n", 2, "syntax"),
        (b"a\0b", 1, "NUL"),
        (b"\xff\xfe", 1, "utf-8"),
        (b"#" * (4 * 1024 * 1024 + 1), 1, "larger than 4 MiB"),
        (b"x = 1\n", 1, "make_inputs"),
        (b"def launch(a):\n    return " + b"1+" * 2400 + b"1\n", 1, "recursion"),
    ],
)
def test_what_is_wrong_with_a_file_is_a_problem_with_its_line(
    data: bytes, line: int, message: str
) -> None:
    (problem,) = read_workload(Workload("w.py", data)).problems
    assert problem.line == line
    assert message in problem.message


@given(
    st.one_of(
        st.binary(max_size=80),
        st.text(max_size=80).map(lambda text: text.encode("utf-8", "replace")),
    )
)
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    assert read_workload(Workload("w.py", data)).path == "w.py"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["a/b/gemm_workload.py", "a/b/workload.py", "a/workload.py"], "a/b/gemm_workload.py"),
        (["a/b/workload.py", "a/workload.py"], "a/b/workload.py"),
        (["a/workload.py", "workload.py"], "a/workload.py"),
        (["workload.py"], None),
        (["elsewhere.py", "a/b/workload.py"], "elsewhere.py"),
    ],
)
def test_a_workload_is_looked_for_beside_the_file_then_one_folder_up(
    files: list[str], found: str | None
) -> None:
    held = dict.fromkeys(files, b"")
    configured = {"a/b/gemm.cl": "elsewhere.py"}
    workload = find_workload("a/b/gemm.cl", held.get, configured)
    assert (workload.path if workload else None) == found


def test_a_file_at_the_root_has_no_folder_above_it_and_is_not_its_own_workload() -> None:
    held = {"workload.py": b"x"}
    assert find_workload("gemm.cl", held.get, {}) is not None
    assert find_workload("workload.py", held.get, {}) is None

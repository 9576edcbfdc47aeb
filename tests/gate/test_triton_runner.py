"""Triton kernels without a GPU: interpreted for their answer, compiled for sm_90a."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from triton_children import HEAD, VECTOR_ADD, Result, Scenario, judge, vectors, write_worktree

from gate.worker.languages import Tensor, TensorSpec


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("baseline")
    return judge(Scenario(write_worktree(folder / "w", {"add.py": VECTOR_ADD}), folder / "s"))


@pytest.fixture
def add(tmp_path: Path) -> Scenario:
    root = write_worktree(tmp_path / "worktree", {"add.py": VECTOR_ADD})
    return Scenario(root, tmp_path / "scratch")


def edited(add: Scenario, *changes: tuple[str, str], **fields) -> Scenario:
    text = VECTOR_ADD
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return Scenario(add.root, add.scratch, edits={"add.py": text}, **fields)


def test_a_kernel_is_interpreted_and_built_for_the_target(baseline: Result) -> None:
    x, y = vectors(1000).values()
    np.testing.assert_array_equal(baseline.outputs["out"].array, x.array + y.array)
    assert ".target sm_90a" in baseline.built.ir["ptx"]
    assert "ttg.num-warps" in baseline.built.ir["ttgir"]
    resources = baseline.built.resources
    assert resources["registers"] > 0
    assert (resources["spill_bytes"], resources["shared_bytes"]) == (0, 0)
    assert (resources["num_warps"], resources["num_stages"]) == (8, 3)
    assert baseline.changed == []


def test_the_launch_is_traced_with_each_argument(baseline: Result) -> None:
    trace = baseline.trace
    assert (trace["kernel"], trace["grid"], trace["block"]) == ("add_kernel", [4], [256])
    assert trace["options"] == {"num_warps": 8, "num_stages": 3, "num_ctas": 1, "launches": 1}
    assert list(trace["arguments"]) == ["x_ptr", "y_ptr", "out_ptr", "n", "BLOCK"]
    x, n, block = (trace["arguments"][name] for name in ("x_ptr", "n", "BLOCK"))
    assert (x["kind"], x["dtype"], x["shape"], x["strides"]) == ("pointer", "float32", [1000], [1])
    assert x["alignment_bytes"] % 64 == 0
    assert (n["kind"], n["dtype"], n["value"]) == ("scalar", "int32", 1000)
    assert (block["kind"], block["dtype"], block["value"]) == ("constexpr", "int", 256)


def test_the_edited_kernel_is_what_runs_and_what_is_compiled(
    baseline: Result, add: Scenario
) -> None:
    result = judge(edited(add, ("x + y", "x * y")))
    x, y = vectors(1000).values()
    np.testing.assert_array_equal(result.outputs["out"].array, x.array * y.array)
    assert "mul.f32" in result.built.ir["ptx"]
    assert "mul.f32" not in baseline.built.ir["ptx"]
    assert result.built.digest != baseline.built.digest
    assert (add.root / "add.py").read_text() == VECTOR_ADD
    assert sorted(file.name for file in add.root.rglob("*")) == ["add.py"]


def test_a_comment_leaves_the_digest(baseline: Result, add: Scenario) -> None:
    result = judge(edited(add, ("@triton.jit", "# one program a block\n\n@triton.jit")))
    assert result.built.digest == baseline.built.digest


def test_an_edit_of_the_host_code_alone_changes_the_digest(baseline: Result, add: Scenario) -> None:
    result = judge(edited(add, ("torch.empty_like(x)", "torch.zeros_like(x)")))
    assert result.built.ir == baseline.built.ir
    assert result.built.digest != baseline.built.digest


def test_an_edited_helper_is_imported_relatively_and_compiled(tmp_path: Path) -> None:
    helper = HEAD + "\n\n@triton.jit\ndef combine(x, y):\n    return x + y\n"
    kernel = VECTOR_ADD.replace("import triton\n", "import triton\nfrom .ops import combine\n", 1)
    root = write_worktree(
        tmp_path / "w",
        {
            "src/ours/__init__.py": "",
            "src/ours/add.py": kernel.replace("x + y", "combine(x, y)"),
            "src/ours/ops.py": helper,
        },
    )
    result = judge(
        Scenario(
            root,
            tmp_path / "s",
            path="src/ours/add.py",
            edits={"src/ours/ops.py": helper.replace("x + y", "x * y")},
        )
    )
    x, y = vectors(1000).values()
    np.testing.assert_array_equal(result.outputs["out"].array, x.array * y.array)
    assert "mul.f32" in result.built.ir["ptx"]


def test_elements_that_nobody_writes_read_nan(add: Scenario) -> None:
    result = judge(
        edited(
            add,
            (
                "tl.store(out_ptr + offsets, x + y, mask=mask)",
                "tl.store(out_ptr + offsets, x + y, mask=offsets < n - 1)",
            ),
        )
    )
    out = result.outputs["out"].array
    assert np.isnan(out[-1])
    assert not np.isnan(out[:-1]).any()


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("x + y, mask", "x + z, mask", "z is not defined"),
        ("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK - 1)", "power of 2"),
        ("def add(x, y):", "def add(x, y:", "SyntaxError"),
        ("import torch\n", "import torch\nimport no_such_package\n", "no_such_package"),
        ("def add(", "def renamed(", "defines no add"),
        ("@triton.jit\n", "", "not a Triton kernel"),
    ],
)
def test_a_kernel_that_does_not_build_is_a_failed_build_with_its_log(
    before: str, after: str, shown: str, add: Scenario
) -> None:
    error = judge(edited(add, (before, after))).prepare_error
    assert error.startswith("build: ")
    assert shown in error


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("    add_kernel[", "    return x + y\n    add_kernel[", "without launching add_kernel"),
        ("(x, y, out, n, BLOCK=256", "(x, y, out, BLOCK=256", "missing a required argument: 'n'"),
    ],
)
def test_a_launch_the_kernel_does_not_take_is_a_failed_launch(
    before: str, after: str, shown: str, add: Scenario
) -> None:
    error = judge(edited(add, (before, after))).prepare_error
    assert error.startswith("launch: ")
    assert shown in error


def test_outputs_that_the_reference_does_not_name_are_a_failed_launch(add: Scenario) -> None:
    result = judge(edited(add, ("return out", "return out, out")))
    assert result.run_error.startswith("launch: add returned 2 values; the reference names 1")


def test_host_code_that_needs_a_gpu_is_not_held_against_the_kernel(add: Scenario) -> None:
    result = judge(edited(add, ("torch.empty_like(x)", "torch.empty(x.shape, device='cuda')")))
    assert result.prepare_error.startswith("cannot_run: ")


def test_a_module_that_asks_for_the_device_when_imported_loads(add: Scenario) -> None:
    line = "DEVICE = triton.runtime.driver.active.get_active_torch_device()\n\n\n"
    result = judge(
        edited(add, ("@triton.jit", line + "@triton.jit"), ("_like(x)", "_like(x, device=DEVICE)"))
    )
    assert result.run_error == ""
    assert result.built is not None


def test_what_the_interpreter_cannot_do_is_not_run_but_compiled(add: Scenario) -> None:
    assembly = (
        'tl.inline_asm_elementwise("add.f32 $0, $1, $2;", "=f,f,f", [x, y], tl.float32, True, 1)'
    )
    result = judge(edited(add, ("x + y, mask", f"{assembly}, mask")))
    assert result.run_error.startswith("cannot_run: Triton's interpreter stopped")
    assert result.built.resources["registers"] > 0


def test_a_launch_too_large_to_interpret_is_given_up_early(add: Scenario) -> None:
    scenario = edited(add, ("triton.cdiv(n", "100_000 + triton.cdiv(n"), budget_s=5.0)
    error = judge(scenario).run_error
    assert error.startswith("cannot_run: the interpreter would need")
    assert "100,004 programs" in error


def test_an_argument_that_cannot_be_carried_to_the_compiler_is_named(add: Scenario) -> None:
    result = judge(
        edited(
            add,
            ("BLOCK: tl.constexpr)", "BLOCK: tl.constexpr, PICK: tl.constexpr)"),
            ("BLOCK=256", "BLOCK=256, PICK=lambda: 1"),
        )
    )
    assert result.prepare_error.startswith("cannot_run: add_kernel cannot be compiled apart")


def test_undeclared_writes_to_an_input_are_named(add: Scenario) -> None:
    result = judge(edited(add, ("out = torch.empty_like(x)", "out = x")))
    assert result.changed == ["x"]


def test_a_declared_mutated_input_is_an_output(add: Scenario) -> None:
    scenario = edited(
        add,
        ("out = torch.empty_like(x)", "out = x"),
        ("return out", "return None"),
        mutates=("x",),
        outputs={},
    )
    result = judge(scenario)
    x, y = vectors(1000).values()
    np.testing.assert_array_equal(result.outputs["x"].array, x.array + y.array)
    assert result.changed == []
    assert result.trace["arguments"]["x_ptr"]["overlaps"] == ["out_ptr"]


def test_autotuned_and_derived_options_are_traced_as_chosen(add: Scenario) -> None:
    stack = """@triton.autotune(
    [triton.Config({"BLOCK": size}, num_warps=2, num_stages=4) for size in (512, 128)], key=["n"],
    prune_configs_by={"early_config_prune": lambda configs, named, **kw: configs[1:]},
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
"""
    result = judge(
        edited(
            add,
            ("@triton.jit\n", stack),
            ("BLOCK: tl.constexpr)", "BLOCK: tl.constexpr, EVEN: tl.constexpr)"),
            ("BLOCK=256, num_warps=8", ""),
        )
    )
    assert result.trace["grid"] == [8]
    assert result.trace["block"] == [64]
    assert result.trace["options"]["num_stages"] == 4
    assert result.trace["arguments"]["EVEN"]["value"] is False
    assert result.run_error == ""


def test_every_launch_of_the_kernel_is_counted(add: Scenario) -> None:
    result = judge(edited(add, ("    add_kernel[", "    for _ in range(3): add_kernel[")))
    assert result.trace["options"]["launches"] == 3


MATMUL = (
    HEAD
    + """

@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn,
                  BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = (rm[:, None] < M) & (rk[None, :] + k * BK < K)
        right = (rk[:, None] + k * BK < K) & (rn[None, :] < N)
        a = tl.load(a_ptr + rm[:, None] * sam + (rk[None, :] + k * BK) * sak, mask=left, other=0.0)
        b = tl.load(b_ptr + (rk[:, None] + k * BK) * sbk + rn[None, :] * sbn, mask=right, other=0.0)
        acc += tl.dot(a, b)
    c = acc.to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + rm[:, None] * scm + rn[None, :] * scn, c, (rm[:, None] < M) & (rn[None, :] < N))


def matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    matmul_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](
        a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), BM=32, BN=32, BK=32)
    return {"C": c}
"""
)


def test_a_bfloat16_matmul_over_a_transposed_operand(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 4, (65, 65)).astype(np.float32) for _ in range(2))
    bits = [(value.view(np.uint32) >> 16).astype(np.uint16) for value in (a, b)]
    result = judge(
        Scenario(
            write_worktree(tmp_path / "w", {"matmul.py": MATMUL}),
            tmp_path / "s",
            path="matmul.py",
            entry="matmul_kernel",
            symbol="matmul",
            inputs={"a": Tensor("bfloat16", bits[0]), "b": Tensor("bfloat16", bits[1].T)},
            outputs={"C": TensorSpec("bfloat16", (65, 65))},
        )
    )
    assert result.run_error == ""
    assert result.outputs["C"].dtype == "bfloat16"
    widened = (result.outputs["C"].array.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(widened, a @ b.T, rtol=2**-8)
    assert result.trace["arguments"]["b_ptr"]["strides"] == [1, 65]
    assert "wgmma" in result.built.ir["ptx"] or "mma.sync" in result.built.ir["ptx"]
    assert result.built.resources["shared_bytes"] > 0


def test_the_target_is_chosen_by_name(add: Scenario) -> None:
    result = judge(Scenario(add.root, add.scratch, device="sm_80"))
    assert ".target sm_80" in result.built.ir["ptx"]


BFLOAT16 = (
    HEAD
    + """

@triton.jit
def mix_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    mixed = tl.where(x < y, x * y + 1.5, -y)
    total = tl.sum(mixed, axis=0)
    tl.store(out_ptr + offsets, mixed / 3.0 + total + offsets.to(tl.bfloat16))


def mix(x, y):
    out = torch.empty_like(x)
    mix_kernel[(1,)](x, y, out, N=256)
    return out
"""
)


def test_bfloat16_arithmetic_is_that_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    x, y = (
        torch.from_numpy(value.array[:256]).to(torch.bfloat16) for value in vectors(1000).values()
    )
    mixed = torch.where(x < y, x * y + 1.5, -y)
    expected = mixed / 3.0 + mixed.float().sum() + torch.arange(256).to(torch.bfloat16)
    result = judge(
        Scenario(
            write_worktree(tmp_path / "w", {"mix.py": BFLOAT16}),
            tmp_path / "s",
            path="mix.py",
            entry="mix_kernel",
            symbol="mix",
            inputs={
                name: Tensor("bfloat16", value.view(torch.uint16).numpy())
                for name, value in (("x", x), ("y", y))
            },
            outputs={"out": TensorSpec("bfloat16", (256,))},
        )
    )
    assert result.run_error == ""
    actual = torch.from_numpy(result.outputs["out"].array).view(torch.bfloat16)
    torch.testing.assert_close(actual, expected.to(torch.bfloat16), rtol=2**-7, atol=2**-6)


def test_a_block_that_needs_more_shared_memory_than_there_is_does_not_build(
    tmp_path: Path,
) -> None:
    greedy = MATMUL.replace("BM=32, BN=32, BK=32", "BM=128, BN=128, BK=128, num_stages=5")
    operands = {name: Tensor("float16", np.ones((256, 256), np.float16)) for name in "ab"}
    result = judge(
        Scenario(
            write_worktree(tmp_path / "w", {"matmul.py": greedy}),
            tmp_path / "s",
            path="matmul.py",
            entry="matmul_kernel",
            symbol="matmul",
            inputs=operands,
            outputs={"C": TensorSpec("float16", (256, 256))},
        )
    )
    assert result.prepare_error.startswith("build: ")
    assert "out of resource: shared memory" in result.prepare_error

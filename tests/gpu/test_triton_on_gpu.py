"""The gate on a real GPU: a naive Triton GEMM, honest and dishonest edits of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gate.evaluate import AS_IT_STANDS, Budget, Gate
from gate.settings import GateSettings
from gate.values.candidate import Candidate, FileEdit
from gate.values.kernel import Kernel, Language, Launch, LaunchKind, SourceFile, digest
from gate.values.platform import Platform
from gate.values.verdict import Outcome, Status, Tier, Trust, Verdict
from gate.values.workload import Workload

SOURCE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def gemm_kernel(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn,
                BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        k_left = K - k * BK
        a = tl.load(a_ptr + rm[:, None] * sam + (k * BK + rk[None, :]) * sak,
                    mask=(rm[:, None] < M) & (rk[None, :] < k_left), other=0.0)
        b = tl.load(b_ptr + (k * BK + rk[:, None]) * sbk + rn[None, :] * sbn,
                    mask=(rk[:, None] < k_left) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
    tl.store(c_ptr + rm[:, None] * scm + rn[None, :] * scn, acc.to(c_ptr.dtype.element_ty),
             mask=(rm[:, None] < M) & (rn[None, :] < N))


def gemm(a, b):
    M, K = a.shape
    _, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))
    gemm_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(),
                      BM=32, BN=32, BK=32, num_warps=4)
    return c
"""

WORKLOAD = """\
import torch

SHAPES = [{"M": 2048, "N": 2048, "K": 2048}, {"M": 520, "N": 264, "K": 136}]


def make_inputs(M=2048, N=2048, K=2048, seed=0, device="cpu"):
    generator = torch.Generator(device="cpu").manual_seed(seed)
    a = torch.randn((M, K), generator=generator).to(device=device, dtype=torch.bfloat16)
    b = torch.randn((K, N), generator=generator).to(device=device, dtype=torch.bfloat16)
    return {"a": a, "b": b}


def torch_ref(a, b):
    return {"C": a @ b}
"""

LARGE_TILES = ("BM=32, BN=32, BK=32, num_warps=4", "BM=128, BN=128, BK=64, num_warps=8")


class Bench:
    """One gate over one worktree with the naive GEMM."""

    def __init__(self, folder: Path) -> None:
        root = folder / "worktree"
        root.mkdir()
        (root / "gemm.py").write_text(SOURCE)
        (root / "workload.py").write_text(WORKLOAD)
        self.gate = Gate(root, GateSettings(), folder / "scratch")
        self.source = SourceFile("gemm.py", SOURCE.encode())
        self.workload = Workload("workload.py", WORKLOAD.encode())
        launch = Launch(LaunchKind.WRAPPER, "gemm.py", "gemm")
        self.kernel = Kernel(
            Language.TRITON,
            "gemm.py",
            "gemm_kernel",
            (self.source,),
            launch,
            digest(self.source.data),
        )

    @property
    def platform(self) -> Platform:
        return self.gate.platform(Language.TRITON)

    def evaluate(self, *changes: tuple[str, str], tier: Tier = Tier.SCREEN) -> Verdict:
        text = SOURCE
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        edit = FileEdit("gemm.py", self.source.digest, text.encode())
        candidate = Candidate("card", (edit,)) if changes else AS_IT_STANDS
        return self.gate.evaluate(
            self.kernel,
            candidate,
            self.workload,
            self.platform,
            tier,
            Budget(),
            threading.Event(),
        )


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("gpu"))
    yield made
    made.gate.close()


def outcome(verdict: Verdict, name: str) -> Outcome:
    return next(check.outcome for check in verdict.checks if check.name == name)


def test_the_platform_is_as_the_driver_describes_it(bench: Bench) -> None:
    platform = bench.platform
    capability = platform.capabilities["compute_capability"]
    assert platform.can_run
    assert platform.name.startswith(f"sm_{capability}")
    assert platform.capabilities["wgmma"] is (capability == 90)
    for name in ("compute_units", "l2_bytes", "registers_per_sm", "global_memory_bytes"):
        assert platform.capabilities[name] > 0, name
    assert platform.capabilities["shared_memory_per_block_optin_bytes"] >= 64 * 1024


def test_the_launch_is_traced_at_every_shape(bench: Bench) -> None:
    traces = bench.gate.trace(bench.kernel, bench.workload, threading.Event())
    first, second = traces
    assert (first.kernel, first.grid, first.block) == ("gemm_kernel", (64, 64), (128,))
    assert second.grid == (17, 9)
    assert first.options["num_warps"] == 4
    a = first.arguments["a_ptr"]
    assert (a.kind, a.dtype, a.shape, a.strides) == ("pointer", "bfloat16", (2048, 2048), (2048, 1))
    assert a.alignment_bytes >= 256
    assert a.overlaps == ()
    assert first.arguments["BM"].value == 32


def test_a_right_and_faster_candidate_is_measured_faster(bench: Bench) -> None:
    verdict = bench.evaluate(LARGE_TILES)
    assert verdict.status is Status.FASTER, verdict.message
    assert verdict.headline.speedup_low > 1.2
    assert 10.0 < verdict.headline.candidate_us < verdict.headline.baseline_us < 10_000.0
    assert verdict.trust is Trust.HOSTED
    assert "L2 flushed" in verdict.headline.method


def test_the_artifact_shows_registers_shared_memory_and_ir(bench: Bench) -> None:
    verdict = bench.evaluate(LARGE_TILES)
    artifact = verdict.candidate_artifact
    assert 0 < artifact.resources["registers"] <= 255
    assert artifact.resources["spill_bytes"] == 0
    assert artifact.resources["shared_bytes"] > 0
    assert artifact.resources["num_warps"] == 8
    assert f".target {bench.platform.name}" in artifact.ir["ptx"]
    assert "ttg.num-warps" in artifact.ir["ttgir"]


def test_a_confirmed_candidate_is_timed_at_every_shape(bench: Bench) -> None:
    verdict = bench.evaluate(LARGE_TILES, tier=Tier.CONFIRM)
    assert verdict.status in (Status.FASTER, Status.SLOWER, Status.NOISY), verdict.message
    assert len(verdict.timings) == 2
    assert verdict.headline.speedup_low > 1.2
    assert len(verdict.seeds) > 3


def test_the_same_kernel_under_other_host_code_is_neither_faster_nor_slower(bench: Bench) -> None:
    verdict = bench.evaluate(("torch.empty((M, N)", "torch.empty([M, N]"))
    assert verdict.status in (Status.TIE, Status.NOISY), verdict.message
    assert verdict.headline is not None
    assert 0.95 < verdict.headline.speedup < 1.05
    assert verdict.candidate_artifact.ir == verdict.baseline_artifact.ir


def test_a_comment_is_a_tie_without_timing(bench: Bench) -> None:
    verdict = bench.evaluate(("@triton.jit", "# one tile of C a program\n@triton.jit"))
    assert verdict.status is Status.TIE
    assert outcome(verdict, "profile") is Outcome.NOT_RUN


def test_the_kernel_as_it_stands_is_right_and_timed(bench: Bench) -> None:
    verdict = bench.evaluate()
    assert verdict.status is Status.TIE, verdict.message
    assert outcome(verdict, "correctness") is Outcome.PASSED


@pytest.mark.parametrize(
    "change",
    [
        ("tl.cdiv(K, BK)", "K // BK"),
        ("(rn[None, :] < N))", "(rn[None, :] < N - 1))"),
        ("acc += tl.dot(a, b)", "acc = tl.dot(a, b)"),
    ],
    ids=["tail of K dropped", "a column not written", "last tile alone"],
)
def test_a_wrong_candidate_is_caught(change: tuple[str, str], bench: Bench) -> None:
    verdict = bench.evaluate(change)
    assert verdict.status is Status.WRONG, verdict.message


def test_a_candidate_that_leaves_the_work_to_the_library_is_refused(bench: Bench) -> None:
    verdict = bench.evaluate(("    M, K = a.shape\n", "    return a @ b\n    M, K = a.shape\n"))
    assert verdict.status is Status.CRASHED
    assert "without launching gemm_kernel" in verdict.message


def test_a_kernel_that_does_not_compile_shows_why(bench: Bench) -> None:
    verdict = bench.evaluate(("acc += tl.dot(a, b)", "acc += tl.dot(a, nothing)"))
    assert verdict.status is Status.COMPILE_ERROR
    assert "nothing is not defined" in verdict.message


def test_a_block_over_the_shared_memory_limit_is_a_compile_error(bench: Bench) -> None:
    greedy = "BM=128, BN=128, BK=128, num_warps=8, num_stages=5"
    verdict = bench.evaluate((LARGE_TILES[0], greedy))
    assert verdict.status is Status.COMPILE_ERROR, verdict.message
    assert "out of resource" in verdict.message


def test_a_launch_without_an_argument_names_it(bench: Bench) -> None:
    verdict = bench.evaluate(
        ("gemm_kernel[grid](a, b, c, M, N, K,", "gemm_kernel[grid](a, b, c, M, N,")
    )
    assert verdict.status is Status.CRASHED, verdict.message
    assert "gemm_kernel" in verdict.message
    assert "missing" in verdict.message


def test_an_illegal_address_ends_one_worker_and_no_more(bench: Bench) -> None:
    wild = ("tl.store(c_ptr + ", "tl.store(c_ptr + 2**40 + ")
    verdict = bench.evaluate(wild)
    assert verdict.status is Status.CRASHED, verdict.message
    assert bench.evaluate(LARGE_TILES).status is Status.FASTER


def test_autotuned_kernels_settle_before_they_are_timed(bench: Bench) -> None:
    tuned = """@triton.autotune(
    [triton.Config({"BM": 64, "BN": 64, "BK": 32}, num_warps=4),
     triton.Config({"BM": 128, "BN": 128, "BK": 64}, num_warps=8)], key=["M", "N", "K"])
@triton.jit"""
    verdict = bench.evaluate(("@triton.jit", tuned), (f"{LARGE_TILES[0]})", ")"))
    assert verdict.status is Status.FASTER, verdict.message
    samples = sorted(verdict.headline.candidate_samples_us)
    assert samples[-1] < 3.0 * samples[0]

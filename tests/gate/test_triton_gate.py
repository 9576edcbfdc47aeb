"""Triton kernels through the whole gate, on a machine without a GPU."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from triton_children import VECTOR_ADD, write_worktree

from gate.evaluate import Budget, Gate
from gate.settings import GateSettings
from gate.values.candidate import Candidate, FileEdit
from gate.values.kernel import Kernel, Language, Launch, LaunchKind, SourceFile, digest
from gate.values.verdict import Outcome, Status, Tier, Trust, Verdict
from gate.values.workload import Workload

WORKLOAD = """\
import torch

SHAPES = [{"N": 4_000_000}, {"N": 1000}]


def make_inputs(N=1000, seed=0, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(N, generator=generator).to(device) for name in "xy"}


def torch_ref(x, y):
    return {"out": x + y}
"""

KERNEL = VECTOR_ADD.replace("BLOCK=256", "BLOCK=8")
"""Half a million programs at the first shape: the interpreter would need minutes."""

pytestmark = pytest.mark.xdist_group("triton-gate")


class Bench:
    """One gate over one worktree with the vector addition."""

    def __init__(self, folder: Path) -> None:
        root = write_worktree(folder / "worktree", {"add.py": KERNEL, "workload.py": WORKLOAD})
        # A compile-only target, so that the test is the same where there is a GPU.
        settings = GateSettings(devices={"triton": "sm_90a"})
        self.gate = Gate(root, settings, folder / "scratch")
        self.source = SourceFile("add.py", KERNEL.encode())
        self.workload = Workload("workload.py", WORKLOAD.encode())
        self.kernel = Kernel(
            Language.TRITON,
            "add.py",
            "add_kernel",
            (self.source,),
            Launch(LaunchKind.WRAPPER, "add.py", "add"),
            digest(self.source.data),
        )

    def evaluate(self, before: str, after: str) -> Verdict:
        assert before in KERNEL
        edit = FileEdit("add.py", self.source.digest, KERNEL.replace(before, after).encode())
        return self.gate.evaluate(
            self.kernel,
            Candidate("card", (edit,)),
            self.workload,
            self.gate.platform(Language.TRITON),
            Tier.SCREEN,
            Budget(),
            threading.Event(),
        )


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("gate"))
    yield made
    made.gate.close()


def outcome(verdict: Verdict, name: str) -> Outcome:
    return next(check.outcome for check in verdict.checks if check.name == name)


def test_the_platform_is_a_target_that_cannot_run(bench: Bench) -> None:
    platform = bench.gate.platform(Language.TRITON)
    assert (platform.name, platform.can_run) == ("sm_90a", False)
    assert platform.device == "compile-only target sm_90a"
    assert platform.capabilities["wgmma"] is True
    assert "compute_units" not in platform.capabilities


def test_launches_are_traced_without_being_interpreted(bench: Bench) -> None:
    first, second = bench.gate.trace(bench.kernel, bench.workload, threading.Event())
    assert (first.grid, second.grid) == ((500_000,), (125,))
    assert first.arguments["n"].value == 4_000_000


def test_a_shape_too_large_to_interpret_leaves_the_others_proof(bench: Bench) -> None:
    verdict = bench.evaluate("BLOCK=8", "BLOCK=16")
    correctness = next(check for check in verdict.checks if check.name == "correctness")
    assert correctness.outcome is Outcome.PASSED
    assert correctness.detail.startswith("1 case")
    assert "1 could not be run here: correctness at N=4000000" in correctness.detail
    assert "the interpreter would need" in correctness.detail


def test_a_right_candidate_is_proved_right_and_stays_unmeasured(bench: Bench) -> None:
    verdict = bench.evaluate("BLOCK=8", "BLOCK=512")
    assert verdict.status is Status.UNMEASURED, verdict
    assert outcome(verdict, "correctness") is Outcome.PASSED
    assert outcome(verdict, "profile") is Outcome.NOT_RUN
    assert verdict.timings == ()
    assert verdict.trust is Trust.HOSTED
    assert verdict.candidate_artifact.resources["registers"] > 0
    assert verdict.candidate_artifact.digest != verdict.baseline_artifact.digest


def test_a_wrong_candidate_is_caught(bench: Bench) -> None:
    verdict = bench.evaluate("mask = offsets < n", "mask = offsets < n - 1")
    assert verdict.status is Status.WRONG, verdict


def test_a_broken_candidate_is_a_compile_error_that_shows_the_line(bench: Bench) -> None:
    verdict = bench.evaluate("x + y, mask", "x + undefined, mask")
    assert verdict.status is Status.COMPILE_ERROR, verdict
    assert "undefined is not defined" in verdict.message
    assert "tl.store(out_ptr + offsets, x + undefined, mask=mask)" in verdict.log


def test_an_operation_the_interpreter_lacks_is_not_a_pass(bench: Bench) -> None:
    assembly = (
        'tl.inline_asm_elementwise("add.f32 $0, $1, $2;", "=f,f,f", [x, y], tl.float32, True, 1)'
    )
    verdict = bench.evaluate("x + y, mask", f"{assembly}, mask")
    assert verdict.status is Status.UNMEASURED, verdict
    assert outcome(verdict, "correctness") is Outcome.NOT_RUN
    assert "interpreter" in verdict.message

"""The gate on OpenCL kernels that are right, wrong, broken or slow: real builds, a real device."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from gate_builders import (
    GEMM_CL,
    GEMM_WORKLOAD,
    INTEGER_CL,
    INTEGER_WORKLOAD,
    SCALE_CL,
    SCALE_WORKLOAD,
    SLOW_SCALE_CL,
    Worktree,
)

from gate.errors import StaleCandidate
from gate.evaluate import Budget
from gate.values.candidate import Candidate, FileEdit
from gate.values.verdict import Outcome, Status, Tier, Verdict

Trees = Callable[..., Worktree]
Evaluate = Callable[..., Verdict]


def outcome(verdict: Verdict, name: str) -> Outcome:
    return next(check.outcome for check in verdict.checks if check.name == name)


@pytest.mark.serial
def test_a_right_and_faster_candidate_is_faster(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree(kernel=SLOW_SCALE_CL)

    verdict = evaluate(tree, tree.candidate(k=SCALE_CL))

    assert verdict.status is Status.FASTER, verdict.message
    assert verdict.headline is not None
    assert verdict.headline.speedup_low > 1.5
    assert verdict.headline.axes == {"n": 4096}
    assert 0.9 < verdict.headline.confidence < 1.0
    assert outcome(verdict, "profile") is Outcome.PASSED
    assert outcome(verdict, "sanitizer") is Outcome.NOT_RUN
    assert verdict.baseline_artifact is not None
    assert verdict.candidate_artifact is not None
    assert verdict.baseline_artifact.digest != verdict.candidate_artifact.digest
    assert verdict.candidate_artifact.resources["registers"] is None
    assert verdict.seeds


@pytest.mark.serial
def test_a_slower_candidate_is_slower(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree()

    verdict = evaluate(tree, tree.candidate(k=SLOW_SCALE_CL))

    assert verdict.status is Status.SLOWER, verdict.message


@pytest.mark.serial
def test_confirm_uses_fresh_process_pairs_and_times_every_shape(
    worktree: Trees, evaluate: Evaluate
) -> None:
    tree = worktree(kernel=SLOW_SCALE_CL)

    verdict = evaluate(tree, tree.candidate(k=SCALE_CL), tier=Tier.CONFIRM)

    assert verdict.status is Status.FASTER, verdict.message
    assert [dict(timing.axes) for timing in verdict.timings] == [{"n": 4096}, {"n": 1000}]
    assert "6 fresh process pairs" in verdict.timings[0].method
    assert len(verdict.timings[0].baseline_samples_us) == 12


@pytest.mark.serial
def test_a_kernel_as_it_stands_is_measured_against_itself(
    worktree: Trees, evaluate: Evaluate
) -> None:
    verdict = evaluate(worktree())

    assert verdict.status is Status.TIE
    assert "as it stands is right and takes" in verdict.message
    assert verdict.headline is not None


def test_the_same_binary_is_a_tie_that_nobody_times(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree()

    verdict = evaluate(tree, tree.candidate(k="// scales\n" + SCALE_CL))

    assert verdict.status is Status.TIE
    assert verdict.message == "the compiler made the same binary"
    assert verdict.timings == ()


def test_a_wrong_answer_is_wrong_and_names_the_element(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree()
    off_by_one = SCALE_CL.replace("factor * x[i]", "factor * x[i > 0 ? i - 1 : 0]")

    verdict = evaluate(tree, tree.candidate(k=off_by_one))

    assert verdict.status is Status.WRONG
    assert "y[" in verdict.message
    assert "expected" in verdict.message
    assert outcome(verdict, "correctness") is Outcome.FAILED
    assert outcome(verdict, "profile") is Outcome.NOT_RUN


def test_a_kernel_that_is_wrong_as_it_stands_is_wrong(worktree: Trees, evaluate: Evaluate) -> None:
    verdict = evaluate(worktree(kernel=SCALE_CL.replace("factor * x", "2.0f * x")))

    assert verdict.status is Status.WRONG


def test_candidates_of_a_wrong_kernel_cannot_be_gated(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree(kernel=SCALE_CL.replace("factor * x", "2.0f * x"))

    verdict = evaluate(tree, tree.candidate(k=SCALE_CL))

    assert verdict.status is Status.UNGATEABLE
    assert "as it stands" in verdict.message


def test_a_write_outside_names_the_buffer(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree()
    beyond = SCALE_CL.replace("y[i] = factor * x[i];", "y[i] = factor * x[i], y[n + 3] = 1.0f;")

    verdict = evaluate(tree, tree.candidate(k=beyond))

    assert verdict.status is Status.WRONG
    assert "wrote after buffer y" in verdict.message


def test_a_write_to_an_input_is_wrong(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree()
    writing = SCALE_CL.replace("__global const float *x", "__global float *x").replace(
        "y[i] = factor * x[i];", "{ y[i] = factor * x[i]; x[i] = 0.0f; }"
    )

    verdict = evaluate(tree, tree.candidate(k=writing))

    assert verdict.status is Status.WRONG
    assert "input x" in verdict.message


def test_integers_that_nobody_wrote_are_wrong(worktree: Trees, evaluate: Evaluate) -> None:
    # x[i] + 1 == -1 where the poison is 0xFF…: right by chance on the first run.
    poisoned = INTEGER_WORKLOAD.replace("integers(-9, 9, n", "integers(-2, -1, n")
    tree = worktree(kernel=INTEGER_CL, workload=poisoned, entry="count")

    verdict = evaluate(tree, tree.candidate(k=INTEGER_CL.replace("i < n", "i < n - 1")))

    assert verdict.status is Status.WRONG


def test_a_compile_error_carries_the_log_with_the_kernels_own_path(
    worktree: Trees, evaluate: Evaluate
) -> None:
    tree = worktree()

    verdict = evaluate(tree, tree.candidate(k=SCALE_CL.replace("factor * x[i]", "facto * x[i]")))

    assert verdict.status is Status.COMPILE_ERROR
    assert "kernels/k.cl:5" in verdict.log
    assert "facto" in verdict.message


def test_a_missing_entry_is_a_compile_error(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree()

    verdict = evaluate(tree, tree.candidate(k=SCALE_CL.replace("void scale", "void scaled")))

    assert verdict.status is Status.COMPILE_ERROR
    assert "no kernel scale" in verdict.message


def test_right_on_the_first_shape_only_is_wrong(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree()

    verdict = evaluate(tree, tree.candidate(k=SCALE_CL.replace("if (i < n)", "if (n == 4096)")))

    assert verdict.status is Status.WRONG
    assert "n=1000" in verdict.message


def test_confirm_tries_shapes_that_nobody_declared(worktree: Trees, evaluate: Evaluate) -> None:
    even_only = SCALE_CL.replace("if (i < n)", "if (i < n / 2 * 2)")
    tree = worktree()

    verdict = evaluate(tree, tree.candidate(k=even_only), tier=Tier.CONFIRM)

    assert verdict.status is Status.WRONG
    assert "n=4097" in verdict.message or "n=4095" in verdict.message


@pytest.mark.parametrize("line", ["assert n % 8 == 0", "import os; n % 8 and os._exit(1)"])
def test_shapes_that_the_workload_refuses_are_outside_the_contract(
    line: str, worktree: Trees, evaluate: Evaluate
) -> None:
    strict = SCALE_WORKLOAD.replace("    rng = np", f"    {line}\n    rng = np")
    tree = worktree(workload=strict)
    # The same binary: what is right is then not timed as well.
    commented = tree.candidate(k="// scales\n" + SCALE_CL)

    verdict = evaluate(tree, commented, tier=Tier.CONFIRM)

    assert outcome(verdict, "correctness") is Outcome.PASSED, verdict.message
    correctness = next(check.detail for check in verdict.checks if check.name == "correctness")
    assert "2 outside the original's contract, such as n=4097" in correctness


def test_a_candidate_may_die_where_the_original_is_wrong(
    worktree: Trees, evaluate: Evaluate
) -> None:
    even_only = SCALE_CL.replace("if (i < n)", "if (i < n / 2 * 2)")
    tree = worktree(kernel=even_only)
    dying = SCALE_WORKLOAD.replace(
        '    return {"global"',
        "    import os; axes['n'] % 2 and os._exit(1)\n    return {\"global\"",
    )

    verdict = evaluate(
        tree, tree.candidate(k="// scales\n" + even_only, workload=dying), tier=Tier.CONFIRM
    )

    assert verdict.status is Status.TIE, verdict.message
    correctness = next(check.detail for check in verdict.checks if check.name == "correctness")
    assert correctness.startswith("24 cases")
    assert "2 outside the original's contract" in correctness


def test_what_each_stage_took_is_told(worktree: Trees, evaluate: Evaluate) -> None:
    details = {check.name: check.detail for check in evaluate(worktree()).checks}

    assert re.search(r"2 cases .* \d+\.\d s$", details["correctness"])
    assert re.search(r"made ready in \d+\.\d s, timed in \d+\.\d s$", details["profile"])


def test_work_that_is_skipped_while_timed_is_suspicious(
    worktree: Trees, evaluate: Evaluate
) -> None:
    """A launch function that replaces the clock in its own process."""
    forging = SCALE_WORKLOAD.replace(
        "def launch(axes):\n",
        "def launch(axes):\n"
        "    import sys\n"
        "    runner = sys.modules['_klineage_worker.languages.opencl'].OpenClRunner\n"
        "    runner.time = lambda self, n: [self._refresh()] and [1.0] * n\n",
    )
    tree = worktree()

    verdict = evaluate(tree, tree.candidate(workload=forging, k=SLOW_SCALE_CL))

    assert verdict.status is Status.SUSPICIOUS
    assert "check after timing" in verdict.message
    assert outcome(verdict, "timed outputs") is Outcome.FAILED


def test_confirm_tries_other_distributions(worktree: Trees, evaluate: Evaluate) -> None:
    saturating = SCALE_CL.replace("factor * x[i]", "factor * clamp(x[i], -8.0f, 8.0f)")
    tree = worktree()

    verdict = evaluate(tree, tree.candidate(k=saturating), tier=Tier.CONFIRM)

    assert verdict.status is Status.WRONG
    assert "wide inputs" in verdict.message


def test_precision_that_nobody_offered_is_wrong(worktree: Trees, evaluate: Evaluate) -> None:
    rounded = SCALE_CL.replace("factor * x[i]", "as_float(as_int(factor * x[i]) & 0xFFFFF000)")
    generous = SCALE_WORKLOAD + '\nTOLERANCE = {"atol": 1e-2, "rtol": 1e-2}\n'
    tree = worktree(workload=generous)

    verdict = evaluate(tree, tree.candidate(k=rounded))

    assert verdict.status is Status.WRONG
    assert "relative error grew" in verdict.message


def test_a_tolerance_that_accepts_zeros_cannot_gate(worktree: Trees, evaluate: Evaluate) -> None:
    verdict = evaluate(worktree(workload=SCALE_WORKLOAD + "\nTOLERANCE = 1e3\n"))

    assert verdict.status is Status.UNGATEABLE
    assert "all zeros" in verdict.message
    assert outcome(verdict, "controls") is Outcome.FAILED


def test_editing_the_reference_is_forbidden(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree()
    easier = SCALE_WORKLOAD.replace("x * x.dtype.type(factor)", "x * 0")

    verdict = evaluate(tree, tree.candidate(workload=easier))

    assert verdict.status is Status.FORBIDDEN
    assert "only the body of launch may change" in verdict.message


def test_editing_outside_the_worktree_is_forbidden(worktree: Trees, evaluate: Evaluate) -> None:
    verdict = evaluate(
        worktree(), Candidate("0" * 64, (FileEdit("../elsewhere.cl", "0" * 64, b""),))
    )

    assert verdict.status is Status.FORBIDDEN


def test_a_candidate_made_from_other_bytes_is_refused(worktree: Trees, evaluate: Evaluate) -> None:
    edit = FileEdit("kernels/k.cl", "0" * 64, SCALE_CL.encode())

    with pytest.raises(StaleCandidate, match=r"kernels/k\.cl changed"):
        evaluate(worktree(), Candidate("0" * 64, (edit,)))


def test_an_endless_kernel_times_out(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree()
    endless = SCALE_CL.replace("if (i < n)", "while (factor != 0.0f && x[i] != 1e30f)")

    verdict = evaluate(tree, tree.candidate(k=endless))

    assert verdict.status is Status.TIMEOUT
    assert "took longer than 2 s" in verdict.message


def test_a_budget_ends_an_evaluation_without_an_answer(worktree: Trees, evaluate: Evaluate) -> None:
    verdict = evaluate(worktree(), budget=Budget(wall_s=0.0))

    assert verdict.status is Status.UNMEASURED
    assert "budget" in verdict.message


def test_gemm_is_right_on_odd_shapes(worktree: Trees, evaluate: Evaluate) -> None:
    small = GEMM_WORKLOAD.replace('{"M": 256, "N": 256, "K": 256}', '{"M": 17, "N": 5, "K": 31}')
    tree = worktree(kernel=GEMM_CL, workload=small, entry="gemm")
    transposed = GEMM_CL.replace("C[row * N + col]", "C[col * M + row]")

    verdict = evaluate(tree, tree.candidate(k=transposed))

    assert verdict.status is Status.WRONG

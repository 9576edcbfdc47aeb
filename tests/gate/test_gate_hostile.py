"""Workloads and host code that print, fork, hang, exit or lie: one verdict each, nothing left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from gate_builders import SCALE_CL, SCALE_WORKLOAD, Worktree

from gate.errors import Cancelled, GateError, WorkloadError
from gate.evaluate import AS_IT_STANDS, Budget, Gate
from gate.settings import GateSettings
from gate.values.kernel import Language
from gate.values.platform import Platform
from gate.values.verdict import Status, Tier, Verdict

Trees = Callable[..., Worktree]
Evaluate = Callable[..., Verdict]

ENDLESS_CL = SCALE_CL.replace("if (i < n)", "while (factor != 0.0f && x[i] != 1e30f)")


def with_line(function: str, line: str) -> str:
    """The scale workload with a first line in one of its functions."""
    head = next(text for text in SCALE_WORKLOAD.splitlines() if text.startswith(f"def {function}("))
    return SCALE_WORKLOAD.replace(head, f"{head}\n    {line}")


def processes_under(scratch: Path) -> list[int]:
    """Processes that work in, or below, a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                where = (entry / "cwd").readlink()
            except OSError:
                continue
            if where.is_relative_to(scratch):
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("raise ValueError('no such size')", "make_inputs: ValueError: no such size"),
        ("import sys; sys.exit(3)", "make_inputs: SystemExit: 3"),
        ("import os; os._exit(3)", "exited with status 3"),
        ("import ctypes; ctypes.string_at(0)", "killed by SIGSEGV"),
        ("return [1, 2]", "make_inputs: expected a non-empty mapping"),
        ("return {'x': object()}", "make_inputs: x: expected an array"),
    ],
)
def test_a_workload_that_fails_cannot_gate(
    line: str, told: str, worktree: Trees, evaluate: Evaluate
) -> None:
    verdict = evaluate(worktree(workload=with_line("make_inputs", line)))

    assert verdict.status is Status.UNGATEABLE
    assert told in verdict.message
    assert "workload.py" in verdict.message or "make_inputs" in verdict.message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def make_inputs(:", "workload.py line 1: SyntaxError"),
        ("import no_such_package", "No module named 'no_such_package'"),
        ("x = 1", "make_inputs: expected a function"),
        ("def make_inputs():\n    return {}", "torch_ref or numpy_ref"),
        (SCALE_WORKLOAD + "\nSHAPES = [{'rows': 3}]", "SHAPES: expected axes among"),
        (SCALE_WORKLOAD + "\nTOLERANCE = 'tight'", "TOLERANCE: expected"),
    ],
)
def test_a_workload_file_that_says_nonsense_is_told_so(
    text: str, told: str, worktree: Trees, evaluate: Evaluate
) -> None:
    verdict = evaluate(worktree(workload=text))

    assert verdict.status is Status.UNGATEABLE
    assert told in verdict.message


def test_a_reference_of_another_shape_makes_the_kernel_wrong(
    worktree: Trees, evaluate: Evaluate
) -> None:
    longer = SCALE_WORKLOAD.replace('return {"y": x', 'return {"y": np.append(x, x)')

    verdict = evaluate(worktree(workload=longer))

    assert verdict.status is Status.WRONG


def test_a_hanging_workload_times_out(worktree: Trees, evaluate: Evaluate) -> None:
    verdict = evaluate(worktree(workload=with_line("numpy_ref", "while True: pass")))

    assert verdict.status is Status.TIMEOUT
    assert "workload.py" in verdict.message


def test_megabytes_of_output_neither_block_nor_corrupt(worktree: Trees, evaluate: Evaluate) -> None:
    loud = "import os; os.write(1, b'x' * 5_000_000); os.write(2, b'y' * 5_000_000); print('z' * 10**6)"

    verdict = evaluate(worktree(workload=with_line("make_inputs", loud)))

    assert verdict.status is Status.TIE, verdict.message


def test_the_log_of_a_loud_failure_is_capped(worktree: Trees, evaluate: Evaluate) -> None:
    loud = "print('x' * 5_000_000, flush=True); import os; os._exit(1)"

    verdict = evaluate(worktree(workload=with_line("make_inputs", loud)))

    assert verdict.status is Status.UNGATEABLE
    assert 0 < len(verdict.log) <= 17_000
    assert "bytes left out" in verdict.log


def test_a_kernel_that_prints_is_judged_by_its_answer(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree()
    loud = SCALE_CL.replace(
        "    if (i < n)\n", '    printf("%d %f\\n", i, x[i]);\n    if (i < 0)\n'
    )

    verdict = evaluate(tree, tree.candidate(k=loud))

    assert verdict.status is Status.WRONG


def test_a_forking_workload_answers_once(worktree: Trees, evaluate: Evaluate) -> None:
    verdict = evaluate(worktree(workload=with_line("make_inputs", "import os; os.fork()")))

    assert verdict.status is Status.TIE, verdict.message


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("import os; os._exit(7)", "exited with status 7"),
        ("raise KeyError('n')", "launch({'n': 1000}): KeyError"),
        ("return {'global': (axes['n'],), 'grid': 3}", "unknown key 'grid'"),
        ("return {'global': (0,)}", "positive integers"),
        ("return {'global': (axes['n'],), 'local': (7, 7)}", "differ in rank"),
        ("return {'global': (1024,), 'local': (7,)}", "not a multiple"),
        ("return {'global': (axes['n'],), 'arguments': ('x', 'y', 'factor')}", "takes 4"),
        (
            "return {'global': (axes['n'],), 'arguments': ('x', 'z', 'factor', 'n')}",
            "parameter y (float*): nothing is named z: array inputs x; outputs y",
        ),
    ],
)
def test_a_launch_function_that_fails_is_the_candidates_fault(
    line: str, told: str, worktree: Trees, evaluate: Evaluate
) -> None:
    tree = worktree()

    verdict = evaluate(tree, tree.candidate(workload=with_line("launch", line)))

    assert verdict.status is Status.CRASHED
    assert told in verdict.message


def test_forged_replies_break_the_candidate_and_not_the_gate(
    worktree: Trees, evaluate: Evaluate
) -> None:
    tree = worktree()
    forging = with_line(
        "launch",
        "import os; [os.write(fd, b'\\x00\\x00\\x00\\x02{}') for fd in range(3, 40) "
        "if os.path.exists(f'/proc/self/fd/{fd}') and 'pipe' in os.readlink(f'/proc/self/fd/{fd}') "
        "and os.readlink(f'/proc/self/fd/{fd}') and open(f'/proc/self/fdinfo/{fd}').read()"
        ".split()[3][-1] == '1']",
    )

    verdict = evaluate(tree, tree.candidate(workload=forging))

    assert verdict.status is Status.CRASHED
    assert "broke the protocol" in verdict.message
    assert evaluate(tree).status is Status.TIE


def test_stop_cancels_within_a_second(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree()
    stop = threading.Event()
    asked: list[float] = []

    def ask() -> None:
        asked.append(time.monotonic())
        stop.set()

    timer = threading.Timer(1.5, ask)
    timer.start()
    with pytest.raises(Cancelled):
        evaluate(tree, tree.candidate(k=ENDLESS_CL), stop=stop)

    assert time.monotonic() - asked[0] < 1.0


def test_closing_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    settings = GateSettings(device_lock=str(tmp_path / "lock"))
    gate = Gate(tmp_path / "worktree", settings, tmp_path / "scratch")
    forking = with_line("make_inputs", "import os, time; os.fork() or time.sleep(600)")
    tree = Worktree(tmp_path / "worktree", workload=forking)
    platform = gate.platform(Language.OPENCL)
    exchange = gate._exchange

    gate.evaluate(
        tree.kernel, AS_IT_STANDS, tree.workload, platform, Tier.SCREEN, Budget(), threading.Event()
    )
    assert processes_under(tmp_path / "scratch")
    gate.close()

    assert processes_under(tmp_path / "scratch") == []
    assert not exchange.exists()
    assert not (tmp_path / "scratch").exists()


def test_idle_workers_are_given_back_and_the_gate_still_works(
    gate: Gate, worktree: Trees, evaluate: Evaluate
) -> None:
    evaluate(worktree())
    gate.release_idle()

    assert processes_under(gate._scratch) == []
    assert evaluate(worktree()).status is Status.TIE


def test_a_trace_of_a_broken_workload_raises(
    gate: Gate, platform: Platform, worktree: Trees
) -> None:
    tree = worktree(workload=with_line("make_inputs", "raise ValueError('no')"))

    with pytest.raises(WorkloadError, match="make_inputs: ValueError: no"):
        gate.trace(tree.kernel, tree.workload, threading.Event())


def test_a_trace_of_a_broken_kernel_raises(gate: Gate, platform: Platform, worktree: Trees) -> None:
    tree = worktree(kernel=SCALE_CL.replace("int i =", "int j ="))

    with pytest.raises(GateError, match=r"build at n=4096: error: kernels/k\.cl:4"):
        gate.trace(tree.kernel, tree.workload, threading.Event())

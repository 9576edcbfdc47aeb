"""Other interpreters, odd numbers, references that insist on their dtypes."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from gate_builders import SCALE_CL, SCALE_WORKLOAD, Worktree

from gate.errors import EnvironmentLacks
from gate.evaluate import AS_IT_STANDS, Budget, Gate
from gate.settings import GateSettings
from gate.values.kernel import Language
from gate.values.platform import Platform
from gate.values.verdict import Outcome, Status, Tier, Verdict

Trees = Callable[..., Worktree]
Evaluate = Callable[..., Verdict]


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """This interpreter without its packages."""
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    script.chmod(0o700)
    return str(script)


def test_an_interpreter_without_numpy_is_told_what_to_install(
    bare_python: str, tmp_path: Path
) -> None:
    gate = Gate(tmp_path, GateSettings(python=bare_python), tmp_path / "scratch")

    with pytest.raises(EnvironmentLacks, match=r"No module named 'numpy'.*pip install 'pyopencl"):
        gate.platform(Language.OPENCL)

    inspection = gate.inspect()
    assert inspection.packages["numpy"] is None
    assert inspection.lacks[0].what == "numpy"
    gate.close()


def test_gating_without_numpy_is_no_verdict(
    bare_python: str, tmp_path: Path, platform: Platform
) -> None:
    gate = Gate(tmp_path / "w", GateSettings(python=bare_python), tmp_path / "scratch")
    tree = Worktree(tmp_path / "w")

    with pytest.raises(EnvironmentLacks, match="numpy"):
        gate.evaluate(
            tree.kernel,
            AS_IT_STANDS,
            tree.workload,
            platform,
            Tier.SCREEN,
            Budget(),
            threading.Event(),
        )
    gate.close()


def test_an_infinite_scalar_crosses(gate: Gate, worktree: Trees, evaluate: Evaluate) -> None:
    kernel = SCALE_CL.replace("factor * x[i]", "x[i] > 0.0f ? x[i] : factor")
    workload = SCALE_WORKLOAD.replace('"factor": 2.5', '"factor": float("-inf")').replace(
        "x * x.dtype.type(factor)", "np.where(x > 0, x, x.dtype.type(factor))"
    )
    tree = worktree(kernel=kernel, workload=workload)

    assert evaluate(tree).status is Status.TIE
    traces = gate.trace(tree.kernel, tree.workload, threading.Event())
    assert traces[0].arguments["factor"].value == "-inf"


def test_a_reference_that_insists_on_its_dtype_is_used_as_it_is(
    worktree: Trees, evaluate: Evaluate
) -> None:
    strict = SCALE_WORKLOAD.replace(
        '    return {"y"', '    assert x.dtype == np.float32\n    return {"y"'
    )

    assert evaluate(worktree(workload=strict)).status is Status.TIE


def checking(condition: str) -> str:
    """The scale workload with a check_outputs of its own."""
    return SCALE_WORKLOAD + (
        f"\ndef check_outputs(actual, expected):\n    return bool(({condition}).all())\n"
    )


def test_check_outputs_decides_where_it_is_defined(worktree: Trees, evaluate: Evaluate) -> None:
    tree = worktree(workload=checking("np.abs(actual['y'] - expected['y']) < 1e-3"))

    verdict = evaluate(tree, tree.candidate(k=SCALE_CL.replace("factor *", "-factor *")))

    assert verdict.status is Status.WRONG
    assert verdict.message.endswith("check_outputs returned False")


def test_a_check_that_looks_at_signs_only_cannot_gate(worktree: Trees, evaluate: Evaluate) -> None:
    verdict = evaluate(worktree(workload=checking("actual['y'] * expected['y'] >= 0")))

    assert verdict.status is Status.UNGATEABLE
    assert "all zeros and a copy of an input would pass" in verdict.message


def test_a_kernel_without_a_launch_cannot_be_gated(
    gate: Gate, platform: Platform, worktree: Trees
) -> None:
    tree = worktree()
    kernel = tree.kernel
    unlaunched = type(kernel)(
        kernel.language, kernel.path, kernel.entry, kernel.files, None, kernel.closure
    )

    verdict = gate.evaluate(
        unlaunched,
        AS_IT_STANDS,
        tree.workload,
        platform,
        Tier.SCREEN,
        Budget(),
        threading.Event(),
    )

    assert verdict.status is Status.UNGATEABLE
    assert "no launch was found" in verdict.message
    assert {check.outcome for check in verdict.checks} == {Outcome.NOT_RUN}


def test_what_was_installed_since_is_forked(tmp_path: Path) -> None:
    hidden = tmp_path / "site" / "numpy"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('No module named numpy, yet')\n")
    settings = GateSettings(environment={"PYTHONPATH": str(hidden.parent)})
    gate = Gate(tmp_path, settings, tmp_path / "scratch")
    with pytest.raises(EnvironmentLacks, match="numpy, yet"):
        gate.platform(Language.OPENCL)

    shutil.rmtree(hidden)

    assert gate.platform(Language.OPENCL).name == "pocl-cpu"
    assert gate._pool.unforked == {}
    gate.close()

"""Run a Triton runner in a process of its own, as a worker does, and give what came of it.

A process interprets or compiles, once for all; so each scenario gets a fresh one, forked from a
server that has torch imported already.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gate.worker.languages import Built, Case, Source, Tensor, TensorSpec
from gate.worker.problems import kind_of

T = TypeVar("T")

HEAD = """\
import torch
import triton
import triton.language as tl
"""

VECTOR_ADD = (
    HEAD
    + """

@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=256, num_warps=8)
    return out
"""
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kernel over a worktree, and one call of its wrapper."""

    root: Path
    scratch: Path
    path: str = "add.py"
    entry: str = "add_kernel"
    symbol: str = "add"
    edits: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=lambda: vectors(1000))
    outputs: Mapping[str, TensorSpec] = field(
        default_factory=lambda: {"out": TensorSpec("float32", (1000,))}
    )
    mutates: tuple[str, ...] = ()
    device: str = ""
    budget_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Result:
    """What the runner gave. An error is its kind, as the worker replies it, and its text."""

    built: Built | None = None
    outputs: dict[str, Tensor] = field(default_factory=dict)
    trace: dict[str, Any] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    prepare_error: str = ""
    run_error: str = ""


def vectors(length: int) -> dict[str, Tensor]:
    """x and y, normal, float32."""
    rng = np.random.default_rng(7)
    return {
        name: Tensor("float32", rng.standard_normal(length).astype(np.float32)) for name in "xy"
    }


def write_worktree(root: Path, files: Mapping[str, str]) -> Path:
    """The files below `root`, folders included."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def in_child(work: Callable[[T], Any], argument: T) -> Any:
    """`work(argument)`, in a fresh process that has torch."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(work, argument).result(timeout=100)


def judge(scenario: Scenario) -> Result:
    """Prepare and run the scenario in a fresh process."""
    result: Result = in_child(_judge, scenario)
    return result


def _judge(scenario: Scenario) -> Result:
    from gate.worker.languages import triton

    stand_ins = {}
    for index, (path, text) in enumerate(scenario.edits.items()):
        file = scenario.scratch / f"edit{index}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        stand_ins[path] = file
    source = Source(
        scenario.root,
        stand_ins,
        scenario.path,
        scenario.entry,
        "wrapper",
        scenario.path,
        scenario.symbol,
    )
    runner: Any = triton.open_runner(source, scenario.scratch, scenario.device)
    runner.budget_s = scenario.budget_s
    try:
        return _exercise(runner, scenario)
    finally:
        runner.release()


def _exercise(runner: Any, scenario: Scenario) -> Result:
    case = Case({"N": 1000}, scenario.inputs, scenario.outputs, scenario.mutates)
    try:
        built = runner.prepare(case)
    except Exception as error:
        return Result(prepare_error=f"{kind_of(error)}: {error}")
    trace = runner.trace()
    try:
        outputs = runner.run()
    except Exception as error:
        return Result(built, trace=trace, run_error=f"{kind_of(error)}: {error}")
    return Result(built, outputs, trace, runner.changed_inputs())

"""One launch of a kernel at each declared shape, told as it was made."""

from __future__ import annotations

import threading
from collections.abc import Callable

from gate.arm import Arm
from gate.cases import Case, CasePlan
from gate.conclusion import NotRun, of_kernel, of_workload
from gate.errors import GateError, WorkloadError
from gate.messages import Loaded, Traced
from gate.oracle import Oracle
from gate.settings import DeadlineSettings
from gate.values.trace import ArgumentTrace, LaunchTrace
from gate.values.workload import Workload
from gate.worker_process import WorkerFailure


def trace_launches(
    arm: Arm,
    oracle: Oracle,
    workload: Workload,
    deadlines: DeadlineSettings,
    stop: threading.Event,
    progress: Callable[[str], None],
) -> tuple[LaunchTrace, ...]:
    """Traces in the order of the shapes; one that cannot be carried out here is left out.

    Raises WorkloadError, EnvironmentLacks, Cancelled, and GateError if the kernel fails or no
    shape could be run.
    """
    loaded = _load(oracle, workload, arm.kernel.language, deadlines, stop)
    traces, not_run = [], ""
    for axes in loaded.shapes:
        plan = CasePlan(axes, seed=0)
        progress(f"tracing {arm.kernel.entry} at {plan.label}")
        case = _make(oracle, workload, plan, deadlines, stop)
        try:
            opened = arm.open(stop)
            arm.prepare(case, loaded.mutates, deadlines.original_s, stop)
            if opened.can_time:
                # Where launches are interpreted, building has told all there is to trace.
                arm.run(case.slot, deadlines.original_s, stop)
            traces.append(_as_value(arm.trace(stop)))
        except WorkerFailure as failure:
            conclusion = of_kernel(failure, f"trace of {arm.kernel.entry}", plan.label)
            if not isinstance(conclusion, NotRun):
                raise GateError(conclusion.message) from failure
            not_run = conclusion.message
    if not traces:
        raise GateError(not_run)
    return tuple(traces)


def _load(
    oracle: Oracle,
    workload: Workload,
    language: str,
    deadlines: DeadlineSettings,
    stop: threading.Event,
) -> Loaded:
    try:
        return oracle.load(workload, language, deadlines.start_s, stop)
    except WorkerFailure as failure:
        raise WorkloadError(of_workload(failure, workload.path).message) from failure


def _make(
    oracle: Oracle,
    workload: Workload,
    plan: CasePlan,
    deadlines: DeadlineSettings,
    stop: threading.Event,
) -> Case:
    try:
        return oracle.case(plan, 0, (), deadlines.reference_s, stop)
    except WorkerFailure as failure:
        raise WorkloadError(of_workload(failure, workload.path).message) from failure


def _as_value(traced: Traced) -> LaunchTrace:
    return LaunchTrace(
        axes=traced.axes,
        kernel=traced.kernel,
        grid=traced.grid,
        block=traced.block,
        options=traced.options,
        arguments={
            name: ArgumentTrace(
                kind=each.kind,
                dtype=each.dtype,
                value=each.value,
                alignment_bytes=each.alignment_bytes,
                shape=each.shape,
                strides=each.strides,
                overlaps=each.overlaps,
            )
            for name, each in traced.arguments.items()
        },
    )

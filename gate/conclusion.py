"""What a worker's failure means for the kernel that was being judged."""

from __future__ import annotations

from gate.errors import EnvironmentLacks
from gate.values.verdict import Status
from gate.worker_process import DeadlinePassed, WorkerDied, WorkerFailure, WorkerRaised


class Concluded(Exception):
    """Unwinds an evaluation to its verdict; it never leaves `Gate.evaluate`."""

    def __init__(self, status: Status, message: str, log: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.log = log


class NotRun(Concluded):
    """This machine cannot carry the launch out: neither a pass nor the kernel's fault."""


STATUS_OF_KIND = {
    "build": Status.COMPILE_ERROR,
    "launch": Status.CRASHED,
    "wrote_outside": Status.WRONG,
    "workload": Status.UNGATEABLE,
    "raised": Status.CRASHED,
}


def of_kernel(failure: WorkerFailure, stage: str, label: str) -> Concluded:
    """A kernel's worker failed in a stage, on a case (`correctness`, `M=256`).

    Raises EnvironmentLacks.
    """
    where = f"{stage} at {label}"
    if isinstance(failure, DeadlinePassed):
        return Concluded(Status.TIMEOUT, f"{where}: {failure.message}", failure.log)
    if isinstance(failure, WorkerRaised):
        _raise_if_environment(failure)
        if failure.kind == "cannot_run":
            return NotRun(Status.UNMEASURED, f"{where}: {failure.message}", failure.log)
        status = STATUS_OF_KIND[failure.kind]
        if failure.kind == "build":
            where, what = f"build at {label}", _first_error(failure.log)
        else:
            what = failure.message
        return Concluded(status, f"{where}: {what}", failure.log)
    return Concluded(Status.CRASHED, f"{where}: {failure.message}", failure.log)


def of_workload(failure: WorkerFailure, path: str) -> Concluded:
    """The oracle failed: the workload file did, since nothing else runs there.

    Raises EnvironmentLacks if it is numpy that is missing.
    """
    _raise_if_environment(failure)
    if isinstance(failure, DeadlinePassed):
        message = f"{path}: {failure.message} (make_inputs, reference and comparison together)"
        return Concluded(Status.TIMEOUT, message, failure.log)
    if isinstance(failure, WorkerDied):
        return Concluded(Status.UNGATEABLE, f"{path}: the worker {failure.message}", failure.log)
    return Concluded(Status.UNGATEABLE, failure.message, failure.log)


def _raise_if_environment(failure: WorkerFailure) -> None:
    if isinstance(failure, WorkerRaised) and failure.kind == "environment":
        advice = "klineage doctor tells what the kernels' interpreter lacks"
        raise EnvironmentLacks(failure.message, advice) from failure


def _first_error(log: str) -> str:
    """The compiler's first line with an error, which is where to look."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")

"""What a worker's failure means for the kernel that was being judged."""

from __future__ import annotations

from gate.values.verdict import Status
from gate.worker_process import DeadlinePassed, WorkerDied, WorkerFailure, WorkerRaised


class Concluded(Exception):
    """Unwinds an evaluation to its verdict; it never leaves `Gate.evaluate`."""

    def __init__(self, status: Status, message: str, log: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.log = log


STATUS_OF_KIND = {
    "build": Status.COMPILE_ERROR,
    "launch": Status.CRASHED,
    "wrote_outside": Status.WRONG,
    "cannot_run": Status.UNMEASURED,
    "workload": Status.UNGATEABLE,
    "raised": Status.CRASHED,
}


def of_kernel(failure: WorkerFailure, where: str) -> Concluded:
    """A kernel's worker failed at `where` (`correctness at M=256`)."""
    if isinstance(failure, DeadlinePassed):
        return Concluded(Status.TIMEOUT, f"{where}: {failure.message}", failure.log)
    if isinstance(failure, WorkerRaised):
        status = STATUS_OF_KIND[failure.kind]
        what = _first_error(failure.log) if failure.kind == "build" else failure.message
        return Concluded(status, f"{where}: {what}", failure.log)
    return Concluded(Status.CRASHED, f"{where}: {failure.message}", failure.log)


def of_workload(failure: WorkerFailure, path: str) -> Concluded:
    """The oracle failed: the workload file did, since nothing else runs there."""
    if isinstance(failure, DeadlinePassed):
        message = f"{path}: {failure.message} (make_inputs, reference and comparison together)"
        return Concluded(Status.TIMEOUT, message, failure.log)
    if isinstance(failure, WorkerDied):
        return Concluded(Status.UNGATEABLE, f"{path}: the worker {failure.message}", failure.log)
    return Concluded(Status.UNGATEABLE, failure.message, failure.log)


def _first_error(log: str) -> str:
    """The compiler's first line with an error, which is where to look."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")

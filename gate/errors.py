"""Errors of the gate: our machine, our code or the environment failed, never the kernel.

GateError                 anything below
├── EnvironmentLacks      the kernels' interpreter or device lacks something; says what would fix it
├── WorkloadError         the workload file cannot be used; names file, symbol, expected and got
├── StaleCandidate        the candidate was made from other bytes than the baseline's
└── Cancelled             the stop event was set
"""

from __future__ import annotations


class GateError(Exception):
    """A failure of the gate itself."""


class EnvironmentLacks(GateError):
    """Something is not installed or no device answers. `fix` is a command to run, or advice."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}; {fix}" if fix else what)
        self.what = what
        self.fix = fix


class WorkloadError(GateError):
    """The workload cannot be loaded or called: file, symbol, what was expected and what came."""


class StaleCandidate(GateError):
    """An edit was made from bytes that are not the baseline's any more."""


class Cancelled(GateError):
    """`stop` was set; the workers were killed and there is no verdict."""

"""What a worker's reply says went wrong: a kind the parent turns into a verdict."""

from __future__ import annotations

import errno


class WorkloadProblem(Exception):
    """The workload file cannot be used. `str(error)` names file, symbol, expected and got."""


class EnvironmentProblem(Exception):
    """Something is not installed in this interpreter, or no device answers."""


KINDS = {
    "BuildFailed": "build",
    "LaunchFailed": "launch",
    "WroteOutside": "wrote_outside",
    "CannotRun": "cannot_run",
    "WorkloadProblem": "workload",
    "EnvironmentProblem": "environment",
}
"""Exception class → kind. By name: the oracle imports no language, and numpy not before it must."""


def kind_of(error: BaseException) -> str:
    """The kind of a problem; `raised` for whatever the user's or our own code threw.

    A full disk is the machine's lack, whoever met it.
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "environment"
    return next((KINDS[c.__name__] for c in type(error).__mro__ if c.__name__ in KINDS), "raised")

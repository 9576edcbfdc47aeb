"""Asking the kernels' interpreter what it has: a platform to run on, and an inspection of all."""

from __future__ import annotations

import threading

from gate.errors import EnvironmentLacks
from gate.inspection import Inspection, inspection_of
from gate.messages import Probed, Report
from gate.pool import WorkerPool
from gate.settings import GateSettings
from gate.values.kernel import Language
from gate.values.platform import Platform
from gate.worker_process import WorkerFailure, WorkerRaised

PACKAGES = {Language.OPENCL: "'pyopencl[pocl]' numpy", Language.TRITON: "torch triton numpy"}
"""Languages that have a runner, and what makes it run, for pip."""


def ask_platform(pool: WorkerPool, settings: GateSettings, language: Language) -> Platform:
    """The device that a language's kernels run on. Raises EnvironmentLacks."""
    if language not in PACKAGES:
        known = ", ".join(PACKAGES)
        raise EnvironmentLacks(f"the gate cannot run {language} kernels", f"it runs {known}")
    worker = pool.runner(language.value)
    params = {"language": language.value, "device": settings.devices.get(language.value, "")}
    try:
        report = worker.call("report", params, Report, settings.deadlines.start_s, _never())
    except WorkerFailure as failure:
        # What is lacking may be installed before the next question; then it can be forked, too.
        pool.unforked.pop(language.value, None)
        known_lack = isinstance(failure, WorkerRaised) and failure.kind == "environment"
        install = f"try: {pool.python} -m pip install {PACKAGES[language]}"
        raise EnvironmentLacks(
            f"no platform for {language.value}: {failure.message}",
            install if known_lack else failure.log[-500:],
        ) from failure
    finally:
        pool.end(worker)
    return Platform(
        report.name, report.device, report.capabilities, report.toolchain, report.can_run
    )


def inspect_machine(pool: WorkerPool, settings: GateSettings) -> Inspection:
    """Versions, devices and tools. Raises EnvironmentLacks if the interpreter cannot be run."""
    worker = pool.probe()
    try:
        probed = worker.call("probe", {}, Probed, settings.deadlines.start_s, _never())
    except WorkerFailure as failure:
        raise EnvironmentLacks(
            f"{pool.python} cannot run a worker: {failure.message}",
            "set python in [gate] to a Python 3.10 or newer with numpy",
        ) from failure
    finally:
        pool.end(worker)
    return inspection_of(probed)


def _never() -> threading.Event:
    """A stop event that nobody sets: these questions are short."""
    return threading.Event()

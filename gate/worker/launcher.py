"""A kernel's worker: builds it, launches it, times it. Knows nothing of what is right."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .arrays import is_float, read_arrays, write_arrays
from .languages import Case, Runner, Source, TensorSpec, language_module, runner_for
from .problems import EnvironmentProblem


class Launcher:
    """One kernel, one case at a time."""

    def __init__(self) -> None:
        self._runner: Runner | None = None
        self._case: Case | None = None

    def report(self, params: dict[str, Any]) -> dict[str, object]:
        """The device that a language would run on here."""
        module = _module(params["language"])
        try:
            return dataclasses.asdict(module.report_device(params["device"]))
        except LookupError as error:
            raise EnvironmentProblem(str(error)) from error

    def open(self, params: dict[str, Any]) -> dict[str, object]:
        """Take a kernel on, in the place of the one before."""
        _module(params["language"])
        if self._runner is not None:
            self._runner.release()
        told = params["source"]
        overlay = {path: Path(file) for path, file in told["overlay"].items()}
        source = Source(**{**told, "root": Path(told["root"]), "overlay": overlay})
        try:
            runner = runner_for(
                params["language"], source, Path(params["scratch"]), params["device"]
            )
        except LookupError as error:
            raise EnvironmentProblem(str(error)) from error
        self._runner = runner
        return {"trust": runner.trust, "can_time": runner.can_time, "method": runner.timing_method}

    def prepare(self, params: dict[str, Any]) -> dict[str, object]:
        """Build for a case and place its inputs."""
        runner = self._opened()
        outputs = {
            each["name"]: TensorSpec(each["dtype"], tuple(each["shape"]))
            for each in params["outputs"]
        }
        self._case = case = Case(
            params["axes"], read_arrays(params["inputs"]), outputs, tuple(params["mutates"])
        )
        begun = time.monotonic()
        built = runner.prepare(case)
        return {**dataclasses.asdict(built), "elapsed_s": time.monotonic() - begun}

    def run(self, params: dict[str, Any]) -> dict[str, object]:
        """Launch over poisoned outputs; twice, with different poisons, if one is of integers.

        No integer pattern is impossible, so an element that nobody wrote is seen by its change.
        """
        runner, case = self._opened(), self._prepared()
        integers = any(not is_float(spec.dtype) for spec in case.outputs.values())
        folder = Path(params["folder"])
        begun = time.monotonic()
        runs = []
        for attempt in range(2 if integers else 1):
            runs.append(write_arrays(folder / str(attempt), dict(runner.run())))
        return {
            "runs": runs,
            "changed_inputs": runner.changed_inputs(),
            "launch": _launch(runner.trace()),
            "elapsed_s": time.monotonic() - begun,
        }

    def trace(self, params: dict[str, Any]) -> dict[str, object]:
        """The launch that `run` made."""
        return dict(self._opened().trace())

    def time(self, params: dict[str, Any]) -> dict[str, object]:
        """Latency of each launch, microseconds."""
        return {"samples_us": self._opened().time(params["launches"])}

    def outputs(self, params: dict[str, Any]) -> dict[str, object]:
        """What the latest launch, a timed one included, left behind."""
        outputs: dict[str, Any] = dict(self._opened().outputs())
        return {
            "outputs": write_arrays(Path(params["folder"]), outputs),
            "changed_inputs": self._opened().changed_inputs(),
        }

    def _opened(self) -> Runner:
        if self._runner is None:
            raise RuntimeError("open comes first")
        return self._runner

    def _prepared(self) -> Case:
        if self._case is None:
            raise RuntimeError("prepare comes first")
        return self._case


def handlers() -> dict[str, Callable[[dict[str, Any]], Mapping[str, object]]]:
    """The methods of role `runner`."""
    launcher = Launcher()
    names = ("report", "open", "prepare", "run", "trace", "time", "outputs")
    return {name: getattr(launcher, name) for name in names}


def _module(language: str) -> Any:
    try:
        return language_module(language)
    except ImportError as error:
        raise EnvironmentProblem(f"{language}: {error}") from error


def _launch(trace: Mapping[str, object]) -> dict[str, object]:
    """What, besides the binary, decides a launch: equal binaries and launches are one kernel."""
    return {key: trace[key] for key in ("grid", "block", "options") if key in trace}

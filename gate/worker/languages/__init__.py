"""One file a surface language: build a kernel, launch it, time it.

A runner lives in a candidate (or baseline) worker. It sees inputs and the shapes of outputs, never
expected values, tolerances, seeds or the verdict. To add a language, add a file here with its name
that has the functions of `LanguageModule`, and name it in `LANGUAGES`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class Source:
    """The kernel to build, over a worktree that is only read."""

    root: Path
    """Worktree root: includes and the kernel's own package resolve there."""
    overlay: Mapping[str, Path]
    """Relative path → file whose bytes stand in for it (a candidate's edits, in scratch)."""
    path: str
    entry: str
    launch_kind: str
    """`ndrange` or `wrapper`, as gate.values.kernel.LaunchKind."""
    launch_path: str
    launch_symbol: str

    def locate(self, path: str) -> Path:
        """The file to read for a relative path: its stand-in, or the worktree's own."""
        return self.overlay.get(path, self.root / path)


@dataclass(frozen=True, slots=True)
class Tensor:
    """An array that crosses processes. `array` carries the bits when numpy lacks the dtype."""

    dtype: str
    """`float32`, `bfloat16` (bits as uint16), `float8_e4m3fn` (bits as uint8), `int32`, …"""
    array: np.ndarray


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape and dtype of an output, without values."""

    dtype: str
    shape: tuple[int, ...]


Input = Tensor | int | float | bool


@dataclass(frozen=True, slots=True)
class Case:
    """One call of the kernel: a shape with its inputs, in the order `make_inputs` gave them."""

    axes: Mapping[str, int]
    inputs: Mapping[str, Input]
    outputs: Mapping[str, TensorSpec]
    mutates: tuple[str, ...] = ()
    """Inputs the workload declares as written."""


@dataclass(frozen=True, slots=True)
class Built:
    """What the toolchain made, as gate.values.artifact.BuildArtifact."""

    digest: str
    ir: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, int | None] = field(default_factory=dict)
    log: str = ""


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """The platform as its driver describes it, as gate.values.platform.Platform."""

    name: str
    device: str
    capabilities: Mapping[str, bool | int | float | str]
    toolchain: Mapping[str, str]
    can_run: bool


class BuildFailed(Exception):
    """The toolchain refused the kernel. `str(error)` is its log: a verdict, not our failure."""


class LaunchFailed(Exception):
    """The launch is not one this kernel takes: an unbound parameter, a range the driver refuses.

    `str(error)` says which and why: a verdict, not our failure. Raised by `prepare` and `run`.
    """


class WroteOutside(Exception):
    """The kernel wrote beyond a buffer; `str(error)` names it: a verdict. Raised by `run`, `outputs`."""


class CannotRun(Exception):
    """This machine cannot carry the launch out; `str(error)` says why.

    Raised by `run` and `time` where launches are interpreted for a target that is not here. The
    correctness check is then "not run": neither a pass nor the kernel's fault.
    """


class Runner(Protocol):
    """A kernel on a device, one case at a time."""

    trust: str
    """`harness-launched` or `python-hosted`."""
    can_time: bool
    """False where launches do not run on the real device (an interpreter)."""
    timing_method: str
    """Clock, cache state and what one sample spans."""

    def prepare(self, case: Case) -> Built:
        """Build for this case and place its buffers. Raises BuildFailed."""
        ...

    def run(self) -> dict[str, Tensor]:
        """Poison the outputs, launch once, and give outputs (and mutated inputs) by name."""
        ...

    def outputs(self) -> dict[str, Tensor]:
        """What the latest launch left in the outputs, by name; also after `time`."""
        ...

    def trace(self) -> dict[str, object]:
        """The launch that `run` made, as the fields of gate.values.trace.LaunchTrace."""
        ...

    def changed_inputs(self) -> list[str]:
        """Inputs whose bytes differ since `prepare` although not declared mutated."""
        ...

    def time(self, launches: int) -> list[float]:
        """Latency of each of `launches` launches, microseconds; warm build, poisoned before.

        The gate reads `outputs` afterwards and compares them again."""
        ...

    def release(self) -> None:
        """Give buffers and contexts back."""
        ...


LANGUAGES = ("opencl", "triton")
"""Surface languages that have a runner: each the name of a module in this folder."""


class LanguageModule(Protocol):
    """What a language's file offers."""

    def open_runner(self, source: Source, scratch: Path, device: str) -> Runner:
        """A runner for the kernel. `scratch` is this worker's own folder (caches belong there);
        `device` selects a device as the settings write it, empty for the language's default."""
        ...

    def preload(self, here: bool) -> None:
        """Import what launches need, besides this file, so that forks of this process have it.

        Opens no device and starts no thread: neither survives a fork. `here`: launches run on a
        device of this machine, and are not interpreted.
        """
        ...

    def report_device(self, device: str) -> DeviceReport:
        """The platform `open_runner` would run on. Raises ImportError or LookupError if none."""
        ...


def language_module(language: str) -> LanguageModule:
    """The file of a surface language. Its runtime (pyopencl, torch) is imported only then."""
    if language not in LANGUAGES:
        raise LookupError(f"no runner for {language}; there are {', '.join(LANGUAGES)}")
    return importlib.import_module(f"{__name__}.{language}")


def runner_for(language: str, source: Source, scratch: Path, device: str) -> Runner:
    """A runner for a kernel written in `language`."""
    return language_module(language).open_runner(source, scratch, device)

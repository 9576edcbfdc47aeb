"""Run Triton kernels in its interpreter, on a machine without a GPU.

The interpreter is chosen by TRITON_INTERPRET before Triton is imported, and holds for the whole
process. It runs one program of the grid after the other in numpy: right for small shapes, and for
large ones so slow that a launch is given up once its duration can be foreseen.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .languages import CannotRun, LaunchFailed
from .triton_bfloat16 import widened_bfloat16
from .triton_launch import Launch, describe_arguments, options_of
from .triton_target import Target, report_target

_FORESEE_AFTER_S = 1.0


def start_interpreter(target: Target) -> None:
    """Make this process interpret. Raises RuntimeError if Triton was imported to compile."""
    if "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") != "1":
        raise RuntimeError("Triton was imported before its interpreter was chosen")
    os.environ["TRITON_INTERPRET"] = "1"
    install_absent_gpu(target)


def install_absent_gpu(target: Target) -> None:
    """Give Triton a driver that names the target, for it to compile or to interpret without one."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime.driver import driver

    gpu = GPUTarget("cuda", target.capability, 32)
    driver.set_active(_AbsentGpu(gpu, report_target(target).capabilities))


class _AbsentGpu:
    """What host code may ask Triton's driver for before it launches anything."""

    def __init__(self, target: Any, capabilities: Any) -> None:
        self._target = target
        self._properties = _Properties()
        if "shared_memory_per_block_optin_bytes" in capabilities:
            optin = capabilities["shared_memory_per_block_optin_bytes"]
            self._properties["max_shared_mem"] = optin
        self._properties["warpSize"] = capabilities["warp_size"]

    @property
    def utils(self) -> _AbsentGpu:
        return self

    def get_device_properties(self, device: int) -> dict[str, int]:
        return self._properties

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")


class _Properties(dict[str, int]):
    def __missing__(self, key: str) -> int:
        raise CannotRun(f"host code asks the GPU for its {key}, and there is none here")


@contextmanager
def recording_interpreted(launches: list[Launch], note: Callable[..., None]) -> Iterator[None]:
    """Inside, launches are recorded and not carried out; `note` gets function, grid and call."""
    from triton.runtime.interpreter import InterpretedFunction

    original = InterpretedFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        launch = _launch(self, args, kwargs, grid)
        note(self, launch.grid, args, kwargs)
        launches.append(launch)

    InterpretedFunction.run = run
    try:
        yield
    finally:
        InterpretedFunction.run = original


@contextmanager
def interpreting(budget_s: float) -> Iterator[None]:
    """Inside, launches are carried out. Raises CannotRun once one would outlast `budget_s`."""
    from triton.runtime.interpreter import InterpreterError, interpreter_builder

    original = interpreter_builder.set_grid_idx
    progress = _Progress(budget_s, interpreter_builder)

    def set_grid_idx(x: int, y: int, z: int) -> None:
        progress.step((x, y, z))
        original(x, y, z)

    interpreter_builder.set_grid_idx = set_grid_idx
    try:
        with widened_bfloat16():
            yield
    except InterpreterError as error:
        foreseen = error.__cause__
        if isinstance(foreseen, CannotRun):
            raise foreseen from None
        raise CannotRun(f"Triton's interpreter stopped: {error}") from error
    finally:
        interpreter_builder.set_grid_idx = original


@contextmanager
def first_config() -> Iterator[None]:
    """Inside, autotuners take their first config that is not pruned: there is nothing to time."""
    from triton.runtime.autotuner import Autotuner

    original = Autotuner.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        configs = self.configs
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        try:
            self.configs = list(self.prune_configs(kwargs))[:1]
            return original(self, *args, **kwargs)
        finally:
            self.configs = configs

    Autotuner.run = run
    try:
        yield
    finally:
        Autotuner.run = original


def wants_gpu(error: BaseException) -> bool:
    """Whether host code failed by asking torch for a CUDA device."""
    place = error.__traceback__
    while place is not None:
        if place.tb_frame.f_globals.get("__name__", "").startswith("torch.cuda"):
            return True
        place = place.tb_next
    return "CUDA" in str(error) or "NVIDIA driver" in str(error)


class _Progress:
    def __init__(self, budget_s: float, builder: Any) -> None:
        self._budget_s = budget_s
        self._builder = builder
        self._programs = 0
        self._start_s = 0.0

    def step(self, index: tuple[int, int, int]) -> None:
        if index == (0, 0, 0):
            self._programs, self._start_s = 0, time.monotonic()
        spent_s = time.monotonic() - self._start_s
        if self._programs and spent_s > _FORESEE_AFTER_S:
            x, y, z = self._builder.grid_dim
            foreseen_s = spent_s / self._programs * x * y * z
            if foreseen_s > self._budget_s:
                raise CannotRun(
                    f"the interpreter would need {foreseen_s:,.0f} s for the {x * y * z:,} programs"
                    f" of this launch (limit {self._budget_s:,.0f} s): add a smaller shape to SHAPES"
                )
        self._programs += 1


def _launch(function: Any, args: Any, kwargs: dict[str, Any], grid: Any) -> Launch:
    from triton.runtime.jit import KernelParam

    signature = inspect.signature(function.fn)
    own = {name: value for name, value in kwargs.items() if name in signature.parameters}
    try:
        call = signature.bind(*args, **own)
    except TypeError as error:
        raise LaunchFailed(f"{function.fn.__name__}: {error}") from error
    call.apply_defaults()
    constexprs = {
        name
        for index, (name, parameter) in enumerate(signature.parameters.items())
        if KernelParam(index, parameter, False, False).is_constexpr
    }
    extents = grid(dict(call.arguments)) if callable(grid) else grid
    return Launch(
        function=function,
        name=function.fn.__name__,
        grid=tuple(int(extent) for extent in extents),
        arguments=describe_arguments(call.arguments, constexprs),
        options=options_of(kwargs),
    )

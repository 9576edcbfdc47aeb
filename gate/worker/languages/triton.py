"""Triton: kernels that their own Python wrapper launches.

On a CUDA GPU they run there and are timed there. Without one they run in Triton's interpreter, are
compiled for a target in a child process, and nothing is timed.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import replace
from pathlib import Path

import torch

from ..triton_binary import Binary, binary_of
from ..triton_build import built, host_digest
from ..triton_compile import TargetCompiler, pack_call
from ..triton_interpreter import (
    first_config,
    interpreting,
    recording_interpreted,
    start_interpreter,
    wants_gpu,
)
from ..triton_launch import (
    Launch,
    jit_function,
    noting_refusals,
    recording_compiled,
    trace_fields,
)
from ..triton_target import Target, report_target, select_target
from ..triton_timing import METHOD, LaunchTimer
from ..wrapper import ImportFailed, Wrapper, failure_log, poisoned_allocations
from . import (
    BuildFailed,
    Built,
    CannotRun,
    Case,
    DeviceReport,
    LaunchFailed,
    Runner,
    Source,
    Tensor,
)

INTERPRETER_BUDGET_S = 60.0
"""Longest an interpreted launch may be foreseen to take, unless told otherwise."""


def open_runner(source: Source, scratch: Path, device: str) -> Runner:
    """A runner on the GPU that `device` names, or in the interpreter for a target.

    `scratch` holds this worker's compile cache: sharing one would share builds between arms.
    """
    target = select_target(device)
    os.environ["TRITON_CACHE_DIR"] = str(scratch / "triton-cache")
    # Line tables hold line numbers: with them a comment above the kernel makes a new binary.
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    if target.cuda_device is None:
        return InterpretedTriton(source, target)
    os.environ.pop("TRITON_INTERPRET", None)
    return CudaTriton(source, target.cuda_device)


def preload(here: bool) -> None:
    """Triton, where it will launch; an interpreter has to be chosen before it is imported."""
    if here:
        importlib.import_module("triton.compiler.code_generator")


def report_device(device: str) -> DeviceReport:
    """The platform `open_runner` would run on. Raises LookupError for a GPU that is not here."""
    return report_target(select_target(device))


class CudaTriton:
    """Kernels launched on the GPU by their wrapper."""

    trust = "python-hosted"
    can_time = True
    timing_method = METHOD

    def __init__(self, source: Source, ordinal: int) -> None:
        torch.cuda.set_device(ordinal)
        self._source = source
        self._wrapper = Wrapper(source, f"cuda:{ordinal}")
        self._timer: LaunchTimer | None = None
        self._result: object = None
        self._launches: list[Launch] = []

    def prepare(self, case: Case) -> Built:
        """Build by launching: once for compilers and autotuners to settle, once to look on."""
        self._wrapper.place(case)
        entry = _entry(self._wrapper, self._source)
        call = self._wrapper.bound()
        refusals: list[Exception] = []
        launches: list[Launch] = []
        try:
            with noting_refusals(refusals):
                call()
            torch.cuda.synchronize()
            with recording_compiled(launches):
                self._wrapper.restore()
                call()
            torch.cuda.synchronize()
        except LaunchFailed:
            raise
        except Exception as error:
            if any(error is refusal for refusal in refusals):
                raise BuildFailed(failure_log(error, self._source.root)) from None
            raise LaunchFailed(failure_log(error, self._source.root)) from None
        self._launches = [launch for launch in launches if launch.function is entry]
        _require_launch(self._launches, launches, self._source)
        by_kernel = {id(launch.compiled): launch.compiled for launch in launches}
        made = {key: binary_of(compiled) for key, compiled in by_kernel.items()}
        binaries = [made[id(launch.compiled)] for launch in launches]
        own = made[id(self._launches[0].compiled)]
        self._timer = None  # its calibration launches: only where something is timed
        self._wrapper.restore()
        return built(own, launches, binaries, _host(self._wrapper))

    def run(self) -> dict[str, Tensor]:
        """Outputs of one launch into memory that read NaN before."""
        self._wrapper.restore()
        try:
            with poisoned_allocations():
                self._result = self._wrapper.bound()()
                torch.cuda.synchronize()
        except Exception as error:
            raise LaunchFailed(failure_log(error, self._source.root)) from None
        return self.outputs()

    def outputs(self) -> dict[str, Tensor]:
        return self._wrapper.name_outputs(self._result)

    def trace(self) -> dict[str, object]:
        return trace_fields(self._wrapper.case.axes, self._launches)

    def changed_inputs(self) -> list[str]:
        return self._wrapper.changed_inputs()

    def time(self, launches: int) -> list[float]:
        """Latency of each launch in microseconds; memory the allocator reuses read NaN before."""
        case = self._wrapper.case
        if self._timer is None:
            # It launches too, to calibrate itself: before the poison.
            self._timer = LaunchTimer(self._wrapper.bound(), self._wrapper.restore)
        with poisoned_allocations():
            poisoned = [
                torch.empty(
                    spec.shape, dtype=getattr(torch, spec.dtype), device=self._wrapper.device
                )
                for name, spec in case.outputs.items()
                if name not in case.mutates
            ]
        del poisoned
        samples_us, self._result = self._timer.samples_us(launches)
        return samples_us

    def release(self) -> None:
        self._wrapper.clear()
        self._result = None
        self._timer = None
        self._launches = []
        torch.cuda.empty_cache()


class InterpretedTriton:
    """Kernels interpreted on the CPU, and compiled for a target that is not here."""

    trust = "python-hosted"
    can_time = False
    timing_method = "not timed: launches are interpreted on the CPU"

    def __init__(
        self, source: Source, target: Target, budget_s: float = INTERPRETER_BUDGET_S
    ) -> None:
        self._source = source
        self._compiler = TargetCompiler(source, target)
        start_interpreter(target)
        self._wrapper = Wrapper(source, "cpu")
        self.budget_s = budget_s
        """Longest a launch may be foreseen to take, seconds."""
        self._result: object = None
        self._launches: list[Launch] = []

    def prepare(self, case: Case) -> Built:
        """Compile for the target what the wrapper would launch. Raises CannotRun as well."""
        self._wrapper.place(case)
        entry = self._load_entry()
        launches: list[Launch] = []
        calls: list[bytes] = []
        stopped = self._record(launches, calls)
        own = [index for index, launch in enumerate(launches) if launch.function is entry]
        if not own and stopped is not None:
            raise self._judge(stopped)
        self._launches = [launches[index] for index in own]
        _require_launch(self._launches, launches, self._source)
        made: dict[bytes, Binary] = {}
        for call in calls:
            if call not in made:
                made[call] = self._compiler.compile(call)
        binaries = [made[call] for call in calls]
        self._launches = [replace(launches[i], options=binaries[i].options) for i in own]
        self._wrapper.place(case)
        return built(binaries[own[0]], launches, binaries, _host(self._wrapper))

    def run(self) -> dict[str, Tensor]:
        """Outputs of one interpreted launch. Raises CannotRun where the interpreter cannot."""
        self._wrapper.restore()
        try:
            with poisoned_allocations(), first_config(), interpreting(self.budget_s):
                self._result = self._wrapper.bound()()
        except CannotRun:
            raise
        except Exception as error:
            raise self._judge(error) from None
        return self.outputs()

    def outputs(self) -> dict[str, Tensor]:
        return self._wrapper.name_outputs(self._result)

    def trace(self) -> dict[str, object]:
        return trace_fields(self._wrapper.case.axes, self._launches)

    def changed_inputs(self) -> list[str]:
        return self._wrapper.changed_inputs()

    def time(self, launches: int) -> list[float]:
        raise CannotRun(self.timing_method)

    def release(self) -> None:
        self._wrapper.clear()
        self._result = None
        self._compiler.close()

    def _load_entry(self) -> object:
        try:
            return _entry(self._wrapper, self._source)
        except ImportFailed as failure:
            if isinstance(failure.error, CannotRun) or wants_gpu(failure.error):
                raise CannotRun(str(failure)) from None
            raise

    def _record(self, launches: list[Launch], calls: list[bytes]) -> Exception | None:
        """Call the wrapper without carrying its launches out; give what stopped it, if anything.

        Host code that reads a result goes wrong here: only launches before that are seen.
        """

        def note(function: object, grid: tuple[int, ...], args: object, kwargs: object) -> None:
            calls.append(pack_call(function, grid, args, kwargs))

        try:
            with first_config(), recording_interpreted(launches, note):
                self._wrapper.bound()()
        except Exception as error:
            return error
        return None

    def _judge(self, error: Exception) -> Exception:
        """What an exception of host code means where it may only miss a GPU."""
        if isinstance(error, (BuildFailed, CannotRun, LaunchFailed)):
            return error
        log = failure_log(error, self._source.root)
        if wants_gpu(error) or isinstance(error, (AssertionError, RuntimeError)):
            return CannotRun(f"host code stops where there is no GPU: {log}")
        return LaunchFailed(log)


def _entry(wrapper: Wrapper, source: Source) -> object:
    function = jit_function(wrapper.attribute(source.path, source.entry))
    if function is None:
        raise BuildFailed(f"{source.entry} in {source.path} is not a Triton kernel")
    return function


def _require_launch(own: list[Launch], launches: list[Launch], source: Source) -> None:
    if not own:
        others = ", ".join(sorted({launch.name for launch in launches})) or "nothing"
        raise LaunchFailed(
            f"{source.launch_symbol} returned without launching {source.entry}: it launched {others}"
        )


def _host(wrapper: Wrapper) -> str:
    return host_digest(wrapper.source_bytes(), wrapper.modules)

"""OpenCL: our own launcher on any OpenCL device, by default PoCL on the CPU.

No host code of the kernel runs but its `launch(axes)` function, which only returns numbers.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import re
import shlex
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

from ..arrays import carrier
from ..pocl_cpu import built_for_host
from . import BuildFailed, Built, Case, DeviceReport, LaunchFailed, Source, Tensor
from .opencl_buffer import GuardedBuffer
from .opencl_device import choose_device, report
from .opencl_launch import NdRange, Parameter, launch_at, scalar, unbindable

LOG_CHARACTERS = 16_384


def open_runner(source: Source, scratch: Path, device: str) -> OpenClRunner:
    """A runner for one kernel; see `Runner`."""
    keep_caches_in(scratch)
    return OpenClRunner(source, scratch, choose_device(device))


def preload(here: bool) -> None:
    """Nothing besides: pyopencl is imported with this file, and a platform has threads."""


def report_device(device: str) -> DeviceReport:
    """The device that `open_runner` would use."""
    return report(choose_device(device))


def keep_caches_in(scratch: Path) -> None:
    """Compiled kernels stay in this worker's folder: nobody else's are run, none are left."""
    cache = scratch / "pocl"
    cache.mkdir(parents=True, exist_ok=True)
    os.environ["POCL_CACHE_DIR"] = str(cache)


class OpenClRunner:
    """One kernel on one device. Implements `Runner`."""

    trust = "harness-launched"
    can_time = True
    timing_method = "OpenCL event START to END of each launch, caches warm, same buffers"

    def __init__(self, source: Source, scratch: Path, device: Any) -> None:
        self._source = source
        self._includes = scratch / "includes"
        self._links = scratch / "links"
        self._device = device
        self._context = cl.Context([device])
        self._queue = cl.CommandQueue(
            self._context, properties=cl.command_queue_properties.PROFILING_ENABLE
        )
        self._programs: dict[str, Any] = {}
        self._buffers: dict[str, GuardedBuffer] = {}
        self._turn = itertools.count()
        self._stage_includes()

    def prepare(self, case: Case) -> Built:
        """Build with the launch's options and place the case's buffers."""
        self._case = case
        self._range = launch = launch_at(self._source, case.axes)
        program = self._program(launch.options)
        try:
            self._kernel = cl.Kernel(program, self._source.entry)
        except cl.Error as error:
            raise BuildFailed(
                f"{self._source.path} defines no kernel {self._source.entry}"
            ) from error
        self._parameters = self._read_parameters()
        self._place(case)
        self._bind(case)
        return Built(
            digest=self._digest(program),
            resources={
                "registers": None,
                "spill_bytes": None,
                "local_bytes": self._kernel.get_work_group_info(
                    cl.kernel_work_group_info.LOCAL_MEM_SIZE, self._device
                ),
            },
            log=self._readable(program.get_build_info(self._device, cl.program_build_info.LOG)),
        )

    def run(self) -> dict[str, Tensor]:
        """Launch once over freshly poisoned outputs."""
        self._refresh()
        self._launch().wait()
        return self.outputs()

    def outputs(self) -> dict[str, Tensor]:
        """Outputs and mutated inputs as the latest launch left them; red zones checked."""
        for buffer in self._buffers.values():
            buffer.check_zones()
        written = (*self._case.outputs, *self._case.mutates)
        return {name: self._buffers[name].read() for name in dict.fromkeys(written)}

    def changed_inputs(self) -> list[str]:
        """Names of inputs whose bytes changed although they are not declared mutated."""
        return [
            name
            for name, value in self._case.inputs.items()
            if isinstance(value, Tensor)
            and name not in self._case.mutates
            and name not in self._case.outputs
            and self._buffers[name].changed()
        ]

    def time(self, launches: int) -> list[float]:
        """Device time of each launch, after one that is not counted."""
        self._refresh()
        self._launch().wait()
        samples = []
        for _ in range(launches):
            for name in self._case.mutates:
                self._buffers[name].restore()
            event = self._launch()
            event.wait()
            samples.append((event.profile.end - event.profile.start) / 1000.0)
        return samples

    def trace(self) -> dict[str, object]:
        """The launch as bound now. A pointer's alignment is what the device guarantees."""
        launch = self._range
        return {
            "axes": dict(self._case.axes),
            "kernel": self._source.entry,
            "grid": list(launch.global_size),
            "block": list(launch.local_size or ()),
            "options": {"build_options": launch.options},
            "arguments": dict(map(self._trace_argument, self._parameters, self._names())),
        }

    def release(self) -> None:
        """Give buffers, programs and the context back."""
        for buffer in self._buffers.values():
            buffer.release()
        self._buffers.clear()
        self._programs.clear()

    # ---- building --------------------------------------------------------------------------

    def _stage_includes(self) -> None:
        """Lay the stand-ins out as in the worktree, so that includes of includes find them too."""
        for path, file in self._source.overlay.items():
            target = self._includes / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)

    def _program(self, options: str) -> Any:
        if options not in self._programs:
            text = self._source.locate(self._source.path).read_bytes().decode(errors="replace")
            words = self._build_options(options)
            try:
                self._programs[options], _ = built_for_host(
                    self._device,
                    lambda: cl.Program(self._context, text).build(words, cache_dir=False),
                )
            except cl.Error as error:
                raise BuildFailed(self._readable(str(error))) from error
        return self._programs[options]

    def _build_options(self, options: str) -> list[str]:
        """The launch's options, with folders to include from: the stand-ins' before the worktree's."""
        own = Path(self._source.path).parent
        folders = [own, Path(), *(Path(name) for name in _include_folders(options))]
        searched = [
            f"-I{self._without_space(base / folder)}"
            for folder in folders
            for base in (self._includes, self._source.root)
        ]
        return ["-cl-kernel-arg-info", *_without_includes(options), *searched]

    def _without_space(self, folder: Path) -> Path:
        """The folder, by a link whose name PoCL can take: its `-I` knows no quotes or escapes."""
        if not re.search(r"\s", str(folder)):
            return folder
        link = self._links / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        if not link.is_symlink():
            self._links.mkdir(exist_ok=True)
            link.symlink_to(folder, target_is_directory=True)
        return link

    def _readable(self, log: str) -> str:
        """A build log with the kernel's path in the place of PoCL's temporary file, without what
        pyopencl says around it."""
        told = re.sub(r"\A.*?Build on <[^\n]*>:\n", "", log, flags=re.DOTALL)
        told = re.sub(r"\n\(options: [^\n]*\)\s*\Z", "", told)
        return re.sub(r"\S*tempfile_\w+\.cl", self._source.path, told).strip()[:LOG_CHARACTERS]

    def _digest(self, program: Any) -> str:
        """SHA-256 of the native code of the entry and the work-group size it is launched with.

        PoCL's program binary also holds bitcode that names a temporary file, so equal sources give
        unequal binaries; the object compiled from it for any work-group size is reproducible.
        """
        (binary,) = program.get_info(cl.program_info.BINARIES)
        code = _pocl_object(binary, self._source.entry) or binary
        return hashlib.sha256(code + repr(self._range.local_size).encode()).hexdigest()

    # ---- binding ---------------------------------------------------------------------------

    def _read_parameters(self) -> list[Parameter]:
        info, spaces = cl.kernel_arg_info, cl.kernel_arg_address_qualifier
        named = {
            spaces.GLOBAL: "global",
            spaces.CONSTANT: "constant",
            spaces.LOCAL: "local",
            spaces.PRIVATE: "private",
        }
        return [
            Parameter(
                self._kernel.get_arg_info(index, info.NAME),
                self._kernel.get_arg_info(index, info.TYPE_NAME),
                named[self._kernel.get_arg_info(index, info.ADDRESS_QUALIFIER)],
            )
            for index in range(self._kernel.num_args)
        ]

    def _names(self) -> tuple[str, ...]:
        names = self._range.arguments
        if names is None:
            return tuple(parameter.name for parameter in self._parameters)
        if len(names) != len(self._parameters):
            raise LaunchFailed(
                f'"arguments" names {len(names)} values; {self._source.entry} takes '
                f"{len(self._parameters)}: {', '.join(p.name for p in self._parameters)}"
            )
        return names

    def _place(self, case: Case) -> None:
        for buffer in self._buffers.values():
            buffer.release()
        self._buffers = {
            name: GuardedBuffer(self._context, self._queue, name, value.array, value.dtype)
            for name, value in case.inputs.items()
            if isinstance(value, Tensor)
        }
        for name, spec in case.outputs.items():
            if name not in self._buffers:
                blank = np.zeros(spec.shape, carrier(spec.dtype))
                self._buffers[name] = GuardedBuffer(
                    self._context, self._queue, name, blank, spec.dtype
                )
        self._queue.finish()

    def _bind(self, case: Case) -> None:
        for index, (parameter, name) in enumerate(
            zip(self._parameters, self._names(), strict=True)
        ):
            self._kernel.set_arg(index, self._value(parameter, name, case))

    def _value(self, parameter: Parameter, name: str, case: Case) -> Any:
        if parameter.space == "private":
            return scalar(parameter, name, case)
        if parameter.space == "local":
            size = self._range.local_memory.get(name)
            if size is None:
                raise LaunchFailed(
                    f"parameter {parameter.name} is __local: give its bytes as "
                    f'"local_memory": {{"{name}": …}} in the launch dict'
                )
            return cl.LocalMemory(size)
        if name not in self._buffers:
            raise unbindable(parameter, name, case)
        return self._buffers[name].argument

    # ---- launching -------------------------------------------------------------------------

    def _refresh(self) -> None:
        """Inputs that are written to as they were, outputs poisoned with the next pattern."""
        turn = next(self._turn)
        for name in self._case.outputs:
            if name not in self._case.inputs:
                self._buffers[name].poison(turn)
        for name in self._case.inputs:
            if name in self._case.mutates or name in self._case.outputs:
                self._buffers[name].restore()
        self._queue.finish()

    def _launch(self) -> Any:
        launch: NdRange = self._range
        try:
            return cl.enqueue_nd_range_kernel(
                self._queue, self._kernel, launch.global_size, launch.local_size
            )
        except cl.Error as error:
            raise LaunchFailed(
                f"global {launch.global_size} local {launch.local_size}: {error}"
            ) from error

    def _trace_argument(self, parameter: Parameter, name: str) -> tuple[str, dict[str, object]]:
        if parameter.space == "private":
            bound = scalar(parameter, name, self._case)
            value = bound.item()
            finite = not isinstance(value, float) or math.isfinite(value)
            return parameter.name, {
                "kind": "scalar",
                "dtype": bound.dtype.name,
                "value": value if finite else str(value),
            }
        if parameter.space == "local":
            return parameter.name, {"kind": "pointer", "dtype": parameter.type_name.rstrip("*")}
        buffer = self._buffers[name]
        array = buffer.host
        twins = [
            other.name
            for other, bound in zip(self._parameters, self._names(), strict=True)
            if bound == name and other.name != parameter.name
        ]
        return parameter.name, {
            "kind": "pointer",
            "dtype": buffer.dtype,
            "alignment_bytes": self._device.mem_base_addr_align // 8,
            "shape": list(array.shape),
            "strides": [stride // array.itemsize for stride in array.strides],
            "overlaps": twins,
        }


def _include_folders(options: str) -> list[str]:
    """Relative folders of -I options, which mean folders of the worktree."""
    return [word[2:] for word in _joined(options) if word.startswith("-I") and word[2:3] != "/"]


def _without_includes(options: str) -> list[str]:
    return [w for w in _joined(options) if not (w.startswith("-I") and w[2:3] != "/")]


def _joined(options: str) -> list[str]:
    """Words of a command line, with `-I folder` as one."""
    return shlex.split(re.sub(r"(^|\s)-I\s+", r"\1-I", options))


def _pocl_object(binary: bytes, entry: str) -> bytes | None:
    """The native object of a kernel in PoCL's archive; None in any other binary.

    An entry of the archive is its path, a 4-byte length and the content (PoCL's pocl_binary.c).
    """
    path = f"/{entry}/0-0-0/{entry}.so".encode()
    at = binary.find(path)
    if not binary.startswith(b"poclbin") or at < 0:
        return None
    start = at + len(path) + 4
    (length,) = struct.unpack_from("<I", binary, at + len(path))
    return binary[start : start + length]

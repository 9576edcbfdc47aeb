"""Inspection: what the kernels' interpreter and this machine have, and what the lack of it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gate.messages import Probed


@dataclass(frozen=True, slots=True)
class Device:
    """A device some runtime found."""

    runtime: str
    """`opencl` or `cuda`."""
    name: str
    detail: str


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that is missing."""

    what: str
    costs: str
    """What does not work without it."""
    fix: str
    """A command to run, or what to set."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The environment that kernels run in."""

    interpreter: str
    version: str
    """Of Python."""
    packages: Mapping[str, str | None]
    """numpy, torch, triton, pyopencl, cupy: version, or None where it is not installed."""
    devices: tuple[Device, ...]
    tools: Mapping[str, str | None]
    """nvcc, ptxas: path, or None."""
    lacks: tuple[Lack, ...]


def inspection_of(probed: Probed) -> Inspection:
    """What a probe worker found, with what follows from it."""
    devices = tuple(Device(d.runtime, d.name, d.detail) for d in probed.devices)
    runtimes = {device.runtime for device in devices}
    pip = f"{probed.interpreter} -m pip install"
    lacks = []
    if probed.packages["numpy"] is None:
        lacks.append(Lack("numpy", "no kernel can be gated", f"{pip} numpy"))
    if "opencl" not in runtimes:
        lacks.append(
            Lack("an OpenCL device", "OpenCL kernels cannot be gated", f"{pip} 'pyopencl[pocl]'")
        )
    if probed.packages["torch"] is None or probed.packages["triton"] is None:
        lacks.append(
            Lack("torch and triton", "Triton kernels cannot be gated", f"{pip} torch triton numpy")
        )
    if "cuda" not in runtimes:
        lacks.append(
            Lack(
                "a CUDA device",
                "Triton kernels are compiled and interpreted, not timed",
                "run on a machine with an NVIDIA GPU and its driver",
            )
        )
    lacks += [
        Lack(problem, "that runtime's devices cannot be used", "see its own documentation")
        for problem in probed.problems
    ]
    return Inspection(
        probed.interpreter, probed.version, probed.packages, devices, probed.tools, tuple(lacks)
    )

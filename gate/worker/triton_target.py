"""What Triton runs on or compiles for: a CUDA GPU, or an `sm_…` target that is not here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import torch

from .languages import DeviceReport

DEFAULT_TARGET = "sm_90a"
"""What is compiled for on a machine without a GPU, unless the settings name another."""

_OPTIN_BYTES = {
    80: 163 * 1024,
    86: 99 * 1024,
    87: 163 * 1024,
    89: 99 * 1024,
    90: 227 * 1024,
    100: 227 * 1024,
    103: 227 * 1024,
    120: 99 * 1024,
    121: 99 * 1024,
}
"""Most shared memory of one block, bytes: CUDA C++ Programming Guide, "Technical Specifications
per Compute Capability"."""

_PROPERTIES = {
    "compute_units": "multi_processor_count",
    "shared_memory_per_block_optin_bytes": "shared_memory_per_block_optin",
    "shared_memory_per_sm_bytes": "shared_memory_per_multiprocessor",
    "registers_per_sm": "regs_per_multiprocessor",
    "threads_per_sm": "max_threads_per_multi_processor",
    "l2_bytes": "L2_cache_size",
    "warp_size": "warp_size",
    "global_memory_bytes": "total_memory",
}
"""Capability → the attribute of torch's device properties that the driver filled."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where kernels of this worker run, or what they are compiled for."""

    capability: int
    """Major × 10 + minor: 90 for compute capability 9.0."""
    cuda_device: int | None
    """Ordinal of the GPU they run on; None if they are only compiled."""

    @property
    def name(self) -> str:
        """`sm_90a`, `sm_80`, …: with `a` where instructions exist for this one chip."""
        exclusive = has_wgmma(self.capability) or has_tcgen05(self.capability)
        return f"sm_{self.capability}{'a' if exclusive else ''}"


def select_target(device: str) -> Target:
    """The target that `device` names: `cuda`, `cuda:1`, `sm_80`; empty for this machine's first
    GPU, or without one for DEFAULT_TARGET.

    Raises LookupError for a GPU that is not here and for a name of neither form.
    """
    present = torch.version.cuda is not None and torch.cuda.is_available()
    chosen = device or ("cuda:0" if present else DEFAULT_TARGET)
    if gpu := re.fullmatch(r"cuda(?::(\d+))?", chosen):
        ordinal = int(gpu[1] or 0)
        if not present or ordinal >= torch.cuda.device_count():
            raise LookupError(f"no CUDA device {ordinal}: {_why_no_gpu()}")
        major, minor = torch.cuda.get_device_capability(ordinal)
        return Target(major * 10 + minor, ordinal)
    if named := re.fullmatch(r"sm_(\d+)[af]?", chosen):
        return Target(int(named[1]), None)
    raise LookupError(f"device {device!r}: write cuda, cuda:<n>, or a target such as sm_90a")


def report_target(target: Target) -> DeviceReport:
    """The platform: features by compute capability, sizes from the driver where there is one."""
    capabilities: dict[str, bool | int | float | str] = {
        "device_type": "gpu",
        "compute_capability": target.capability,
        "cp_async": target.capability >= 80,
        "tma": target.capability >= 90,
        "clusters": target.capability >= 90,
        "fp8": target.capability >= 89,
        "wgmma": has_wgmma(target.capability),
        "tcgen05": has_tcgen05(target.capability),
    }
    toolchain = {"torch": torch.__version__, **_versions("triton", "numpy")}
    if target.cuda_device is None:
        capabilities["warp_size"] = 32
        limit_bytes = shared_memory_limit_bytes(target.capability)
        if limit_bytes is not None:
            capabilities["shared_memory_per_block_optin_bytes"] = limit_bytes
        device = f"compile-only target {target.name}"
        return DeviceReport(target.name, device, capabilities, toolchain, can_run=False)
    properties = torch.cuda.get_device_properties(target.cuda_device)
    for name, attribute in _PROPERTIES.items():
        if hasattr(properties, attribute):
            capabilities[name] = int(getattr(properties, attribute))
    toolchain["cuda"] = str(torch.version.cuda)
    return DeviceReport(target.name, properties.name, capabilities, toolchain, can_run=True)


def shared_memory_limit_bytes(capability: int) -> int | None:
    """Most shared memory a block may opt in to on a compute capability; None if not known."""
    return _OPTIN_BYTES.get(capability)


def has_wgmma(capability: int) -> bool:
    """Warp-group MMA is Hopper's alone: PTX ISA, "wgmma.mma_async", target sm_90a."""
    return capability == 90


def has_tcgen05(capability: int) -> bool:
    """Fifth-generation tensor cores: PTX ISA, "tcgen05", targets sm_100a to sm_110a."""
    return 100 <= capability < 120


def _versions(*packages: str) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _why_no_gpu() -> str:
    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA"
    return f"the driver shows {torch.cuda.device_count()} devices"

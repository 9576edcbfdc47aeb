"""Which OpenCL device kernels run on, and what it says of itself."""

from __future__ import annotations

import re
from typing import Any

import pyopencl as cl

from ..pocl_cpu import built_for_host
from ..problems import EnvironmentProblem
from . import DeviceReport

POCL = "Portable Computing Language"
PROBE = "__kernel void probe(void) {}"


def choose_device(wanted: str) -> Any:
    """The device whose platform or own name contains `wanted`; PoCL's CPU if that is empty.

    Raises LookupError with what there is and how to get PoCL.
    """
    try:
        devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error:  # the loader's way of saying that no driver is installed
        devices = []
    for device in devices:
        if wanted and wanted.lower() in f"{device.platform.name} {device.name}".lower():
            return device
        if not wanted and is_pocl_cpu(device):
            return device
    found = "; ".join(f"{device.platform.name}: {device.name}" for device in devices) or "none"
    asked = f"matches {wanted!r}" if wanted else "is PoCL's CPU"
    raise LookupError(
        f"no OpenCL device {asked} (found: {found}); pip install 'pyopencl[pocl]' or set "
        "opencl in [gate.devices]"
    )


def is_pocl_cpu(device: Any) -> bool:
    """Whether this is the CPU through PoCL."""
    return device.platform.name == POCL and bool(device.type & cl.device_type.CPU)


def report(device: Any) -> DeviceReport:
    """The device as its driver describes it."""
    kind = "cpu" if device.type & cl.device_type.CPU else "gpu"
    extensions = " ".join(device.extensions.split())
    toolchain = {
        "pyopencl": cl.VERSION_TEXT,
        "driver": device.driver_version,
        "opencl": device.version,
        "platform": device.platform.version,
    }
    if named := probe_build(device):
        toolchain["cpu"] = named
    return DeviceReport(
        name=platform_name(device),
        device=device.name,
        capabilities={
            "device_type": kind,
            "compute_units": device.max_compute_units,
            "local_memory_bytes": device.local_mem_size,
            "dedicated_local_memory": device.local_mem_type == cl.device_local_mem_type.LOCAL,
            "global_memory_bytes": device.global_mem_size,
            "max_allocation_bytes": device.max_mem_alloc_size,
            "global_cache_bytes": device.global_mem_cache_size,
            "cache_line_bytes": device.global_mem_cacheline_size,
            "max_work_group_size": device.max_work_group_size,
            "base_alignment_bytes": device.mem_base_addr_align // 8,
            "preferred_vector_float": device.preferred_vector_width_float,
            "native_vector_float": device.native_vector_width_float,
            "fp64": bool(device.double_fp_config),
            "fp16": "cl_khr_fp16" in extensions,
            "extensions": extensions,
        },
        toolchain=toolchain,
        can_run=True,
    )


def probe_build(device: Any) -> str:
    """Build an empty kernel: a compiler that cannot is found out before a kernel is blamed.

    Returns the name that PoCL's CPU had to be given, or nothing. Raises EnvironmentProblem.
    """
    context = cl.Context([device])
    try:
        _, named = built_for_host(device, lambda: cl.Program(context, PROBE).build(cache_dir=False))
    except cl.Error as error:
        log = " ".join(str(error).split())
        raise EnvironmentProblem(f"{device.name} builds no kernel at all: {log}"[:500]) from error
    return named


def platform_name(device: Any) -> str:
    """`pocl-cpu`, or `opencl-` and the device's name in lower case with dashes."""
    if is_pocl_cpu(device):
        return "pocl-cpu"
    return "opencl-" + re.sub(r"[^a-z0-9]+", "-", device.name.lower()).strip("-")

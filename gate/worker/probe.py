"""What this interpreter has for kernels. Imports as little as answers the question."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PACKAGES = {
    "numpy": ("numpy",),
    "torch": ("torch",),
    "triton": ("triton",),
    "pyopencl": ("pyopencl",),
    "cupy": ("cupy", "cupy-cuda12x", "cupy-cuda13x"),
}
"""Package → the distributions that provide it."""

CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
"""CUdevice_attribute values (CUDA driver API, cuda.h)."""


def probe(params: dict[str, Any]) -> dict[str, object]:
    """Versions, devices and tools."""
    devices, problems = [], []
    for found in (opencl_devices, cuda_devices):
        try:
            devices += found()
        except Exception as error:
            # A broken driver must not hide what else works; it is told as it is.
            problems.append(f"{found.__name__}: {type(error).__name__}: {error}")
    return {
        "interpreter": sys.executable,
        "version": platform.python_version(),
        "packages": {name: version_of(names) for name, names in PACKAGES.items()},
        "tools": {"nvcc": find_nvcc(), "ptxas": find_ptxas()},
        "devices": devices,
        "problems": problems,
    }


def version_of(distributions: tuple[str, ...]) -> str | None:
    """The version of the first that is installed."""
    for name in distributions:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def opencl_devices() -> list[dict[str, str]]:
    """All devices of all OpenCL platforms; none where pyopencl is not installed."""
    if importlib.util.find_spec("pyopencl") is None:
        return []
    import pyopencl as cl

    try:
        platforms = cl.get_platforms()
    except cl.Error:  # the loader's way of saying that no driver is installed
        return []
    return [
        {"runtime": "opencl", "name": device.name.strip(), "detail": each.name.strip()}
        for each in platforms
        for device in each.get_devices()
    ]


def cuda_devices() -> list[dict[str, str]]:
    """All devices the CUDA driver knows, asked without a context; none without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count, device, value = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    found = []
    for index in range(count.value):
        driver.cuDeviceGet(ctypes.byref(device), index)
        name = ctypes.create_string_buffer(256)
        driver.cuDeviceGetName(name, len(name), device)
        capability = []
        for attribute in (CAPABILITY_MAJOR, CAPABILITY_MINOR):
            driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
            capability.append(str(value.value))
        detail = f"compute capability {'.'.join(capability)}"
        found.append({"runtime": "cuda", "name": name.value.decode(), "detail": detail})
    return found


def find_nvcc() -> str | None:
    """The CUDA compiler: CUDA_HOME's, or the one on PATH."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    inside = Path(home) / "bin" / "nvcc" if home else None
    return str(inside) if inside is not None and inside.exists() else shutil.which("nvcc")


def find_ptxas() -> str | None:
    """The PTX assembler: the one on PATH, or the one in Triton's package."""
    on_path = shutil.which("ptxas")
    if on_path is not None:
        return on_path
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return None
    inside = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "ptxas"
    return str(inside) if inside.exists() else None


def handlers() -> dict[str, Callable[[dict[str, Any]], Mapping[str, object]]]:
    """The methods of role `probe`."""
    return {"probe": probe}

"""How many process pairs may be alive at once: memory of the host, of the device, of the exchange."""

from __future__ import annotations

import shutil
from pathlib import Path

from gate.values.platform import Platform

HOST_WORKER_BYTES = 512 * 1024**2
"""A runtime's private memory in one worker: 60 MiB with PoCL, some 400 MiB with torch on CUDA."""

DEVICE_WORKER_BYTES = 1024**3
"""A CUDA context costs about 620 MiB, and the fill that flushes L2 twice its size."""

CASE_COPIES = 6
"""Inputs and outputs in files, on the device with copies to compare with, and on their way."""

SHARE = 0.5
"""Of what is free: others use this machine too."""


def pairs_at_once(wanted: int, case_bytes: int, platform: Platform, exchange: Path) -> int:
    """How many of `wanted` pairs fit, at least one. `case_bytes`: inputs and outputs of a case."""
    case = CASE_COPIES * case_bytes
    free = {
        available_bytes(): HOST_WORKER_BYTES + case,
        shutil.disk_usage(exchange).free: case + 1,
    }
    device = platform.capabilities.get("global_memory_bytes")
    if platform.capabilities.get("device_type") == "gpu" and isinstance(device, int):
        free[device] = DEVICE_WORKER_BYTES + case
    fitting = min(int(SHARE * there / (2 * each)) for there, each in free.items())
    return max(1, min(wanted, fitting))


def available_bytes() -> int:
    """Memory of the host that can be had without swapping (proc(5), MemAvailable)."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0

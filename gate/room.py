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
"""Of a case in one worker: as given, on the device, kept to compare with, and on their way."""

EXCHANGE_COPIES = 3
"""Of a case in files, for each worker: half of the inputs, and outputs before and after timing."""

SHARE = 0.5
"""Of what is free: others use this machine too."""


def pairs_at_once(wanted: int, case_bytes: int, platform: Platform, exchange: Path) -> int:
    """How many of `wanted` pairs fit, at least one. `case_bytes`: inputs and outputs of a case."""
    case = CASE_COPIES * case_bytes
    bounds = [
        (available_bytes(), HOST_WORKER_BYTES + case),
        (shutil.disk_usage(exchange).free, EXCHANGE_COPIES * case_bytes),
    ]
    device = platform.capabilities.get("global_memory_bytes")
    if platform.capabilities.get("device_type") == "gpu" and isinstance(device, int):
        bounds.append((device, DEVICE_WORKER_BYTES + case))
    fitting = [int(SHARE * free / (2 * each)) for free, each in bounds if each]
    return max(1, min(wanted, *fitting))


def available_bytes() -> int:
    """Memory of the host that can be had without swapping (proc(5), MemAvailable)."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0

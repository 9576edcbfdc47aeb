"""Time launches on the current CUDA device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

METHOD = (
    "CUDA events around the wrapper, L2 flushed before each launch by a fill of twice its size, "
    "host work hidden behind a spinning kernel; includes about 3 µs of event overhead"
)

_WARM_UP_LAUNCHES = 3
_SPIN_CYCLES = 2_000_000
_HOST_MARGIN = 1.5
_MOST_SPIN_US = 2000.0


def time_launches_us(
    call: Callable[[], object], restore: Callable[[], None], launches: int
) -> tuple[list[float], object]:
    """Latency of each launch in microseconds, and what the last one returned.

    `restore` is called before each launch, outside what is timed. The wrapper's host work would
    count where it takes longer than the flush, so the device spins until the host is ahead.
    """
    spin = _spin_cycles(call, restore)
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    flush = torch.empty(2 * properties.L2_cache_size, dtype=torch.int8, device="cuda")
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(launches)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(launches)]
    result: object = None
    torch.cuda.synchronize()
    for start, end in zip(starts, ends, strict=True):
        restore()
        flush.zero_()
        torch.cuda._sleep(spin)
        start.record()
        result = call()
        end.record()
    torch.cuda.synchronize()
    samples = [start.elapsed_time(end) * 1000.0 for start, end in zip(starts, ends, strict=True)]
    return samples, result


def _spin_cycles(call: Callable[[], object], restore: Callable[[], None]) -> int:
    """Cycles that outlast the host's part of one launch, after warming up."""
    host_us = []
    for _ in range(_WARM_UP_LAUNCHES):
        restore()
        torch.cuda.synchronize()
        begin_s = time.perf_counter()
        call()
        host_us.append((time.perf_counter() - begin_s) * 1e6)
        torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    torch.cuda._sleep(_SPIN_CYCLES)
    end.record()
    end.synchronize()
    cycles_per_us = _SPIN_CYCLES / (start.elapsed_time(end) * 1000.0)
    # A wrapper that waits for its kernel keeps the host as long as it runs; no spin hides that.
    wanted_us = min(statistics.median(host_us) * _HOST_MARGIN + 20.0, _MOST_SPIN_US)
    return int(wanted_us * cycles_per_us)

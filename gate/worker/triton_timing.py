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

_CALIBRATION_LAUNCHES = 5
_CALIBRATION_CYCLES = 2_000_000
_HOST_MARGIN = 1.5
_LEAST_SPIN_US = 20.0
_MOST_SPIN_US = 2000.0


class LaunchTimer:
    """Times one wrapper with its inputs bound; warm it is when made.

    Event to event a launch would last as long as the host takes to reach the kernel, where that is
    longer than the flush before it: some 50 µs of Python for a kernel of 10. So the device spins
    between flush and first event until the host has queued the rest.
    """

    def __init__(self, call: Callable[[], object], restore: Callable[[], None]) -> None:
        """`restore` is called before each launch, outside what is timed."""
        self._call = call
        self._restore = restore
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self._flush = torch.empty(2 * properties.L2_cache_size, dtype=torch.int8, device="cuda")
        self._spin_cycles = int(self._host_us() * _cycles_per_us())

    def samples_us(self, launches: int) -> tuple[list[float], object]:
        """Latency of each launch in microseconds, and what the last one returned.

        One launch more is made before them and not counted.
        """
        pairs = [
            (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            for _ in range(launches + 1)
        ]
        result: object = None
        for start, end in pairs:
            self._restore()
            self._flush.zero_()
            torch.cuda._sleep(self._spin_cycles)
            start.record()
            result = self._call()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1000.0 for start, end in pairs[1:]], result

    def _host_us(self) -> float:
        """How long the spin must last: the host's part of a launch with a margin.

        A wrapper that waits for its kernel keeps the host as long as that runs; nothing hides it.
        """
        spent_us = []
        for _ in range(_CALIBRATION_LAUNCHES):
            self._restore()
            torch.cuda.synchronize()
            begin_s = time.perf_counter()
            self._call()
            spent_us.append((time.perf_counter() - begin_s) * 1e6)
        torch.cuda.synchronize()
        return min(statistics.median(spent_us) * _HOST_MARGIN + _LEAST_SPIN_US, _MOST_SPIN_US)


def _cycles_per_us() -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    torch.cuda._sleep(_CALIBRATION_CYCLES)
    end.record()
    end.synchronize()
    return float(_CALIBRATION_CYCLES / (start.elapsed_time(end) * 1000.0))

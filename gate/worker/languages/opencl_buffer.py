"""Device buffers between red zones, so that a write outside is seen and a read outside is NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl

from . import Tensor, WroteOutside

ZONE_BYTES = 64 * 1024
"""On each side. Larger than the rows kernels run over by, small beside any input."""

ZONE = np.uint32(0xFFFFF1A5)
"""Repeats to a NaN in float32 and float64, and no kernel computes these bits by chance."""

POISONS = (0xFF, 0x55)
"""Bytes an output is filled with, by turns. 0xFF is a NaN in every floating type; an integer that
nobody wrote differs between the two."""


class GuardedBuffer:
    """One array on the device."""

    def __init__(self, context: Any, queue: Any, name: str, array: np.ndarray, dtype: str) -> None:
        """Holds a copy of `array`, contiguous."""
        self.name = name
        self.dtype = dtype
        self.host = np.ascontiguousarray(array)
        self._queue = queue
        size = max(self.host.nbytes, 1)
        # Whole words, so that the second zone's pattern starts on one.
        self._tail = -(-size // 4) * 4
        self._whole = cl.Buffer(context, cl.mem_flags.READ_WRITE, 2 * ZONE_BYTES + self._tail)
        cl.enqueue_fill_buffer(queue, self._whole, ZONE, 0, 2 * ZONE_BYTES + self._tail)
        self.argument = self._whole.get_sub_region(ZONE_BYTES, size)
        self.restore()

    def restore(self) -> None:
        """Put the host's values back."""
        if self.host.nbytes:
            cl.enqueue_copy(self._queue, self.argument, self.host)

    def poison(self, turn: int) -> None:
        """Fill with the pattern of this turn."""
        if self.host.nbytes:
            pattern = np.uint8(POISONS[turn % len(POISONS)])
            cl.enqueue_fill_buffer(self._queue, self.argument, pattern, 0, self.host.nbytes)

    def read(self) -> Tensor:
        """What the device holds now."""
        array = np.empty_like(self.host)
        if array.nbytes:
            cl.enqueue_copy(self._queue, array, self.argument)
        return Tensor(self.dtype, array)

    def changed(self) -> bool:
        """Whether the device's bytes differ from the host's."""
        return self.read().array.tobytes() != self.host.tobytes()

    def check_zones(self) -> None:
        """Raises WroteOutside if a red zone was touched."""
        zone = np.empty(ZONE_BYTES // 4, np.uint32)
        for offset, where in ((0, "before"), (ZONE_BYTES + self._tail, "after")):
            cl.enqueue_copy(self._queue, zone, self._whole, src_offset=offset)
            touched = np.flatnonzero(zone != ZONE)
            if touched.size:
                nearest = touched[0] if where == "after" else zone.size - 1 - touched[-1]
                raise WroteOutside(
                    f"the kernel wrote {where} buffer {self.name}, {touched.size} words, the "
                    f"nearest {int(nearest) * 4} bytes off; the workload gives it as "
                    f"{self.dtype} {self.host.shape}"
                )

    def release(self) -> None:
        """Give the memory back."""
        self.argument.release()
        self._whole.release()

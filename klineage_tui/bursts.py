"""Tell one pressed key from a burst of them, so that a paste cannot apply, reject or undo."""

from __future__ import annotations

QUIET_S = 0.03
"""Keys closer than this were not pressed one by one. A held key repeats about every 33 ms or slower."""


class Bursts:
    """Watches the times keys arrive; an action that writes runs only if its key came alone.

    A burst cannot be known from its first key, so `alone` is asked again `QUIET_S` later.
    """

    def __init__(self) -> None:
        self._last_s = float("-inf")
        self._count = 0
        self._crowded = False

    def key(self, now_s: float) -> int:
        """Note a key at `now_s` (monotonic seconds) and give its number, for `alone`."""
        self._crowded = now_s - self._last_s < QUIET_S
        self._last_s = now_s
        self._count += 1
        return self._count

    def alone(self, number: int) -> bool:
        """Whether key `number` followed a pause and nothing has come since."""
        return number == self._count and not self._crowded

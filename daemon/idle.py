"""IdleTimer: when a daemon that nobody uses may end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Timer(Protocol):
    """What `call_later` gives: as asyncio's TimerHandle."""

    def cancel(self) -> None: ...


CallLater = Callable[[float, Callable[[], None]], Timer]
"""`loop.call_later`, or a test's."""


class IdleTimer:
    """Calls `expired` once nothing has been busy for `idle_s` seconds, counted from its creation.

    Clients and jobs hold it with `busy`. It costs nothing while it waits: one timer of the loop.
    """

    def __init__(self, idle_s: float, expired: Callable[[], None], call_later: CallLater) -> None:
        self._idle_s = idle_s
        self._expired = expired
        self._call_later = call_later
        self._holders = 0
        self._timer: Timer = call_later(idle_s, expired)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Not idle inside the block."""
        self._holders += 1
        self._timer.cancel()
        try:
            yield
        finally:
            self._holders -= 1
            if self._holders == 0:
                self._timer = self._call_later(self._idle_s, self._expired)

    def cancel(self) -> None:
        """Never expire: the daemon ends for another reason."""
        self._timer.cancel()

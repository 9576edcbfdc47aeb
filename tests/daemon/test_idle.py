"""When a daemon that nobody uses ends."""

from __future__ import annotations

from collections.abc import Callable

from daemon.idle import IdleTimer


class FakeTimer:
    def __init__(self, due_s: float, call: Callable[[], None]) -> None:
        self.due_s = due_s
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLoop:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.timers: list[FakeTimer] = []

    def call_later(self, delay_s: float, call: Callable[[], None]) -> FakeTimer:
        self.timers.append(FakeTimer(self.now_s + delay_s, call))
        return self.timers[-1]

    def advance(self, to_s: float) -> None:
        self.now_s = to_s
        for timer in self.timers:
            if not timer.cancelled and timer.due_s <= to_s:
                timer.cancelled = True
                timer.call()


def start() -> tuple[FakeLoop, IdleTimer, list[float]]:
    loop = FakeLoop()
    expired: list[float] = []
    return loop, IdleTimer(1800, lambda: expired.append(loop.now_s), loop.call_later), expired


def test_it_expires_when_nobody_ever_came() -> None:
    loop, _, expired = start()
    loop.advance(1799)
    assert expired == []
    loop.advance(1800)
    assert expired == [1800]


def test_it_counts_from_the_end_of_the_last_holder() -> None:
    loop, idle, expired = start()
    with idle.busy():
        loop.advance(1000)
        with idle.busy():
            loop.advance(5000)
        loop.advance(9000)
    loop.advance(10_799)
    assert expired == []
    loop.advance(10_800)
    assert expired == [10_800]


def test_a_new_holder_starts_it_over() -> None:
    loop, idle, expired = start()
    loop.advance(1700)
    with idle.busy():
        pass
    loop.advance(3400)
    assert expired == []


def test_cancelled_it_never_expires() -> None:
    loop, idle, expired = start()
    idle.cancel()
    loop.advance(1e9)
    assert expired == []

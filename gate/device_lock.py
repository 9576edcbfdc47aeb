"""One timing at a time on a machine: two daemons or commands would measure each other."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gate.errors import Cancelled


def lock_path(configured: str) -> Path:
    """The configured file, or one for this user."""
    return Path(configured or f"{tempfile.gettempdir()}/klineage-device-{os.getuid()}.lock")


@contextmanager
def device_lock(path: Path, stop: threading.Event, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock. `waiting` is called once if another holds it. Raises Cancelled on stop."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        told = False
        while not _take(fd):
            if not told:
                waiting()
                told = True
            if stop.wait(0.05):
                raise Cancelled("cancelled while waiting for the device")
        yield
    finally:
        os.close(fd)


def _take(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

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

LOOK_AGAIN_S = 0.05
NOTE_BYTES = 200


def lock_path(configured: str) -> Path:
    """The configured file, or one for this user."""
    return Path(configured or f"{tempfile.gettempdir()}/klineage-device-{os.getuid()}.lock")


@contextmanager
def device_lock(
    path: Path, doing: str, stop: threading.Event, waiting: Callable[[str], None]
) -> Iterator[None]:
    """Hold the lock, with a note in the file of who does what: `pid 123 times gemm_naive`.

    `waiting` is told who holds it, if another does. Raises Cancelled on stop.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        told = ""
        while not _take(fd):
            holder = _holder(fd)
            if holder != told:
                waiting(holder)
                told = holder
            if stop.wait(LOOK_AGAIN_S):
                raise Cancelled(f"cancelled while waiting for the device: {told}")
        _write_note(fd, f"pid {os.getpid()} {doing}")
        yield
        _write_note(fd, "")
    finally:
        os.close(fd)


def _take(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_note(fd: int, note: str) -> None:
    os.ftruncate(fd, 0)
    os.pwrite(fd, note.encode()[:NOTE_BYTES], 0)


def _holder(fd: int) -> str:
    """What the holder wrote; a note may be left of one that was killed, whose process is gone."""
    note = os.pread(fd, NOTE_BYTES, 0).decode(errors="replace")
    word, _, rest = note.partition(" ")
    pid = rest.partition(" ")[0]
    if word == "pid" and pid.isdigit() and Path(f"/proc/{pid}").exists():
        return note
    return "another process has it"

"""One daemon a worktree: the lock that its process holds for life."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from daemon.errors import Busy

ALREADY_RUNNING_EXIT = 75
"""Exit status of a daemon that found another one alive (EX_TEMPFAIL of sysexits.h)."""


class Instance:
    """The held lock. Whoever holds it may unlink a socket that an earlier daemon left behind."""

    def __init__(self, lock: Path) -> None:
        """Take the lock. Raises Busy, naming the holder, if another process has it."""
        # The lock and not the process id says who is alive: the kernel drops it however the
        # holder dies, and ids are reused. The file is never unlinked, or two daemons could hold
        # locks on two files of one name.
        self._descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise Busy(
                f"another daemon (pid {_written_pid(lock)}) serves this worktree; "
                "`klineage daemon stop` ends it"
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let the next daemon have it. Ending the process does the same."""
        os.close(self._descriptor)


def holder(lock: Path) -> int | None:
    """Process id of the daemon that holds the lock; None if none does.

    For telling people, and for ending a daemon that speaks another protocol.
    """
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _written_pid(lock)
    finally:
        os.close(descriptor)
    return None


def _written_pid(lock: Path) -> int | None:
    text = lock.read_text(encoding="ascii").strip()
    return int(text) if text.isdigit() else None

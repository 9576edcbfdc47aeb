"""One daemon a worktree: the lock that its process holds for life, and what it says of itself."""

from __future__ import annotations

import fcntl
import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path

from daemon.errors import Busy, IoFailed
from daemon.worktree import make_private

ALREADY_RUNNING_EXIT = 75
"""Exit status of a daemon that found another one alive (EX_TEMPFAIL of sysexits.h)."""


@dataclass(frozen=True, slots=True)
class Holder:
    """What the last daemon to take the lock wrote into it; it may have ended since."""

    pid: int
    socket: Path
    """Where it listens: not always where this process would, see `daemon.worktree.lock_path`."""


class Instance:
    """The held lock. Whoever holds it may unlink a socket that an earlier daemon left behind."""

    def __init__(self, lock: Path, socket: Path) -> None:
        """Take the lock, for a daemon that will listen at `socket`.

        Raises Busy, naming the holder, if another process has it.
        """
        try:
            make_private(lock.parent)
            # The lock and not the process id says who is alive: the kernel drops it however the
            # holder dies, and ids are reused. The file is never unlinked, or two daemons could
            # hold locks on two files of one name.
            self._descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise IoFailed(
                f"cannot create {lock}: {error.strerror}; make its folder writable, or set "
                "XDG_STATE_HOME to one that is"
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            found = last_holder(lock)
            who = f"pid {found.pid}, at {found.socket}" if found else "just starting"
            raise Busy(
                f"another daemon ({who}) serves this worktree; `klineage daemon stop` ends it"
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n{socket}\n".encode(), 0)

    def release(self) -> None:
        """Let the next daemon have it. Ending the process does the same."""
        os.close(self._descriptor)


def holder(lock: Path) -> Holder | None:
    """The daemon that holds the lock now; None if none does.

    For telling people.
    """
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return last_holder(lock)
    finally:
        os.close(descriptor)
    return None


def terminate(lock: Path, within_s: float = 10.0) -> Holder | None:
    """End the daemon that holds the lock, however it is spoken to; None if none does.

    For one that speaks another protocol, or whose socket was removed, as happens to the runtime
    folder at the end of a login. Raises Busy if it has not ended `within_s`.
    """
    found = holder(lock)
    if found is None:
        return None
    try:
        process = os.pidfd_open(found.pid)
    except ProcessLookupError:
        return found
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        ended, _, _ = select.select([process], [], [], within_s)
    finally:
        os.close(process)
    if not ended:
        raise Busy(
            f"the daemon (pid {found.pid}) has not ended within {within_s:.0f} s; "
            f"`kill -9 {found.pid}` loses nothing that it acknowledged"
        )
    return found


def last_holder(lock: Path) -> Holder | None:
    """What is written in the lock, alive or not; None if nothing is (yet)."""
    try:
        pid, socket = os.fsdecode(lock.read_bytes()).removesuffix("\n").split("\n", 1)
    except (FileNotFoundError, ValueError):
        return None
    return Holder(int(pid), Path(socket))

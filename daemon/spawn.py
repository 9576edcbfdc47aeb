"""Starting a daemon that outlives its client, and waiting until it answers.

The waiting itself is the caller's: `start` yields how long to pause before the next try to
connect, so a blocking client and one on asyncio share every decision.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from daemon.errors import IoFailed, Unavailable
from daemon.instance import ALREADY_RUNNING_EXIT
from daemon.worktree import log_path, make_private

READY_WITHIN_S = 20.0
"""A cold start reads some hundred modules, on a network home perhaps slowly."""

FIRST_PAUSE_S = 0.01
LONGEST_PAUSE_S = 0.2

LOG_BYTES = 1024 * 1024
"""A log longer than this is set aside: by who starts a daemon, and by the daemon itself."""

LOG_LINES_SHOWN = 8

CONFIGURATION_EXIT = 2
"""Exit status of a daemon whose configuration is wrong; its last line says how."""


def daemon_command(root: Path) -> list[str]:
    """What starts the daemon of a worktree, under the interpreter of this client."""
    # -P: a worktree that has a folder `daemon` must not shadow ours.
    return [sys.executable, "-P", "-m", "daemon", "--root", str(root)]


def start(
    root: Path, command: Sequence[str], now: Callable[[], float], within_s: float = READY_WITHIN_S
) -> Iterator[float]:
    """Start a daemon; yields seconds to pause before each try to connect to it.

    Raises Unavailable if the daemon ends instead of listening, with the last lines of its log, or
    if it takes longer than `within_s`. `now` is a monotonic clock in seconds.
    """
    deadline = now() + within_s
    process = _Detached(root, command)
    pause_s = FIRST_PAUSE_S
    while now() < deadline:
        yield pause_s
        pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
        status = process.exit_status()
        if status == ALREADY_RUNNING_EXIT:
            # Another client started one in the same moment, or an old one is still ending: it
            # will listen, or free its place.
            process = _Detached(root, command)
        elif status == CONFIGURATION_EXIT:
            raise Unavailable(process.last_line())
        elif status is not None:
            raise Unavailable(
                f"the daemon for {root} ended at its start (exit status {status})"
                + process.last_words()
            )
    raise Unavailable(
        f"the daemon for {root} did not answer within {within_s:.0f} s" + process.last_words()
    )


class _Detached:
    """A daemon in a session of its own, its output in its log."""

    def __init__(self, root: Path, command: Sequence[str]) -> None:
        self._log = log_path(root)
        to_log = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            make_private(self._log.parent)
            self._begin = _rotate(self._log)
            # posix_spawn: a Popen object would want to be waited for, and warns when it is not.
            self._pid: int | None = os.posix_spawn(
                command[0],
                list(command),
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.fspath(self._log), to_log, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
            )
        except OSError as error:
            raise IoFailed(
                f"cannot start the daemon for {root} with its log at {self._log}: {error}; "
                "make that folder writable, or set XDG_STATE_HOME to one that is"
            ) from error

    def exit_status(self) -> int | None:
        """None while it runs; minus the signal's number if one ended it."""
        if self._pid is None:
            return None
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid == 0:
            return None
        self._pid = None
        return os.waitstatus_to_exitcode(status)

    def last_line(self) -> str:
        """The last thing it wrote."""
        lines = self._lines()
        return lines[-1] if lines else f"the daemon wrote nothing to {self._log}"

    def last_words(self) -> str:
        """The end of what it wrote, with where to read the rest."""
        lines = self._lines()
        if not lines:
            return f"; it wrote nothing to {self._log}"
        return f"; the end of {self._log}:\n" + "\n".join(
            f"  {line}" for line in lines[-LOG_LINES_SHOWN:]
        )

    def _lines(self) -> list[str]:
        with self._log.open("rb") as log:
            log.seek(self._begin)
            return log.read().decode(errors="replace").splitlines()


def set_aside(log: Path) -> None:
    """Make room for a new log: this one becomes `.1`, and the `.1` before it goes."""
    log.replace(log.with_name(log.name + ".1"))


def _rotate(log: Path) -> int:
    """Set a long log aside; the size of the one that goes on, in bytes."""
    size = log.stat().st_size if log.exists() else 0
    if size <= LOG_BYTES:
        return size
    set_aside(log)
    return 0

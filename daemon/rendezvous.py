"""Where a client looks for the daemon of a worktree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from daemon.errors import Unavailable
from daemon.instance import last_holder
from daemon.runtime_dir import socket_path
from daemon.worktree import lock_path


class NoDaemon(Unavailable):
    """None runs, and none was to be started."""

    def __init__(self, root: Path) -> None:
        super().__init__(f"no daemon runs for {root}; `klineage daemon start` starts one")


def sockets(root: Path) -> Iterator[Path]:
    """Where it may listen, most likely first: where one said it does, then where one would.

    They differ when the daemon was started from a login with another XDG_RUNTIME_DIR. Raises
    Unavailable if there is no place for a socket.
    """
    found = last_holder(lock_path(root))
    usual = socket_path(root)
    if found is not None and found.socket != usual:
        yield found.socket
    yield usual

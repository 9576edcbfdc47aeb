"""What holds a worker: a line to its parent that kills it when cut, and limits on what it leaves."""

from __future__ import annotations

import fcntl
import os
import resource
import signal


def die_with_parent(lifeline: int) -> None:
    """Have the kernel end this whole process group when the parent is gone, however it went.

    The parent alone holds the lifeline's other end. Its closing raises the pipe's signal, which
    the kernel delivers to the group even while a launch never returns to Python.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC | os.O_NONBLOCK)


def limit_files(file_bytes: int) -> None:
    """No core dumps, and no file larger than `file_bytes`."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

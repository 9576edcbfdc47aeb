"""LogHandler: the daemon's log lines, in a file that does not grow for ever."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from daemon.spawn import LOG_BYTES, set_aside


class LogHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to standard error, which whoever started the daemon has pointed at its log.

    Beyond `limit_bytes` the file is set aside as `.1`, and standard output and error of the whole
    process go on in a new one: what a library prints belongs in there too, which is why
    RotatingFileHandler, with a file of its own, would not do. Started by hand, with standard error
    a terminal, it only writes.
    """

    def __init__(self, log: Path, limit_bytes: int = LOG_BYTES) -> None:
        super().__init__(sys.stderr)
        self._log = log
        self._limit_bytes = limit_bytes
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, then make room if that was one too many."""
        super().emit(record)
        try:
            written = os.fstat(2)
            if written.st_size > self._limit_bytes and os.path.samestat(written, self._log.stat()):
                self._begin_anew()
        except OSError:
            self.handleError(record)

    def _begin_anew(self) -> None:
        set_aside(self._log)
        new = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        for descriptor in (1, 2):
            os.dup2(new, descriptor)
        os.close(new)

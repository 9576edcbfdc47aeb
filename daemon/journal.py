"""Journal: what the daemon must not forget when it is killed.

One SQLite file a worktree, outside of it. Calls are synchronous and short, made from the event
loop's thread. A full or read-only disk raises IoFailed with what was tried, where, and what to do;
the daemon goes on. The transaction of an apply or undo uses `connection`, and `durable` where it
must survive a loss of power.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from daemon.journal_database import Database, utc_now
from daemon.journal_events import EventLog
from daemon.journal_jobs import JobLog
from daemon.journal_kv import KeyValues
from daemon.journal_rejections import Rejections
from daemon.journal_verdicts import TraceCache, VerdictLog


class Journal:
    """The tables, by noun."""

    def __init__(self, path: Path, now: Callable[[], str] = utc_now) -> None:
        """Open or create it. `now` gives UTC in ISO 8601. Raises Unavailable or IoFailed."""
        self._database = Database(path)
        self.kv = KeyValues(self._database)
        self.events = EventLog(self._database, self.kv, now)
        self.jobs = JobLog(self._database, now)
        self.verdicts = VerdictLog(self._database, now)
        self.traces = TraceCache(self._database)
        self.rejections = Rejections(self._database, now)

    @property
    def connection(self) -> sqlite3.Connection:
        """Autocommit mode, WAL, synchronous=NORMAL; used from the thread that opened it."""
        return self._database.connection

    def durable(self, what: str) -> AbstractContextManager[sqlite3.Connection]:
        """A transaction that is on the disk itself when it returns. Raises IoFailed or Busy."""
        return self._database.durable(what)

    def recover(self) -> tuple[str, ...]:
        """Settle what an earlier daemon left behind; one line for people about each."""
        interrupted = self.jobs.interrupt_running()
        return self._database.messages + tuple(
            f"interrupted: {job.tier} of {job.subject} was running when the daemon ended"
            for job in interrupted
        )

    def close(self) -> None:
        """Close the file."""
        self._database.close()

"""JobLog: what the gate was doing, so that a restart can say what was cut off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from daemon.journal_database import Database

KEPT = 1000
"""Newest ended jobs that stay."""

Ended = Literal["done", "cancelled", "interrupted", "failed"]


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One run of the gate."""

    id: int
    at: str
    subject: str
    """Suggestion id, or kernel id."""
    closure: str
    tier: str
    state: str
    step: str
    """Where it was, or why it ended so."""


class JobLog:
    """Jobs from their start to their end."""

    def __init__(self, database: Database, now: Callable[[], str]) -> None:
        self._database = database
        self._now = now

    def begin(self, subject: str, closure: str, tier: str) -> int:
        """A job runs now; its id in the journal, which no later job gets."""
        with self._database.write("record a job") as connection:
            (id,) = connection.execute(
                "INSERT INTO jobs (at, subject, closure, tier, state)"
                " VALUES (?, ?, ?, ?, 'running') RETURNING id",
                (self._now(), subject, closure, tier),
            ).fetchone()
            connection.execute(
                "DELETE FROM jobs WHERE id <= ? AND state <> 'running'", (id - KEPT,)
            )
        return int(id)

    def end(self, id: int, state: Ended, step: str = "") -> None:
        """It ended; `step` says why if it is not `done`."""
        with self._database.write("record the end of a job") as connection:
            connection.execute(
                "UPDATE jobs SET state = ?, step = ? WHERE id = ?", (state, step, id)
            )

    def interrupt_running(self) -> tuple[JobRecord, ...]:
        """Mark what an earlier daemon left running as `interrupted`; what that was."""
        with self._database.write("recover jobs") as connection:
            rows = connection.execute(
                """
                UPDATE jobs SET state = 'interrupted', step = 'the daemon ended while it ran'
                WHERE state = 'running'
                RETURNING id, at, subject, closure, tier, state, step
                """
            ).fetchall()
        return tuple(JobRecord(*row) for row in sorted(rows))

    def newest(self, limit: int) -> tuple[JobRecord, ...]:
        """Newest first."""
        with self._database.read("read jobs") as connection:
            rows = connection.execute(
                "SELECT id, at, subject, closure, tier, state, step FROM jobs"
                " ORDER BY id DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return tuple(JobRecord(*row) for row in rows)

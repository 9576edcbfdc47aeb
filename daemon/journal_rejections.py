"""Rejections: suggestions a person said no to, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from daemon.journal_database import Database


@dataclass(frozen=True, slots=True)
class Rejection:
    """One no."""

    suggestion: str
    """Suggestion id: stable for (closure, card, locus), so an edit of the kernel asks again."""
    at: str
    skill: str
    kernel: str
    reason: str


class Rejections:
    """The newest reason a suggestion was rejected for."""

    def __init__(self, database: Database, now: Callable[[], str]) -> None:
        self._database = database
        self._now = now

    def put(self, suggestion: str, skill: str, kernel: str, reason: str) -> None:
        """Remember it; a later reason replaces an earlier one."""
        with self._database.write("record a rejection") as connection:
            connection.execute(
                "INSERT OR REPLACE INTO rejections (suggestion, at, skill, kernel, reason)"
                " VALUES (?, ?, ?, ?, ?)",
                (suggestion, self._now(), skill, kernel, reason),
            )

    def get(self, suggestion: str) -> Rejection | None:
        """None if it was not rejected."""
        with self._database.read("read a rejection") as connection:
            row = connection.execute(
                "SELECT suggestion, at, skill, kernel, reason FROM rejections WHERE suggestion = ?",
                (suggestion,),
            ).fetchone()
        return None if row is None else Rejection(*row)

    def forget(self, suggestion: str) -> None:
        """The person changed their mind."""
        with self._database.write("forget a rejection") as connection:
            connection.execute("DELETE FROM rejections WHERE suggestion = ?", (suggestion,))

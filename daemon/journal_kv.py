"""KeyValues: the journal's small single facts."""

from __future__ import annotations

import sqlite3

from daemon.journal_database import Database


class KeyValues:
    """Text by key; a later value replaces an earlier one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, key: str) -> str | None:
        """None if it was never put."""
        with self._database.read(f"read {key}") as connection:
            row = connection.execute("SELECT value FROM kv WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> None:
        """Raises IoFailed."""
        with self._database.write(f"record {key}") as connection:
            put_within(connection, key, value)


def put_within(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Put as part of a transaction that the caller has open."""
    connection.execute(
        "INSERT INTO kv (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )

"""Store: changes and the bytes of their files in the journal.

A change is `prepared` before the first file is touched, and then `committed` or `rolled_back`.
Bytes are kept once each, under their digest, so an undo and a redo cost no space.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from daemon.errors import NotFound
from daemon.journal import Journal
from daemon.transaction.change import Change, ChangeMeta, Kind
from gate.values.kernel import digest

SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS images (
        digest TEXT PRIMARY KEY,
        data BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('applied', 'undone', 'redone', 'rejected')),
        state TEXT NOT NULL CHECK (state IN ('prepared', 'committed', 'rolled_back')),
        origin INTEGER REFERENCES changes (id),
        tag TEXT NOT NULL,
        key TEXT UNIQUE,
        suggestion TEXT NOT NULL,
        skill TEXT NOT NULL,
        kernel TEXT NOT NULL,
        gain TEXT NOT NULL,
        closure TEXT NOT NULL,
        note TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS change_files (
        change INTEGER NOT NULL REFERENCES changes (id),
        position INTEGER NOT NULL,
        path TEXT NOT NULL,
        real_path TEXT NOT NULL,
        before_digest TEXT NOT NULL REFERENCES images (digest),
        after_digest TEXT NOT NULL REFERENCES images (digest),
        PRIMARY KEY (change, position)
    ) WITHOUT ROWID
    """,
)

_LATEST = """
    SELECT max(id) FROM changes WHERE state = 'committed' AND kind != 'rejected'
    GROUP BY coalesce(origin, id)
"""
"""The last word on each applied change: itself, or its newest undo or redo."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file of a recorded change."""

    path: str
    real_path: str
    before_digest: str
    after_digest: str


class Store:
    """Rows of the journal. Every write is on the disk itself when it returns."""

    def __init__(self, journal: Journal, now: Callable[[], str]) -> None:
        self._journal = journal
        self._now = now
        with journal.durable("create the history") as connection:
            for statement in SCHEMA:
                connection.execute(statement)

    def prepare(
        self,
        kind: Kind,
        meta: ChangeMeta,
        tag: str,
        files: Iterable[tuple[str, str, bytes, bytes]],
        origin: int | None = None,
        note: str = "",
    ) -> int:
        """Record a change about to be made; `files` are (path, real path, before, after)."""
        with self._journal.durable(f"record the change of {meta.kernel}") as connection:
            change = self._insert(connection, kind, "prepared", meta, tag, origin, note)
            for position, (path, real_path, before, after) in enumerate(files):
                for data in (before, after):
                    connection.execute(
                        "INSERT OR IGNORE INTO images VALUES (?, ?)", (digest(data), data)
                    )
                connection.execute(
                    "INSERT INTO change_files VALUES (?, ?, ?, ?, ?, ?)",
                    (change, position, path, real_path, digest(before), digest(after)),
                )
        return change

    def reject(self, meta: ChangeMeta, reason: str) -> int:
        with self._journal.durable("record a rejection") as connection:
            return self._insert(connection, Kind.REJECTED, "committed", meta, "", None, reason)

    def _insert(
        self,
        connection: sqlite3.Connection,
        kind: Kind,
        state: str,
        meta: ChangeMeta,
        tag: str,
        origin: int | None,
        note: str,
    ) -> int:
        cursor = connection.execute(
            "INSERT INTO changes (at, kind, state, origin, tag, key, suggestion, skill, kernel,"
            " gain, closure, note) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self._now(), kind, state, origin, tag, meta.key or None, meta.suggestion,
             meta.skill, meta.kernel, meta.gain, meta.closure, note),
        )  # fmt: skip
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def commit(self, change: int) -> None:
        with self._journal.durable("record that the change was made") as connection:
            connection.execute("UPDATE changes SET state = 'committed' WHERE id = ?", (change,))

    def roll_back(self, change: int) -> None:
        """Its key is free again: the request may be repeated."""
        with self._journal.durable("record that the change was not made") as connection:
            connection.execute(
                "UPDATE changes SET state = 'rolled_back', key = NULL WHERE id = ?", (change,)
            )

    def prepared(self) -> list[tuple[Change, str]]:
        """Changes whose making was interrupted, oldest first, each with its tag."""
        return [(self.get(id_), tag) for id_, tag in self._rows(
            "SELECT id, tag FROM changes WHERE state = 'prepared' ORDER BY id"
        )]  # fmt: skip

    def get(self, change: int) -> Change:
        """Raises NotFound."""
        found = self._changes("WHERE id = ? AND state != 'rolled_back'", (change,))
        if not found:
            raise NotFound(f"there is no change #{change}; `klineage history` lists them")
        return found[0]

    def by_key(self, key: str) -> Change | None:
        """The change that was made for the request `key`."""
        found = self._changes("WHERE key = ? AND state = 'committed'", (key,))
        return found[0] if found else None

    def newest(self, limit: int) -> tuple[Change, ...]:
        """Newest first."""
        return self._changes("WHERE state = 'committed' ORDER BY id DESC LIMIT ?", (limit,))

    def latest(self) -> tuple[Change, ...]:
        """The last word on each applied change, newest first."""
        return self._changes(f"WHERE id IN ({_LATEST}) ORDER BY id DESC", ())

    def files(self, change: int) -> tuple[FileRecord, ...]:
        rows = self._rows(
            "SELECT path, real_path, before_digest, after_digest FROM change_files"
            " WHERE change = ? ORDER BY position",
            (change,),
        )
        return tuple(FileRecord(*row) for row in rows)

    def image(self, image_digest: str) -> bytes:
        """The bytes of a digest that some change recorded."""
        ((data,),) = self._rows("SELECT data FROM images WHERE digest = ?", (image_digest,))
        return bytes(data)

    def _changes(self, where: str, parameters: tuple[object, ...]) -> tuple[Change, ...]:
        latest = {id_ for (id_,) in self._rows(_LATEST)}
        rows = self._rows(
            "SELECT id, at, kind, origin, suggestion, skill, kernel, gain, closure, key, note"  # noqa: S608
            f" FROM changes {where}",
            parameters,
        )
        return tuple(
            Change(
                id=id_,
                at=at,
                kind=Kind(kind),
                meta=ChangeMeta(suggestion, skill, kernel, gain, closure, key or ""),
                files=tuple(file.path for file in self.files(id_)),
                note=note,
                origin=origin or id_,
                undoable=id_ in latest and kind in (Kind.APPLIED, Kind.REDONE),
            )
            for id_, at, kind, origin, suggestion, skill, kernel, gain, closure, key, note in rows
        )

    def _rows(self, query: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        return self._journal.connection.execute(query, parameters).fetchall()

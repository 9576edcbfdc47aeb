"""EventLog: notifications with their sequence numbers, for clients that come back."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from daemon.errors import IoFailed
from daemon.journal_database import Database
from daemon.journal_kv import KeyValues, put_within

log = logging.getLogger(__name__)

KEPT = 10_000
"""Newest events that stay."""

KEPT_BYTES = 32 * 1024 * 1024
"""Payload that stays at most: a ranked set of suggestions with its verdicts is tens of kB."""

PRUNE_EVERY = 256

BLOCK = 1000
"""Sequence numbers set aside by one write. Those unused when the process ends are skipped."""

RESERVED = "events.reserved"
FLOOR = "events.floor"


@dataclass(frozen=True, slots=True)
class Event:
    """One notification as it was sent."""

    seq: int
    topic: str
    payload: bytes
    """JSON of its parameters."""


class EventLog:
    """Numbers events, keeps the newest, and knows which it can no longer give.

    Numbers grow over restarts and are never used twice, also those of events that are not kept.
    """

    def __init__(self, database: Database, kv: KeyValues, now: Callable[[], str]) -> None:
        self._database = database
        self._kv = kv
        self._now = now
        # 1 and not 0 before the first event: to a subscriber, 0 stands for "only new ones".
        self._reserved = int(kv.get(RESERVED) or 1)
        self._newest = self._reserved
        self._floor = self._stored_floor = int(kv.get(FLOOR) or 0)
        self._since_pruning = 0

    @property
    def newest(self) -> int:
        """The number given out last."""
        return self._newest

    def next_seq(self) -> int:
        """The next number."""
        self._newest += 1
        if self._newest > self._reserved:
            reserved = self._newest + BLOCK
            try:
                self._kv.put(RESERVED, str(reserved))
            except IoFailed as error:
                # A full disk must not silence the daemon. Tried again at the next number; until
                # then nothing is kept either, and `append` says so.
                log.warning("%s", error)
            else:
                self._reserved = reserved
        return self._newest

    def append(self, seq: int, topic: str, payload: bytes) -> None:
        """Keep an event. Raises IoFailed; the event is then lost to clients that come back, and
        `since` says so to them."""
        try:
            with self._database.write("record an event") as connection:
                connection.execute(
                    "INSERT INTO events (seq, at, topic, payload) VALUES (?, ?, ?, ?)",
                    (seq, self._now(), topic, payload),
                )
        except IoFailed:
            self.skip(seq)
            raise
        self._since_pruning += 1
        if self._since_pruning >= PRUNE_EVERY or self._floor != self._stored_floor:
            self.prune()

    def skip(self, seq: int) -> None:
        """Event `seq` was sent and is not kept: whoever missed it must read the whole state."""
        self._floor = max(self._floor, seq)

    def since(self, seq: int, limit: int) -> list[Event] | None:
        """Kept events after `seq`, oldest first; None if some are gone, or are more than `limit`,
        or if `seq` was never given out."""
        if seq < self._floor or seq > self._newest:
            return None
        with self._database.read("read events") as connection:
            rows = connection.execute(
                "SELECT seq, topic, payload FROM events WHERE seq > ? ORDER BY seq LIMIT ?",
                (seq, limit + 1),
            ).fetchall()
        return None if len(rows) > limit else [Event(*row) for row in rows]

    def prune(self) -> None:
        """Drop what is beyond KEPT events or KEPT_BYTES of payload."""
        self._since_pruning = 0
        with self._database.write("prune events") as connection:
            (last,) = connection.execute(
                """
                SELECT MAX(seq) FROM (
                    SELECT seq,
                           ROW_NUMBER() OVER newest AS place,
                           SUM(LENGTH(payload)) OVER newest AS bytes
                    FROM events WINDOW newest AS (ORDER BY seq DESC)
                ) WHERE place > ? OR bytes > ?
                """,
                (KEPT, KEPT_BYTES),
            ).fetchone()
            if last is not None:
                connection.execute("DELETE FROM events WHERE seq <= ?", (last,))
                self._floor = max(self._floor, last)
            put_within(connection, FLOOR, str(self._floor))
        self._stored_floor = self._floor

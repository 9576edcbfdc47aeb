"""Notices: what clients are told without asking, numbered, and given again to those who return.

An event is in the journal before it is sent. Not kept are `TRANSIENT` ones: the progress of a job
and the status are of the present only, and those of an earlier daemon would be false.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping

import msgspec

from daemon.backlog import Backlog
from daemon.errors import IoFailed
from daemon.journal_events import EventLog
from daemon.protocol import NOTICES, Resync, Subscribed
from daemon.rpc import FrameTooLong, write_notice

log = logging.getLogger(__name__)

TRANSIENT = frozenset({"job.progress", "status.changed", "resync", "closing"})

QUEUE_LIMIT = 1000
"""Notifications one client may be behind before it is told to read the whole state again."""


class Subscription:
    """The frames one client has yet to be sent."""

    def __init__(self, notices: Notices, limit: int) -> None:
        self._notices = notices
        self._backlog: Backlog[bytes] = Backlog(limit, notices.resync_frame)

    def put(self, frame: bytes) -> None:
        """Never waits; too many unsent frames become one `resync`."""
        self._backlog.put(frame)

    def close(self) -> None:
        """Nothing more is put; iteration ends after what is there."""
        self._notices.forget(self)
        self._backlog.close()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._backlog)


class Notices:
    """Publishes to all subscribers, from the event loop's thread."""

    def __init__(self, events: EventLog, queue_limit: int = QUEUE_LIMIT) -> None:
        self._events = events
        self._limit = queue_limit
        self._subscriptions: list[Subscription] = []
        self._keeping = True

    @property
    def seq(self) -> int:
        """The number of the newest notification."""
        return self._events.newest

    def publish(self, method: str, **fields: object) -> int:
        """Keep and send a notification of `NOTICES`, its fields without `seq`; its number.

        Never waits and never fails for a full disk: clients that are connected get it, those that
        come back are told to read the whole state, and a message says so once.
        """
        return self._publish(method, fields, kept=method not in TRANSIENT)

    def _publish(self, method: str, fields: Mapping[str, object], *, kept: bool) -> int:
        seq = self._events.next_seq()
        params = NOTICES[method](seq=seq, **fields)
        try:
            frame = write_notice(method, params)
        except FrameTooLong as error:
            log.error("%s %d: %s", method, seq, error)
            self._events.skip(seq)
            self._send(self.resync_frame())
            return seq
        failed = self._keep(seq, method, params) if kept else None
        self._send(frame)
        if failed is not None:
            # Not kept itself: it would say again, on a disk with little room, that it has some.
            told = {"level": "error", "text": f"{failed}; a window opened later reads all anew"}
            self._publish("message", told, kept=False)
        return seq

    def subscribe(self, since: int) -> tuple[Subscribed, Subscription]:
        """Start sending. `since` 0: only what is new; else first what was missed after it, or
        `resync` if that is gone or too much."""
        subscription = Subscription(self, self._limit)
        missed = self._events.since(since, self._limit) if since else []
        for event in missed or ():
            subscription.put(write_notice(event.topic, msgspec.Raw(event.payload)))
        self._subscriptions.append(subscription)
        return Subscribed(seq=self.seq, resync=missed is None), subscription

    def forget(self, subscription: Subscription) -> None:
        """Send nothing more to it."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    def resync_frame(self) -> bytes:
        """The line that tells a client to read the whole state."""
        return write_notice("resync", Resync(seq=self.seq))

    def _send(self, frame: bytes) -> None:
        for subscription in self._subscriptions:
            subscription.put(frame)

    def _keep(self, seq: int, method: str, params: msgspec.Struct) -> IoFailed | None:
        """The failure, if the event is the first of several that could not be kept."""
        try:
            self._events.append(seq, method, msgspec.json.encode(params))
        except IoFailed as error:
            first, self._keeping = self._keeping, False
            if first:
                log.warning("%s %d and maybe later ones are not kept: %s", method, seq, error)
            return error if first else None
        self._keeping = True
        return None

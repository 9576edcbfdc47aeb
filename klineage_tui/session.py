"""The window's connection: it owns the client, keeps the state current, and reconnects with replay."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

from daemon.errors import RpcError
from daemon.protocol import (
    Closing,
    Diff,
    Diffed,
    Empty,
    Entries,
    FileChanged,
    FileDiff,
    HelloReply,
    History,
    HistoryChanged,
    Resync,
    Snapshot,
    StatusView,
    Subscribe,
    Subscribed,
    SuggestionsChanged,
    Wire,
)
from klineage_tui.state import Link, QueueState, Said, from_snapshot, reduce, with_status

log = logging.getLogger(__name__)

RETRY_S = 1.0
"""Between two attempts to reach a daemon that is gone."""


class Connection(Protocol):
    """What is used of `daemon.client.Client`."""

    hello: HelloReply

    async def call(self, method: str, params: Wire) -> Any: ...
    def notices(self) -> AsyncIterator[tuple[str, Wire]]: ...
    async def close(self) -> None: ...


_CHANGES_TEXT = (FileChanged, HistoryChanged, SuggestionsChanged)
"""After one of these a diff may have another text before it."""

Connect = Callable[[bool], Awaitable[Connection]]
"""Connects to the worktree's daemon; True starts one if none runs. Raises RpcError or OSError."""


class Session:
    """Follows one daemon for the window's life.

    `on_change` is called in the event loop with every new state. Losing the daemon is a state, not an
    error: `run` retries without starting one, until `wake` asks for that.
    """

    def __init__(
        self,
        root: str,
        connect: Connect,
        on_change: Callable[[QueueState], None],
        *,
        retry_s: float = RETRY_S,
    ) -> None:
        self._connect = connect
        self._on_change = on_change
        self._retry_s = retry_s
        self._client: Connection | None = None
        self._wake = asyncio.Event()
        self._diffs: dict[str, tuple[FileDiff, ...]] = {}
        self.state = QueueState(root=root)

    async def run(self) -> None:
        """Connect, follow and reconnect until cancelled."""
        start = True
        while True:
            await self._visit(start)
            start = await self._woken()

    def wake(self) -> None:
        """Try again now, and start a daemon if none runs."""
        if self.state.link is not Link.LIVE:
            self._wake.set()

    def say(self, text: str, level: str = "info") -> None:
        """Show one line to the person."""
        self._set(replace(self.state, said=Said(text, level)))

    async def call(self, method: str, params: Wire) -> Any:
        """The daemon's result, of its type in METHODS. Raises RpcError as it answered, or OSError if it is gone."""
        if self._client is None:
            raise ConnectionError("the daemon is not connected")
        return await self._client.call(method, params)

    async def diff(self, suggestion: str) -> tuple[FileDiff, ...]:
        """Files before and after, kept until a file changes. Raises as `call` does."""
        if suggestion not in self._diffs:
            reply: Diffed = await self.call("diff", Diff(suggestion=suggestion))
            self._diffs[suggestion] = reply.files
        return self._diffs[suggestion]

    async def _visit(self, start: bool) -> None:
        try:
            self._client = await self._connect(start)
        except (RpcError, OSError) as failure:
            if start or self.state.link is Link.CONNECTING:
                self._set(replace(self.state, link=Link.GONE, link_detail=str(failure)))
            return
        try:
            await self._follow(self._client)
            lost = "it closed the connection"
        except (RpcError, OSError) as failure:
            lost = str(failure)
        finally:
            client, self._client = self._client, None
            with contextlib.suppress(OSError):  # it is closed either way
                await client.close()
        if self.state.link is not Link.STOPPED:
            self._set(replace(self.state, link=Link.GONE, link_detail=lost, jobs=()))

    async def _follow(self, client: Connection) -> None:
        self._set(replace(self.state, hello=client.hello))
        since = self.state.seq if self.state.seq <= client.hello.seq else 0
        subscribed: Subscribed = await client.call("subscribe", Subscribe(since=since))
        if since == 0 or subscribed.resync:
            await self._read_all(client)
        else:
            # Progress of jobs is not replayed, so what runs now has to be asked for.
            status: StatusView = await client.call("status", Empty())
            self._set(with_status(self.state, status))
        for warning in client.hello.warnings:
            self.say(warning, "warning")
        async for _method, notice in client.notices():
            await self._take(client, notice)
            if isinstance(notice, Closing):
                return

    async def _take(self, client: Connection, notice: Wire) -> None:
        if isinstance(notice, Resync):
            await self._read_all(client)
            return
        if isinstance(notice, _CHANGES_TEXT):
            self._diffs.clear()
        self._set(reduce(self.state, notice))
        if isinstance(notice, HistoryChanged):
            # One entry's change decides which others can still be undone.
            entries: Entries = await client.call("history", History())
            history = tuple(sorted(entries.entries, key=lambda entry: -entry.id))
            self._set(replace(self.state, history=history))

    async def _read_all(self, client: Connection) -> None:
        self._diffs.clear()
        snapshot: Snapshot = await client.call("snapshot", Empty())
        self._set(from_snapshot(self.state, snapshot))

    async def _woken(self) -> bool:
        """True when `wake` was called; False when it is time to look again."""
        try:
            await asyncio.wait_for(self._wake.wait(), self._retry_s)
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    def _set(self, state: QueueState) -> None:
        if state != self.state:
            self.state = state
            self._on_change(state)

"""Backlog: what a subscriber has yet to take, bounded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Backlog(Generic[Item]):
    """A queue that never makes its producer wait.

    When it overflows everything in it is dropped, and one item that says so takes its place; the
    subscriber then reads the whole state again.
    """

    def __init__(self, limit: int, overflow: Callable[[], Item]) -> None:
        self._limit = limit
        self._overflow = overflow
        self._items: deque[Item] = deque()
        self._ready = asyncio.Event()
        self._closed = False

    def put(self, item: Item) -> None:
        """Add an item, or drop all there is if that is one too many."""
        if len(self._items) >= self._limit:
            self._items.clear()
            item = self._overflow()
        self._items.append(item)
        self._ready.set()

    def close(self) -> None:
        """No more will come; iteration ends after what is in it."""
        self._closed = True
        self._ready.set()

    async def __aiter__(self) -> AsyncIterator[Item]:
        while True:
            while self._items:
                yield self._items.popleft()
            if self._closed:
                return
            self._ready.clear()
            await self._ready.wait()

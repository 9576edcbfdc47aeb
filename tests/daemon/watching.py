"""A running watcher for tests, and ways to wait for what it delivers."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from daemon.settings import WatchSettings
from daemon.watcher import Batch, Change, Timing, Watcher

PATIENCE_S = 20.0
"""Far more than anything here takes; a test that waits this long has failed."""


@dataclass
class Watching:
    """A watcher that runs, its batches, and the modes it told."""

    root: Path
    watcher: Watcher
    batches: asyncio.Queue[Batch]
    modes: list[str]
    first: Batch
    mode_changed: asyncio.Event
    _marks: itertools.count[int] = field(default_factory=itertools.count)

    async def batch(self) -> Batch:
        async with asyncio.timeout(PATIENCE_S):
            return await self.batches.get()

    async def change(self) -> Change:
        """The only change of the next batch."""
        (change,) = (await self.batch()).changes
        return change

    async def until_quiet(self) -> list[Change]:
        """Everything that is delivered up to a save made now, without that save."""
        mark = self.root / f"mark{next(self._marks)}.cl"
        mark.write_bytes(f"mark {time.monotonic_ns()}".encode())
        seen: list[Change] = []
        while all(change.path != mark.name for change in seen):
            seen += (await self.batch()).changes
        return [change for change in seen if change.path != mark.name]

    async def until_mode(self, start: str) -> str:
        """The mode, once it starts with `start`."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.watcher.mode.startswith(start):
                self.mode_changed.clear()
                await self.mode_changed.wait()
        return self.watcher.mode


@asynccontextmanager
async def watching(
    root: Path, settings: WatchSettings | None = None, timing: Timing | None = None
) -> AsyncIterator[Watching]:
    """Entered once the first batch is there."""
    modes: list[str] = []
    mode_changed = asyncio.Event()

    def on_mode(mode: str) -> None:
        modes.append(mode)
        mode_changed.set()

    watcher = Watcher(root, settings or WatchSettings(), timing=timing, on_mode=on_mode)
    batches: asyncio.Queue[Batch] = asyncio.Queue()
    running = asyncio.create_task(watcher.run(batches.put))
    try:
        first = asyncio.ensure_future(batches.get())
        await asyncio.wait({first, running}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            first.cancel()
            running.result()
        yield Watching(root, watcher, batches, modes, first.result(), mode_changed)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def told(changes: Sequence[Change]) -> dict[str, bytes | str | None]:
    """Per path its content, its problem, or None if it is gone; fails if a path comes twice."""
    paths = [change.path for change in changes]
    assert len(paths) == len(set(paths)), f"told twice: {sorted(paths)}"
    return {change.path: change.problem or change.data for change in changes}

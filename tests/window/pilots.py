"""Opening a window without a terminal, reading what it shows, and waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from scripted_daemon import connector
from textual import events
from textual.pilot import Pilot

from klineage_tui.app import Window

WITHIN_S = 20


@dataclass(frozen=True)
class Opened:
    """A window under a pilot."""

    window: Window
    pilot: Pilot[None]

    @property
    def screen(self) -> str:
        """The text on the screen."""
        window = self.window
        lines = window.screen._compositor.render_strips(window.size)
        return "\n".join(strip.text.rstrip() for strip in lines)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type_at_once(self, text: str) -> None:
        """Keys as a terminal without bracketed paste delivers a paste: all in one read."""
        for character in text:
            self.window.post_message(events.Key(character, character))
        await self.pilot.pause()

    async def until(self, condition: Callable[[], object]) -> None:
        """Return once `condition` holds; the screen is in the error if it never does."""
        try:
            async with asyncio.timeout(WITHIN_S):
                while not condition():
                    await self.pilot.pause()
        except TimeoutError:
            raise AssertionError(f"never came to hold; the screen:\n{self.screen}") from None

    async def until_shown(self, *texts: str) -> None:
        await self.until(lambda: all(text in self.screen for text in texts))

    async def settled(self) -> str:
        """The screen once nothing on it moves any more."""
        before = ""
        while before != self.screen:
            before = self.screen
            for _ in range(3):
                await self.pilot.pause()
        return before


@dataclass(frozen=True)
class Opener:
    """Opens windows on one worktree, all with the same memory of looks."""

    root: Path
    looks: Path
    clock: Callable[[], float]

    @asynccontextmanager
    async def __call__(
        self, size: tuple[int, int] = (120, 40), clock: Callable[[], float] | None = None
    ) -> AsyncIterator[Opened]:
        window = Window(
            self.root,
            connector(self.root),
            looks=self.looks,
            retry_s=0.02,
            clock=clock or self.clock,
        )
        async with window.run_test(size=size) as pilot:
            yield Opened(window, pilot)

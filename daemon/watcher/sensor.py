"""Sensor: inotify where it works, polling where it does not, and which of them it is."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Literal

from daemon.watcher.hints import Hints
from daemon.watcher.observation import Observation, explain
from daemon.watcher.tree import Tree

log = logging.getLogger(__name__)


class Sensor:
    """Keeps one observation of `tree` running, or says why the tree has to be polled."""

    def __init__(
        self,
        tree: Tree,
        hints: Hints,
        poll: Literal["auto"] | bool,
        poll_interval_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        retry_s: float = 60.0,
    ) -> None:
        """`retry_s`: how often inotify is tried again after it failed."""
        self._clock = clock
        self._retry_s = retry_s
        self._retry_at = 0.0
        self._tree = tree
        self._hints = hints
        self._poll = poll
        self._every = f"polling every {poll_interval_s:g} s"
        self._observation: Observation | None = None
        self._remote = ""
        self._trouble = ""
        self.root_is_gone = False

    @property
    def observes(self) -> bool:
        """Whether hints come by themselves; if not, the tree has to be polled."""
        return self._observation is not None

    @property
    def mode(self) -> str:
        """`inotify`, `polling every 2 s`, or `degraded: …`."""
        if self._trouble:
            return f"degraded: {self._trouble}; {self._every}"
        if self.observes:
            return "inotify"
        return f"{self._every} ({self._remote})" if self._remote else self._every

    async def start(self) -> None:
        """Observe, anew if already; end up polling where that is asked for or needed."""
        self._trouble = self._remote = ""
        self.root_is_gone = False
        old, self._observation = self._observation, None
        try:
            if self._poll == "auto":
                self._remote = next((m.type for m in self._tree.mounts() if not m.is_local), "")
            if self._poll is not True and not self._remote:
                # The old one ends after the new one started, so no event falls in between.
                self._observation = await self._new_observation()
        except FileNotFoundError:
            self.lose_root()
        except OSError as error:
            self._trouble = explain(error)
            self._retry_at = self._clock() + self._retry_s
        if old is not None:
            await asyncio.to_thread(old.stop)

    async def _new_observation(self) -> Observation:
        starting = asyncio.ensure_future(asyncio.to_thread(Observation, self._tree, self._hints))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            (await starting).stop()
            raise

    def lose_root(self) -> None:
        """Note that the worktree's folder is not there."""
        self.root_is_gone = True
        self._trouble = f"{self._tree.root} is missing"

    def is_sound(self) -> bool:
        """Whether to go on as it is: the observation sees the whole tree, or polling is right.

        A limit of inotify may have been raised since, so that is tried again now and then.
        """
        if self._observation is None:
            return not self._trouble or self._clock() < self._retry_at
        try:
            self._observation.check()
        except OSError as error:
            log.warning("%s: %s", self._tree.root, explain(error))
            return False
        return True

    def stop(self) -> None:
        """End the observation; blocks for some milliseconds."""
        if self._observation is not None:
            self._observation.stop()
            self._observation = None

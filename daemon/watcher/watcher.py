"""Watcher: from hints and polls to batches of changed content."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

from daemon.settings import WatchSettings
from daemon.watcher.change import Batch, Change
from daemon.watcher.git_lock import GitLocks
from daemon.watcher.hints import Hinted, Hints
from daemon.watcher.known import Known
from daemon.watcher.observation import burst_limit
from daemon.watcher.patterns import PathFilter
from daemon.watcher.reading import Reading
from daemon.watcher.sensor import Sensor
from daemon.watcher.timing import Timing
from daemon.watcher.tree import Tree

log = logging.getLogger(__name__)

Deliver = Callable[[Batch], Awaitable[None]]

PORTION_BYTES = 32 * 1024 * 1024
"""Contents delivered in one batch at most, so a scan of a huge tree needs little memory."""

PORTION_FILES = 256
"""Files read in one go of the reading thread; between two, the task can be cancelled."""


class Watcher:
    """Tells what changed below `root`, by content, each change once.

    Everything but `run`'s own reading of files happens on the event loop's thread.
    """

    def __init__(
        self,
        root: Path,
        settings: WatchSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        timing: Timing | None = None,
        on_mode: Callable[[str], None] | None = None,
    ) -> None:
        """`on_mode` is called with `mode` whenever it changes, on the loop's thread."""
        self._settings = settings
        self._clock = clock
        self._timing = timing or Timing()
        self._on_mode = on_mode
        self._tree = Tree(root, PathFilter(settings.include, settings.exclude))
        self._locks = GitLocks(Path(self._tree.root))
        self._known = Known(clock)
        self._links: dict[str, str] = {}
        self._missing: dict[str, float] = {}
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hints = Hints(clock, self._wake_up, burst_limit())
        self._sensor = Sensor(
            self._tree,
            self._hints,
            settings.poll,
            settings.poll_interval_s,
            clock=clock,
            retry_s=self._timing.rescan_s,
        )
        self._next_scan_at = 0.0
        self._paused = False
        self._asked: Literal["no", "compare", "read all"] = "no"
        self._mode = "starting"

    # ---- what others call, on the loop's thread ----------------------------------------------

    @property
    def mode(self) -> str:
        """For status: `inotify`, `polling every 2 s`, `paused` or `degraded: …`."""
        return self._mode

    def rescan(self) -> None:
        """Read every file again, through a new observation."""
        self._asked = "read all"
        self._wake.set()

    def pause(self) -> None:
        """Deliver nothing until `resume`."""
        self._paused = True
        self._show_mode()
        self._wake.set()

    def resume(self) -> None:
        """Deliver again, first what changed meanwhile."""
        self._paused = False
        self._asked = "compare" if self._asked == "no" else self._asked
        self._show_mode()
        self._wake.set()

    def expect(self, path: str, digest: str) -> None:
        """Announce that this program is about to write content of `digest` to `path`.

        That content is then not delivered: whoever wrote it knows it. Anything else found at
        `path` is. Forgotten after 5 s.
        """
        self._known.expect(path, digest)

    async def run(self, deliver: Deliver) -> None:
        """Deliver batches until cancelled. The first holds every watched file there is.

        Hints that come while `deliver` runs wait for it. What `deliver` raises ends the run.
        """
        self._loop = asyncio.get_running_loop()
        try:
            # Observing starts before the first scan, so nothing is lost between the two.
            await self._sensor.start()
            await self._git_is_done()
            await self._scan(deliver, self._hints.take(), first=True)
            while True:
                await self._until_due()
                await self._look(deliver)
        finally:
            self._sensor.stop()

    # ---- when to look -------------------------------------------------------------------------

    def _wake_up(self) -> None:
        """From any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake.set)

    async def _until_due(self) -> None:
        while True:
            self._wake.clear()
            due_in_s = self._due_at() - self._clock()
            if due_in_s <= 0 and not self._paused:
                return
            try:
                async with asyncio.timeout(None if self._paused else due_in_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _due_at(self) -> float:
        if self._asked != "no":
            return self._clock()
        burst = self._hints.burst()
        dues = [self._next_scan_at, *self._missing.values()]
        return min(dues if burst is None else [*dues, self._timing.due_at(*burst)])

    async def _git_is_done(self) -> bool:
        """Wait while git rewrites the tree. True if it did."""
        if not self._locks.held():
            return False
        timing = self._timing
        started_at = free_since = self._clock()
        while True:
            await asyncio.sleep(timing.git_check_s)
            now = self._clock()
            quiet_s = now - max(started_at, self._hints.active_at)
            if self._locks.held():
                free_since = now
                if quiet_s >= timing.git_patience_s or now - started_at >= timing.git_cap_s:
                    return True
            elif min(quiet_s, now - free_since) >= timing.git_quiet_s:
                return True
            if now - free_since >= timing.cap_s:  # something other than git keeps writing
                return True

    # ---- looking ------------------------------------------------------------------------------

    async def _look(self, deliver: Deliver) -> None:
        """Deliver what is due: single files if hints name them, the whole tree otherwise."""
        rewritten = await self._git_is_done()
        asked, self._asked = self._asked, "no"
        hinted = self._hints.take()
        periodic = self._next_scan_at <= self._clock()
        blind = hinted.everywhere or self._sensor.root_is_gone
        if asked == "read all" or blind or (periodic and not self._sensor.is_sound()):
            await self._sensor.start()
        if asked != "no" or blind or rewritten:
            await self._scan(deliver, hinted, read_all=asked == "read all")
        elif periodic:
            surprises = await self._scan(deliver, hinted)
            if surprises and self._sensor.observes:
                log.info("%s changed before any event said so; observing anew", surprises[0])
                self._hints.everywhere()
        else:
            await self._follow(deliver, hinted)

    async def _follow(self, deliver: Deliver, hinted: Hinted) -> None:
        """Look where the hints point."""
        paths = set(hinted.paths) | self._overdue()
        refused: list[Reading] = []
        for folder in hinted.folders:
            walk = await asyncio.to_thread(self._tree.walk, folder)
            paths.update(walk.files, self._known.below(folder))
            refused += walk.refused
        await self._tell(deliver, paths, refused, rescan=False)

    async def _scan(
        self, deliver: Deliver, hinted: Hinted, *, read_all: bool = False, first: bool = False
    ) -> list[str]:
        """Look at the whole tree; gives the changed paths that no hint named."""
        started_at = self._clock()
        try:
            walk = await asyncio.to_thread(self._tree.walk)
        except (FileNotFoundError, NotADirectoryError):
            await self._wait_for_root(deliver, first=first)
            return []
        refused = (reading.path for reading in walk.refused)
        absent = self._known.paths().difference(walk.files, refused)
        self._locks.refresh(walk.repositories)
        changed = {
            path
            for path, stamp in walk.files.items()
            if read_all or not self._known.is_current(path, stamp)
        }
        paths = changed | hinted.paths | absent | self._overdue()
        told = await self._tell(deliver, paths, walk.refused, rescan=True, always=first)
        took_s = self._clock() - started_at
        pause_s = self._timing.poll_pause_s(self._settings.poll_interval_s, took_s)
        self._next_scan_at = self._clock() + (
            self._timing.rescan_s if self._sensor.observes else pause_s
        )
        self._show_mode()
        return [path for path in told if path not in hinted.paths]

    async def _wait_for_root(self, deliver: Deliver, *, first: bool) -> None:
        """Keep what was told until the root is back.

        An unmounted share or a clone being replaced does not mean that every kernel is gone.
        """
        self._sensor.lose_root()
        self._missing.clear()
        self._next_scan_at = self._clock() + self._settings.poll_interval_s
        self._show_mode()
        if first:
            await deliver(Batch((), rescan=True))

    async def _tell(
        self,
        deliver: Deliver,
        paths: Iterable[str],
        refused: Iterable[Reading],
        *,
        rescan: bool,
        always: bool = False,
    ) -> list[str]:
        """Read `paths` and deliver what changed, in portions; gives the changed paths."""
        overdue = self._overdue()
        wanted = iter([(path, self._known.digest(path)) for path in sorted(paths)])
        changes = self._known.absorb(refused)
        told: list[str] = []
        size_bytes = 0
        while readings := await asyncio.to_thread(read_portion, self._tree, wanted):
            size_bytes += sum(len(reading.data or b"") for reading in readings)
            changes += self._known.absorb(readings)
            changes += self._settle_missing(readings, overdue)
            self._follow_links(readings)
            if size_bytes >= PORTION_BYTES:
                told += [change.path for change in changes]
                await deliver(Batch(tuple(changes), rescan, more=True))
                changes, size_bytes, always = [], 0, True
        if changes or always:
            told += [change.path for change in changes]
            await deliver(Batch(tuple(sorted(changes, key=lambda change: change.path)), rescan))
        return told

    def _overdue(self) -> set[str]:
        """Files that have been missing for long enough to be gone."""
        now = self._clock()
        return {path for path, gone_at in self._missing.items() if gone_at <= now}

    def _settle_missing(self, readings: Iterable[Reading], overdue: set[str]) -> list[Change]:
        """Start the wait for newly missing files; those `overdue` and still missing are gone."""
        gone = []
        for reading in readings:
            path = reading.path
            if not reading.missing:
                self._missing.pop(path, None)
            elif path in overdue:
                del self._missing[path]
                self._links.pop(path, None)
                gone.append(self._known.forget(path))
            elif self._known.has(path):
                self._missing.setdefault(path, self._clock() + self._timing.missing_s)
        return gone

    def _follow_links(self, readings: Iterable[Reading]) -> None:
        found = {reading.path: reading.target for reading in readings if reading.target}
        if not found.items() <= self._links.items():
            self._links.update(found)
            self._hints.follow(self._links)

    def _show_mode(self) -> None:
        mode = "paused" if self._paused else self._sensor.mode
        if mode != self._mode:
            self._mode = mode
            log.info("watching %s: %s", self._tree.root, mode)
            if self._on_mode is not None:
                self._on_mode(mode)


def read_portion(tree: Tree, wanted: Iterator[tuple[str, str | None]]) -> list[Reading]:
    """Readings of the next paths of `wanted`, each given with its known digest; empty at the end."""
    readings = []
    size_bytes = 0
    for path, digest in islice(wanted, PORTION_FILES):
        reading = tree.read(path, digest)
        readings.append(reading)
        size_bytes += len(reading.data or b"")
        if size_bytes >= PORTION_BYTES:
            break
    return readings

"""The mailbox between the observer's threads and the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hinted:
    """What came since the last look. Hints only say where to look, never what happened."""

    paths: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    everywhere: bool = False
    """Events were lost, or the observed folders themselves changed: look everywhere."""


class Hints:
    """Collects hints from any thread and wakes the loop once a burst.

    `wake` is called from the posting thread, on the first hint after a `take` only: a flood of
    200,000 events must not become as many loop callbacks. With a `burst_limit`, more events than
    that between two takes count as loss.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        wake: Callable[[], None],
        burst_limit: int | None = None,
    ) -> None:
        self._clock = clock
        self._wake = wake
        self._burst_limit = burst_limit
        self._lock = threading.Lock()
        self._paths: set[str] = set()
        self._folders: set[str] = set()
        self._everywhere = False
        self._events = 0
        self._first_at: float | None = None
        self._last_at = self._active_at = clock()
        self._links: Mapping[str, list[str]] = {}

    def path(self, path: str) -> None:
        """Look at the watched file `path`."""
        self._post(paths=(path,))

    def folder(self, folder: str) -> None:
        """Look at everything below `folder`."""
        self._post(folders=(folder,))

    def everywhere(self) -> None:
        """Look at everything, through a new observation."""
        self._post(everywhere=True)

    def other(self, path: str) -> None:
        """An event about `path`, which is not watched itself but may be what a link ends at."""
        self._post(paths=self._links.get(path, ()))

    def follow(self, links: Mapping[str, str]) -> None:
        """Hint at a link when its target changes; `links` is each followed link's target."""
        by_target: dict[str, list[str]] = {}
        for link, target in links.items():
            by_target.setdefault(target, []).append(link)
        self._links = by_target

    def burst(self) -> tuple[float, float] | None:
        """When the first and the last pending hint came; None if there is none."""
        with self._lock:
            return None if self._first_at is None else (self._first_at, self._last_at)

    @property
    def active_at(self) -> float:
        """When anything at all last happened in the observed folders."""
        with self._lock:
            return self._active_at

    def take(self) -> Hinted:
        """All pending hints; the mailbox is then empty."""
        with self._lock:
            taken = Hinted(frozenset(self._paths), frozenset(self._folders), self._everywhere)
            self._paths, self._folders = set(), set()
            self._everywhere, self._events, self._first_at = False, 0, None
        return taken

    def _post(
        self,
        paths: tuple[str, ...] | list[str] = (),
        folders: tuple[str, ...] = (),
        everywhere: bool = False,
    ) -> None:
        with self._lock:
            self._active_at = self._clock()
            self._events += 1
            self._paths.update(paths)
            self._folders.update(folders)
            lost = self._burst_limit is not None and self._events > self._burst_limit
            self._everywhere |= everywhere or lost
            if not (paths or folders or self._everywhere):
                return
            self._last_at = self._active_at
            first = self._first_at is None
            if first:
                self._first_at = self._last_at
        if first:
            self._wake()

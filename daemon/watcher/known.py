"""What was told already, so that only changed content is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from daemon.watcher.change import Change
from daemon.watcher.reading import Reading, Stamp

EXPECTATION_S = 5.0
"""How long an announced write is waited for. An apply takes milliseconds; a rolled-back one must
not swallow the same change made by hand a minute later."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The last thing told about a path. No content."""

    stamp: Stamp | None
    digest: str | None
    problem: str | None


class Known:
    """Per watched path what was last told; turns readings into changes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[str, Seen] = {}
        self._expected: dict[tuple[str, str], float] = {}

    def paths(self) -> frozenset[str]:
        return frozenset(self._seen)

    def below(self, folder: str) -> list[str]:
        """Known paths inside `folder`."""
        return [path for path in self._seen if path.startswith(f"{folder}/")]

    def has(self, path: str) -> bool:
        return path in self._seen

    def digest(self, path: str) -> str | None:
        seen = self._seen.get(path)
        return seen.digest if seen else None

    def is_current(self, path: str, stamp: Stamp | None) -> bool:
        """Whether `stamp` proves that `path` is as it was told."""
        seen = self._seen.get(path)
        return seen is not None and stamp is not None and seen.stamp == stamp

    def expect(self, path: str, digest: str) -> None:
        """Announce that this program is about to give `path` the content of `digest`."""
        now = self._clock()
        self._expected = {key: until for key, until in self._expected.items() if until > now}
        self._expected[path, digest] = now + EXPECTATION_S

    def absorb(self, readings: Iterable[Reading]) -> list[Change]:
        """The changes that `readings` make; missing files make none (see `forget`)."""
        changes = []
        for reading in readings:
            if reading.missing:
                continue
            before = self._seen.get(reading.path)
            self._seen[reading.path] = Seen(reading.stamp, reading.digest, reading.problem)
            if before and (before.digest, before.problem) == (reading.digest, reading.problem):
                continue
            if self._was_expected(reading):
                continue
            changes.append(Change(reading.path, reading.data, reading.digest, reading.problem))
        return changes

    def _was_expected(self, reading: Reading) -> bool:
        if reading.digest is None:
            return False
        until = self._expected.pop((reading.path, reading.digest), None)
        return until is not None and self._clock() < until

    def forget(self, path: str) -> Change:
        """The change that the known `path` is gone."""
        del self._seen[path]
        return Change(path, gone=True)

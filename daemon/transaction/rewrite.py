"""Rewrite: new bytes for several files, staged beside them and then renamed over them."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from daemon.errors import IoFailed, Stale
from daemon.transaction.disk import Disk
from daemon.transaction.target import Target
from gate.values.kernel import digest

log = logging.getLogger(__name__)

Announce = Callable[[str, str], None]
"""Told the path and digest of a file right before it gets them; the watcher's `expect`."""

ADVICE = {
    errno.ENOSPC: "free some space on its disk",
    errno.EDQUOT: "free some space; the quota is used up",
    errno.EROFS: "its file system is mounted read-only",
    errno.EACCES: "check the modes of the file and its folder",
    errno.EPERM: "check its owner and attributes (`lsattr`): they could not be kept",
    errno.EBUSY: "the file itself is a mount point",
}


@dataclass(frozen=True, slots=True)
class Write:
    """One file of a rewrite."""

    target: Target
    before: bytes
    after: bytes


def temporary(location: Path, tag: str, index: int) -> Path:
    """Where the new bytes of file `index` of the change `tag` are staged: in the same folder, so
    that renaming is atomic, under a name that the watcher ignores."""
    return location.with_name(f".klineage-{tag}-{index}")


class Rewrite:
    """The writes of one change. Either all files get their new bytes or none does."""

    def __init__(self, disk: Disk, tag: str, writes: Sequence[Write], announce: Announce) -> None:
        self._disk = disk
        self._tag = tag
        self._writes = writes
        self._announce = announce

    def carry_out(self) -> None:
        """Raises Stale if a file is not as it was, IoFailed if the file system refuses; every file
        then has its old bytes. Raises HalfDone if not even those could be put back."""
        for index, write in enumerate(self._writes):
            with self._undoing([], write.target):
                self._stage(index, write.target, write.after)
        for write in self._writes:
            with self._undoing([], write.target):
                # Once more, as close to the renames as can be: an editor may have saved meanwhile.
                if self._disk.read(write.target.location) != write.before:
                    raise Stale(f"{write.target.path} changed just now; nothing was written")
        done: list[Write] = []
        for index, write in enumerate(self._writes):
            with self._undoing(done, write.target):
                self._swap(index, write.target, write.after)
                done.append(write)
        for write in self._writes:
            with self._undoing(done, write.target):
                self._disk.sync_folder(write.target.location.parent)

    @contextmanager
    def _undoing(self, done: Sequence[Write], target: Target) -> Iterator[None]:
        """If the file system refuses something about `target`, put back what is `done`."""
        try:
            yield
        except (OSError, Stale) as error:
            self.put_back(done)
            if isinstance(error, Stale):
                raise
            reason = f"{error.strerror or error}; nothing was changed"
            advice = ADVICE.get(error.errno or 0)
            raise IoFailed(
                f"cannot write {target.path}: {reason}" + (f"; {advice}" if advice else "")
            ) from error

    def put_back(self, done: Sequence[Write] | None = None) -> None:
        """Give the files of `done` (all, if None) their old bytes again. Raises HalfDone.

        A file that was edited meanwhile is left alone.
        """
        done = self._writes if done is None else done
        try:
            for index, write in enumerate(self._writes):
                if write not in done or self._disk.read(write.target.location) != write.after:
                    continue
                self._disk.remove(temporary(write.target.location, self._tag, index))
                self._stage(index, write.target, write.before)
                self._swap(index, write.target, write.before)
                self._disk.sync_folder(write.target.location.parent)
        except OSError as error:
            names = ", ".join(write.target.path for write in done)
            raise HalfDone(
                f"{names} could not be put back ({error.strerror}); the old bytes are in the"
                " journal and are restored when the daemon starts again"
            ) from error
        self.clean_up()

    def clean_up(self) -> None:
        """Remove what is left of the staged files."""
        for index, write in enumerate(self._writes):
            leftover = temporary(write.target.location, self._tag, index)
            try:
                self._disk.remove(leftover)
            except OSError as error:
                log.warning("left %s behind: %s", leftover, error.strerror)

    def _stage(self, index: int, target: Target, data: bytes) -> None:
        descriptor = self._disk.create(temporary(target.location, self._tag, index))
        try:
            self._disk.write(descriptor, data)
            self._disk.imitate(descriptor, target.location)
            self._disk.sync(descriptor)
        finally:
            os.close(descriptor)

    def _swap(self, index: int, target: Target, data: bytes) -> None:
        for path in {target.path, target.real_path}:
            self._announce(path, digest(data))
        self._disk.rename(temporary(target.location, self._tag, index), target.location)


class HalfDone(IoFailed):
    """Some files have new bytes and some old ones; the journal's recovery will settle it."""

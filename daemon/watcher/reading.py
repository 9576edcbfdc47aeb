"""One file as it is on disk right now."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from dataclasses import dataclass
from typing import NamedTuple

MAX_BYTES = 4 * 1024 * 1024
"""No kernel is longer; what is gets a problem line and is not read."""

_SETTLED_NS = 2_000_000_000
"""A file system's clock may tick only every 2 s (FAT; NFS ticks every second). A file touched more
recently than that can change again without its times changing."""


class Stamp(NamedTuple):
    """What a file system says about a file without reading it."""

    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        return cls(
            status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode
        )

    @property
    def settled(self) -> bool:
        """Whether an equal stamp later means equal content.

        By the change time alone: nobody can set it, while archives and `touch` set the other.
        """
        return time.time_ns() - self.ctime_ns > _SETTLED_NS


@dataclass(frozen=True, slots=True)
class Reading:
    """A path as it was found: content, or why there is none, or that there is no such file."""

    path: str
    stamp: Stamp | None = None
    """Taken before the content was read, so a later write shows. None if it proves nothing."""
    digest: str | None = None
    data: bytes | None = None
    """None also when `digest` is the one the caller already knew."""
    problem: str | None = None
    target: str | None = None
    """For a symbolic link that is followed: the path it ends at."""

    @property
    def missing(self) -> bool:
        return self.digest is None and self.problem is None


def read_file(location: str, path: str, known_digest: str | None = None) -> Reading:
    """The file at the absolute `location`, reported as `path`.

    Content equal to `known_digest` is not kept. At most 4 MiB is ever read. A folder is no file,
    so it reads as missing.
    """
    try:
        # Non-blocking, because opening a FIFO would otherwise wait for a writer.
        descriptor = os.open(location, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return Reading(path)
    except PermissionError:
        return Reading(path, problem="permission denied; try chmod u+r")
    except OSError as error:
        return Reading(path, problem=f"cannot be opened: {error.strerror}")
    try:
        status = os.fstat(descriptor)
        stamp = Stamp.of(status)
        if stat.S_ISDIR(status.st_mode):
            return Reading(path)
        if not stat.S_ISREG(status.st_mode):
            return Reading(path, problem="not a regular file")
        kept = stamp if stamp.settled else None
        data = _read_capped(descriptor) if stamp.size_bytes <= MAX_BYTES else b""
    except OSError as error:
        return Reading(path, problem=f"cannot be read: {error.strerror}")
    finally:
        os.close(descriptor)
    if stamp.size_bytes > MAX_BYTES or len(data) > MAX_BYTES:
        return Reading(path, kept, problem="over 4 MiB; exclude it or split it")
    if b"\0" in data:
        return Reading(path, kept, problem="not text: it holds a NUL byte")
    digest = hashlib.sha256(data).hexdigest()
    return Reading(path, kept, digest, None if digest == known_digest else data)


def _read_capped(descriptor: int) -> bytes:
    """What the file holds, but no more than one byte over the limit."""
    parts = []
    left = MAX_BYTES + 1
    while left and (part := os.read(descriptor, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)

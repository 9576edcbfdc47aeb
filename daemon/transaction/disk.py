"""Disk: the system calls that replace a file, one method each, so that tests can let them fail."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


class Disk:
    """The real one."""

    def read(self, location: Path) -> bytes:
        return location.read_bytes()

    def create(self, temporary: Path) -> int:
        """A descriptor of the new file `temporary`, for its owner alone. It must not exist."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(temporary, flags, 0o600)

    def write(self, descriptor: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]

    def imitate(self, descriptor: int, original: Path) -> None:
        """Give the new file the owner, group, mode and extended attributes of `original`."""
        status = original.stat()
        if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(descriptor, status.st_uid, status.st_gid)
        for name in os.listxattr(original):
            # Access lists and user attributes matter; labels that the kernel sets by itself may
            # refuse, and a file system may have none at all.
            with contextlib.suppress(OSError):
                os.setxattr(descriptor, name, os.getxattr(original, name))
        # Last: changing the owner clears bits of the mode.
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))

    def sync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def rename(self, temporary: Path, location: Path) -> None:
        temporary.rename(location)

    def sync_folder(self, folder: Path) -> None:
        """A rename survives a loss of power only once its folder is on the disk."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, temporary: Path) -> None:
        """Remove a temporary file if it is there."""
        temporary.unlink(missing_ok=True)

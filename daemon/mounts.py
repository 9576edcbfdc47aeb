"""What kind of file system a path is on: sockets and SQLite's WAL need a local one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

MOUNTINFO = Path("/proc/self/mountinfo")

NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "drvfs", "afs", "ceph", "lustre"}
    | {"glusterfs", "gpfs", "beegfs", "ncpfs", "vboxsf", "vmhgfs", "prl_fs"}
)
"""Types that live on another machine, or on a host that does not share its page cache."""

LOCAL_FUSE = frozenset(
    {"fuse.fuse-overlayfs", "fuse.gocryptfs", "fuse.encfs", "fuse.mergerfs", "fuse.bindfs"}
)
"""FUSE types that lie over a local disk. Any other `fuse.*` is taken for a network's."""


@dataclass(frozen=True, slots=True)
class Mount:
    """The mount a path is on."""

    point: str
    type: str

    @property
    def is_local(self) -> bool:
        """False for what is reached over a network or shared from a host machine."""
        if self.type.startswith("fuse."):
            return self.type in LOCAL_FUSE
        return self.type not in NETWORK


def mount_of(path: Path) -> Mount | None:
    """The mount that holds `path`, which need not exist. None where the kernel does not say."""
    try:
        table = MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return mount_in(table, os.path.realpath(path))


def mount_in(table: str, path: str) -> Mount | None:
    """The mount in a `/proc/<pid>/mountinfo` table (see proc(5)) that holds an absolute path."""
    best: Mount | None = None
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = _unescape(fields[4])
        below = path == point or path.startswith(point.rstrip("/") + "/")
        # A later line at the same point is mounted over the earlier one.
        if below and (best is None or len(point) >= len(best.point)):
            best = Mount(point, after.split(" ", 1)[0])
    return best


def _unescape(field: str) -> str:
    # proc(5): space, tab, newline and backslash are written as octal escapes.
    for escape, character in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        field = field.replace(escape, character)
    return field

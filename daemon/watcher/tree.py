"""The worktree as the watcher sees it: which files it holds, and each one's reading."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from daemon.mounts import Mount, mount_of
from daemon.watcher.patterns import PathFilter, folders_of
from daemon.watcher.reading import Reading, Stamp, read_file

MARKERS = ("pyvenv.cfg", "CACHEDIR.TAG")
"""A folder that holds one of these is a Python environment or a cache, whatever its name
(PEP 405; bford.info/cachedir)."""


@dataclass(slots=True)
class Walk:
    """What a walk found. Paths are relative to the root."""

    files: dict[str, Stamp | None] = field(default_factory=dict)
    """Candidates. A symbolic link has no stamp: only reading it tells what it is."""
    refused: list[Reading] = field(default_factory=list)
    """Folders and names that cannot be looked at, each with its problem."""
    repositories: list[str] = field(default_factory=list)
    """Folders other than the root that hold a `.git`: submodules and nested clones."""


class Tree:
    """Files below `root` that `paths` wants. Every call looks at the disk; nothing is kept.

    Folder links are never followed, so there are no cycles and no file has two ways in. A file
    link is followed within the root: if its target is itself watched, it is the same file and
    only the target is told; if not, the link's path is. A link that leaves the root is a problem,
    because applying through it would write outside.
    """

    def __init__(self, root: Path, paths: PathFilter) -> None:
        self.root = os.path.realpath(root)
        self.paths = paths

    def relative(self, location: str) -> str | None:
        """`location` relative to the root; "" for the root itself, None outside it."""
        if location == self.root:
            return ""
        prefix = self.root.rstrip("/") + "/"
        return location[len(prefix) :] if location.startswith(prefix) else None

    def locate(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def enters(self, folder: str) -> bool:
        """Whether the walk looks into `folder`, given that it looks into its parents."""
        return self.paths.enters(folder) and not self._is_marked(folder)

    def reaches(self, folder: str) -> bool:
        """Whether the walk gets to `folder` and looks into it."""
        return all(self.enters(part) for part in (*folders_of(folder), folder) if part)

    def walk(self, start: str = "") -> Walk:
        """All candidates below the folder `start`. A folder that vanishes meanwhile is empty.

        Raises FileNotFoundError or NotADirectoryError only if the root itself is gone.
        """
        found = Walk()
        pending = [start] if self.reaches(start) else []
        while pending:
            folder = pending.pop()
            try:
                pending.extend(self._list(folder, found))
            except PermissionError:
                problem = "folder cannot be listed: permission denied; try chmod u+rx"
                found.refused.append(Reading(folder or ".", problem=problem))
            except (FileNotFoundError, NotADirectoryError):
                if not folder:
                    raise
            except OSError as error:
                problem = f"folder cannot be listed: {error.strerror}"
                found.refused.append(Reading(folder or ".", problem=problem))
        return found

    def _list(self, folder: str, found: Walk) -> Iterator[str]:
        """Sort the entries of `folder` into `found`; give the folders to look into next."""
        prefix = f"{folder}/" if folder else ""
        with os.scandir(self.locate(folder)) as entries:
            listed = list(entries)
        if folder and any(entry.name in MARKERS for entry in listed):
            return
        for entry in listed:
            path = prefix + entry.name
            if entry.name == ".git" and folder:
                found.repositories.append(folder)
            if entry.is_dir(follow_symlinks=False):
                if self.paths.enters(path):
                    yield path
            elif self.paths.includes(path):
                if not _is_utf8(path):
                    shown = path.encode("utf-8", "surrogateescape").decode(
                        "utf-8", "backslashreplace"
                    )
                    found.refused.append(
                        Reading(shown, problem="file name is not UTF-8; rename it")
                    )
                elif entry.is_symlink():
                    found.files[path] = None
                else:
                    found.files[path] = self._stamp(entry)

    @staticmethod
    def _stamp(entry: os.DirEntry[str]) -> Stamp | None:
        try:
            return Stamp.of(entry.stat(follow_symlinks=False))
        except OSError:
            return None  # it vanished, or will say why when it is read

    def read(self, path: str, known_digest: str | None = None) -> Reading:
        """The file at `path`; missing also if it is only a second name of a watched file."""
        location = self.locate(path)
        try:
            status = os.lstat(location)
        except OSError:
            return read_file(location, path, known_digest)
        if not stat.S_ISLNK(status.st_mode):
            return read_file(location, path, known_digest)
        target = self.link_target(path)
        if target is None:
            return Reading(path, problem="links outside the worktree; it is not followed")
        if self.paths.holds(target):
            return Reading(path)
        reading = read_file(self.locate(target), path, known_digest)
        # The target's stamp says nothing about the link, which may point elsewhere next time.
        return replace(reading, stamp=None, target=target)

    def link_target(self, path: str) -> str | None:
        """Where the link at `path` ends, relative to the root; None if that is outside."""
        return self.relative(os.path.realpath(self.locate(path)))

    def mounts(self) -> list[Mount]:
        """The mounts that the root and the folders in it are on."""
        with os.scandir(self.root) as entries:
            folders = [
                e for e in entries if e.is_dir(follow_symlinks=False) and self.enters(e.name)
            ]
        device = Path(self.root).stat().st_dev
        mounted = [e.path for e in folders if e.stat(follow_symlinks=False).st_dev != device]
        return [mount for path in (self.root, *mounted) if (mount := mount_of(Path(path)))]

    def _is_marked(self, folder: str) -> bool:
        return any(os.path.lexists(f"{self.locate(folder)}/{marker}") for marker in MARKERS)


def _is_utf8(name: str) -> bool:
    """False for a name whose bytes are not UTF-8: it could not cross the socket."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True

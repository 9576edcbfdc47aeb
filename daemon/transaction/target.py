"""Target: the file that an edit ends up in, and whether it may be replaced."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from daemon.errors import IoFailed, Stale


@dataclass(frozen=True, slots=True)
class Target:
    """A regular file inside the worktree, links resolved."""

    path: str
    """As the edit named it."""
    real_path: str
    """Relative to the root too; differs from `path` if that goes through a link."""
    location: Path


def locate(root: Path, path: str) -> Target:
    """The file that `path` means; a symbolic link is written through, to its target.

    Raises IoFailed if that is outside `root`, no regular file, read-only, or has a second name;
    Stale if it is gone. Nothing was changed then.
    """
    parts = PurePosixPath(path)
    if not path or "\0" in path or parts.is_absolute() or ".." in parts.parts:
        raise IoFailed(f"{path!r} is not a path inside the worktree; nothing was changed")
    real_root = root.resolve()
    try:
        location = (real_root / path).resolve(strict=True)
        status = location.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Stale(f"{path} is gone; nothing was changed") from error
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, in Python 3.11
        raise IoFailed(f"cannot look at {path}: {error}; nothing was changed") from error
    if not location.is_relative_to(real_root):
        raise IoFailed(f"{path} links to {location}, outside the worktree; nothing was changed")
    refusal = _refusal(location, status)
    if refusal:
        raise IoFailed(f"{path} {refusal}; nothing was changed")
    return Target(path, location.relative_to(real_root).as_posix(), location)


def _refusal(location: Path, status: os.stat_result) -> str:
    """Why the file is not replaced; empty if it may be.

    By mode, and not by trying: replacing a file needs no right on the file itself, and root may
    do anything, but a person who made a file read-only did not mean this tool to write it.
    """
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    if status.st_nlink > 1:
        # Replacing would part the names; writing in place could leave half a file behind.
        return (
            f"has {status.st_nlink} hard links, which replacing it would part;"
            " give it one name (`cp`, then `mv` over it) to apply"
        )
    if not _is_writable(location, status):
        return f"is read-only (mode {stat.S_IMODE(status.st_mode):04o}); try chmod u+w"
    folder = location.parent
    if not _is_writable(folder, folder.stat()):
        mode = stat.S_IMODE(folder.stat().st_mode)
        return f"is in a read-only folder (mode {mode:04o}); try chmod u+w on {folder}"
    return ""


def _is_writable(location: Path, status: os.stat_result) -> bool:
    return bool(status.st_mode & 0o222) and os.access(location, os.W_OK)

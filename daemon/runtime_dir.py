"""Where the daemon's socket is: in a folder that is ours, private and local, or nowhere."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path

from daemon.errors import Unavailable
from daemon.mounts import mount_of
from daemon.worktree import worktree_id

SOCKET_PATH_LIMIT_BYTES = 103
"""Longest path a socket can be bound to: 108 bytes with the final NUL on Linux, 104 elsewhere."""


def socket_path(root: Path) -> Path:
    """Where the daemon of this worktree listens. Raises Unavailable as `runtime_dir` does."""
    path = runtime_dir() / f"{worktree_id(root)}.sock"
    if len(os.fsencode(path)) > SOCKET_PATH_LIMIT_BYTES:
        raise Unavailable(
            f"{path} is too long for a socket ({len(os.fsencode(path))} bytes, the limit is "
            f"{SOCKET_PATH_LIMIT_BYTES}); set XDG_RUNTIME_DIR to a shorter private folder"
        )
    return path


def runtime_dir() -> Path:
    """The folder of sockets, created (mode 0700) if it is not there.

    `$XDG_RUNTIME_DIR/klineage`, else `klineage` in the platform's runtime folder. Raises
    Unavailable, saying why each was refused, if neither is this user's alone and local.
    """
    refused = []
    for base in _bases():
        folder = base / "klineage"
        reason = _refuse(folder)
        if reason is None:
            return folder
        refused.append(f"{folder}: {reason}")
    raise Unavailable(
        "no private folder for the daemon's socket: "
        + "; ".join(refused)
        + "; set XDG_RUNTIME_DIR to a local folder that you own with mode 0700"
    )


def _bases() -> Iterator[Path]:
    named = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if named.is_absolute():
        yield named
    # Reached only where there is no usable XDG_RUNTIME_DIR; the import costs 10 ms.
    import platformdirs

    with warnings.catch_warnings():
        # It warns that XDG_RUNTIME_DIR is unset: usual in containers, and checked by `_refuse`.
        warnings.simplefilter("ignore")
        try:
            fallback = Path(platformdirs.user_runtime_dir())
        except PermissionError as error:
            raise Unavailable(
                f"no private folder for the daemon's socket: {error}; "
                "set XDG_RUNTIME_DIR to a local folder that you own with mode 0700"
            ) from error
    if fallback != named:
        yield fallback


def _refuse(folder: Path) -> str | None:
    """Why the folder cannot hold the socket; None if it can. Creates it if it is missing."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # lstat: a link that someone else planted must not lead us elsewhere.
        found = folder.lstat()
    except OSError as error:
        return f"cannot be created ({error.strerror})"
    if not stat.S_ISDIR(found.st_mode):
        return "is not a folder"
    if found.st_uid != os.getuid():
        return f"belongs to user {found.st_uid}, not to you ({os.getuid()})"
    # Permissions alone: a folder made below a set-group-id one has that bit too.
    if found.st_mode & 0o777 != 0o700:
        return f"has mode {found.st_mode & 0o777:04o}, not 0700; `chmod 700` it"
    mount = mount_of(folder)
    if mount is not None and not mount.is_local:
        return f"is on a {mount.type} mount ({mount.point}), which cannot host a socket"
    return None

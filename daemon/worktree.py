"""Which worktree a path belongs to, and where this user's files about it are.

Standard library alone: a client imports this before it knows whether a daemon runs.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

MARKS = (".git", "klineage.toml")
"""A folder that has one of these is a root. `.git` is a file in linked worktrees and submodules."""


def find_root(start: Path) -> Path:
    """The worktree that holds `start`, symbolic links resolved.

    The nearest ancestor with a `.git` or a `klineage.toml`; without one, the folder itself, so
    that a scratch folder works too.
    """
    resolved = start.resolve()
    folder = resolved if resolved.is_dir() else resolved.parent
    for candidate in (folder, *folder.parents):
        if any((candidate / mark).exists() for mark in MARKS):
            return candidate
    return folder


def worktree_id(root: Path) -> str:
    """12 hex digits of the SHA-256 of the root's real path; names its socket, lock and state."""
    return hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:12]


def state_dir(root: Path) -> Path:
    """Where the journal and the log of this worktree are. May not exist yet.

    Outside the repository, because `git clean` must not eat undo.
    """
    return _user_dir("XDG_STATE_HOME", ".local/state") / worktree_id(root)


def log_path(root: Path) -> Path:
    """The daemon's log: what it and anything it starts print, and its own log lines."""
    return state_dir(root) / "daemon.log"


def lock_path(root: Path) -> Path:
    """The file whose lock says that a daemon of this worktree is alive, and where it listens.

    Beside the journal and not beside the socket: two logins of one user may differ in
    XDG_RUNTIME_DIR, and must not end up with two daemons on one journal.
    """
    return state_dir(root) / "daemon.lock"


def journal_path(root: Path) -> Path:
    """The daemon's database."""
    return state_dir(root) / "journal.db"


def user_configuration_path() -> Path:
    """The user's klineage.toml, which alone may name commands, endpoints and permissions."""
    return _user_dir("XDG_CONFIG_HOME", ".config") / "klineage.toml"


def repository_configuration_path(root: Path) -> Path:
    """The repository's klineage.toml."""
    return root / "klineage.toml"


def data_dir() -> Path:
    """Where the user's own skills and answers are."""
    return _user_dir("XDG_DATA_HOME", ".local/share")


def make_private(folder: Path) -> None:
    """Create `folder` readable by its owner alone; one that is there already is left as it is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _user_dir(variable: str, below_home: str) -> Path:
    # The XDG base directory specification: a relative path in the variable is to be ignored.
    named = os.environ.get(variable, "")
    base = Path(named) if Path(named).is_absolute() else Path.home() / below_home
    return base / "klineage"

"""Whether git is rewriting the worktree: its `index.lock`, wherever the index lies."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def git_dir(folder: Path) -> Path | None:
    """Where git keeps the index of the worktree at `folder`; None if there is no `.git` in it.

    `.git` is a folder in a plain clone, and a file `gitdir: <path>` in a linked worktree or a
    submodule (gitrepository-layout(5)).
    """
    dot_git = folder / ".git"
    if dot_git.is_dir():
        return dot_git
    try:
        text = dot_git.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    key, _, path = text.strip().partition(": ")
    return folder / path if key == "gitdir" else None


def enclosing_git_dir(root: Path) -> Path | None:
    """The git folder of the worktree that `root` is in, which may be above it."""
    for folder in (root, *root.parents):
        found = git_dir(folder)
        if found is not None:
            return found
    return None


class GitLocks:
    """The index locks that concern one tree."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._locks: tuple[Path, ...] = ()
        self.refresh(())

    def refresh(self, repositories: Iterable[str]) -> None:
        """Follow the root's repository and those found in the folders `repositories`."""
        nested = (git_dir(self._root / folder) for folder in repositories)
        found = {
            folder for folder in (enclosing_git_dir(self._root), *nested) if folder is not None
        }
        self._locks = tuple(sorted(folder / "index.lock" for folder in found))

    def held(self) -> bool:
        return any(lock.exists() for lock in self._locks)

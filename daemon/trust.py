"""The person's one-time answer: may what is in this worktree be run?

Kept in `$XDG_DATA_HOME/klineage/trust/<worktree id>.json`, outside of every repository and apart
from the journal, so that a journal that had to be begun anew does not ask again. An answer that
lies inside the worktree is not believed: it could have come with the repository.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from daemon.errors import IoFailed
from daemon.journal_database import utc_now
from daemon.worktree import data_dir, make_private, worktree_id


class Answer(msgspec.Struct, frozen=True):
    """What was answered, and for which root: a worktree id is only half a digest."""

    root: str
    trusted: bool
    at: str
    """UTC, ISO 8601."""


class Trust:
    """The answer for one worktree; `trusted` is False until a person said yes."""

    def __init__(self, root: Path) -> None:
        """Reads what was answered before."""
        self._root = Path(os.path.realpath(root))
        self._path = data_dir() / "trust" / f"{worktree_id(root)}.json"
        self._answer = self._remembered()

    @property
    def trusted(self) -> bool:
        """Whether what is in the worktree may be run."""
        return self._answer is not None and self._answer.trusted

    @property
    def asked(self) -> bool:
        """Whether it was answered at all, yes or no."""
        return self._answer is not None

    def answer(self, trusted: bool) -> None:
        """Remember the answer. It holds for this process even where it cannot be written.

        Raises IoFailed if it cannot: the next daemon will ask again.
        """
        self._answer = Answer(str(self._root), trusted, utc_now())
        if self._inside_worktree():
            raise IoFailed(
                f"the answer holds until the daemon ends and is not remembered: {self._path} lies "
                "inside the worktree; set XDG_DATA_HOME to a folder outside of it"
            )
        unfinished = self._path.with_suffix(".new")
        try:
            make_private(self._path.parent)
            unfinished.write_bytes(msgspec.json.encode(self._answer))
            unfinished.replace(self._path)
        except OSError as error:
            raise IoFailed(
                f"the answer holds until the daemon ends and is not remembered: cannot write "
                f"{self._path}: {error.strerror}; make that folder writable"
            ) from error

    def _remembered(self) -> Answer | None:
        if self._inside_worktree() or not self._path.exists():
            return None
        try:
            answer = msgspec.json.decode(self._path.read_bytes(), type=Answer)
        except (OSError, msgspec.DecodeError):
            # Not readable is not a yes: the person is asked again.
            return None
        return answer if answer.root == str(self._root) else None

    def _inside_worktree(self) -> bool:
        return Path(os.path.realpath(self._path)).is_relative_to(self._root)

"""Change: one entry of the history, and what it is about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a person did."""

    APPLIED = "applied"
    UNDONE = "undone"
    REDONE = "redone"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class ChangeMeta:
    """What is applied or rejected, as the history shows it."""

    suggestion: str
    skill: str
    kernel: str
    gain: str = ""
    """As it was measured and shown: `2.1x [2.0, 2.2] at 512x512x512`."""
    closure: str = ""
    """Closure digest that the suggestion was made for."""
    key: str = ""
    """The request's own key. Applying twice with the same key applies once."""


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history."""

    id: int
    at: str
    """UTC, ISO 8601."""
    kind: Kind
    meta: ChangeMeta
    files: tuple[str, ...] = ()
    """Paths relative to the worktree root."""
    note: str = ""
    """The reason of a rejection, or what was unusual."""
    origin: int = 0
    """The applied entry that this one undoes or redoes; its own id if it is that entry."""
    undoable: bool = False
    """Its bytes are the latest word: nothing undid it since."""

"""Recovery: what a change that was interrupted becomes. Decides only; nothing is touched."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum


class Found(Enum):
    """A file's bytes, compared with those the change recorded."""

    OLD = "old"
    NEW = "new"
    OTHER = "other"
    """Edited, replaced or removed since; never overwritten."""


class Outcome(Enum):
    """What to make of the change."""

    FORWARD = "forward"
    """Every file has its new bytes: it was made, and only the record of it is missing."""
    BACK = "back"
    """Files with new bytes get their old ones again."""


def outcome(found: Sequence[Found]) -> Outcome:
    """Back unless all is done: with one file edited since, the others must not be half a change."""
    return Outcome.FORWARD if all(file is Found.NEW for file in found) else Outcome.BACK

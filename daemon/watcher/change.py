"""What the watcher delivers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """One watched path whose content is not what was told before.

    Exactly one of `data`, `problem` and `gone` says what there is now.
    """

    path: str
    """Relative to the worktree root, with forward slashes."""
    data: bytes | None = None
    """The whole file as it was read."""
    digest: str | None = None
    """SHA-256 of `data`, 64 hex digits."""
    problem: str | None = None
    """Why the file (or folder) cannot be read, in one line."""
    gone: bool = False
    """The path was told before and is no longer a watched file."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes that belong together; each path at most once, in order of path."""

    changes: tuple[Change, ...]
    rescan: bool
    """Found by walking the whole tree (the first batch, a checkout, an overflow, a poll) rather
    than by following single files. Work queued for content that is no longer there is void."""
    more: bool = False
    """The same rescan continues in the next batch; contents are delivered in bounded portions."""

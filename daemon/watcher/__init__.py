"""The watcher: what changed in the worktree, told once, by content.

`Watcher` turns the hints a file system gives (or a poll) into batches of `Change`. Path filters are
in `patterns`, the walk in `tree`, one file's reading in `reading`, what was already told in
`known`, the mailbox the observer's thread fills in `hints`, git's lock in `git_lock`.
"""

from daemon.watcher.change import Batch, Change
from daemon.watcher.timing import Timing
from daemon.watcher.watcher import Watcher

__all__ = ["Batch", "Change", "Timing", "Watcher"]

"""watchdog over a tree: hints while it works, and an exact reason when it cannot."""

from __future__ import annotations

import ctypes
import errno
import logging
import os
from pathlib import Path

from watchdog import events
from watchdog.observers import Observer
from watchdog.version import VERSION_MAJOR, VERSION_MINOR

from daemon.watcher.hints import Hints
from daemon.watcher.tree import Tree

MAX_WATCHES = 16
"""Folders in the root that get a recursive watch of their own, so that `.git` or an environment of
thousands of folders beside them gets none. watchdog 6 spends an inotify instance and two threads
on each (a user has 128 instances), so with more of them one watch covers the whole root."""

OVERFLOW_LOGGER = "watchdog.observers.inotify_c"
QUEUE_LIMIT = Path("/proc/sys/fs/inotify/max_queued_events")
DEFAULT_QUEUE_LIMIT = 16_384

TELLS_ALL = (VERSION_MAJOR, VERSION_MINOR) >= (7, 1)
"""Before 7.1, watchdog kept silent when the kernel dropped events, and did not watch what is inside
a folder that was moved in."""

SYSCTLS = {
    errno.ENOSPC: "fs.inotify.max_user_watches",
    errno.EMFILE: "fs.inotify.max_user_instances",
}

_IN_DELETE_SELF = 0x400

# Opening and reading are left out, or the watcher's own reading would set it off.
EVENT_NAMES = (
    "FileCreatedEvent",
    "FileModifiedEvent",
    "FileClosedEvent",
    "FileMovedEvent",
    "FileDeletedEvent",
    "FileAttribEvent",  # since watchdog 7; before that it is a FileModifiedEvent
    "DirCreatedEvent",
    "DirMovedEvent",
    "DirDeletedEvent",
)
EVENT_FILTER: list[type[events.FileSystemEvent]] = [
    getattr(events, name) for name in EVENT_NAMES if hasattr(events, name)
]


class Observation:
    """One run of watchdog over `tree`, posting to `hints` from its own threads."""

    def __init__(self, tree: Tree, hints: Hints) -> None:
        """Starts observing. Raises OSError: ENOSPC or EMFILE at a limit of inotify, ENOENT
        without a root."""
        self._tree = tree
        self._root_inode = Path(tree.root).stat().st_ino
        self._overflow = _OverflowHandler(hints)
        self._observer = Observer()
        self._observer.start()
        poster = _Poster(tree, hints)
        try:
            for folder, recursive in self._plan():
                self._observer.schedule(
                    poster, folder, recursive=recursive, event_filter=EVENT_FILTER
                )
            self.check()
        except OSError:
            self._stop_observer()
            raise
        logging.getLogger(OVERFLOW_LOGGER).addHandler(self._overflow)

    def _plan(self) -> list[tuple[str, bool]]:
        """The folders to watch, each with whether what is below it is watched too."""
        with os.scandir(self._tree.root) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        folders = [self._tree.locate(name) for name in names if self._tree.enters(name)]
        if len(folders) > MAX_WATCHES:
            return [(self._tree.root, True)]
        return [(self._tree.root, False), *((folder, True) for folder in folders)]

    def check(self) -> None:
        """Raises OSError if a limit of inotify is reached or the root is not the one observed.

        watchdog keeps silent when a folder below the observed one gets no watch; at the limit,
        this process gets no other watch either.
        """
        if Path(self._tree.root).stat().st_ino != self._root_inode:
            raise FileNotFoundError(errno.ENOENT, "replaced by another folder", self._tree.root)
        libc = ctypes.CDLL(None, use_errno=True)
        instance = libc.inotify_init1(os.O_CLOEXEC)
        if instance < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        try:
            watch = libc.inotify_add_watch(instance, os.fsencode(self._tree.root), _IN_DELETE_SELF)
            if watch < 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        finally:
            os.close(instance)

    def stop(self) -> None:
        """Ends the threads; blocks for some milliseconds."""
        logging.getLogger(OVERFLOW_LOGGER).removeHandler(self._overflow)
        self._stop_observer()

    def _stop_observer(self) -> None:
        self._observer.stop()
        self._observer.join()


class _Poster(events.FileSystemEventHandler):
    """Turns events into hints; runs in watchdog's thread, so it only sorts paths."""

    def __init__(self, tree: Tree, hints: Hints) -> None:
        self._tree = tree
        self._hints = hints

    def on_any_event(self, event: events.FileSystemEvent) -> None:
        for location in (event.src_path, event.dest_path):
            path = self._tree.relative(os.fsdecode(location)) if location else None
            if path is None:
                continue
            if event.is_directory:
                self._post_folder(path)
            elif self._tree.paths.holds(path):
                self._hints.path(path)
            else:
                self._hints.other(path)

    def _post_folder(self, folder: str) -> None:
        if not self._tree.paths.enters_all(folder):
            self._hints.other(folder)
        elif "/" in folder and TELLS_ALL:
            self._hints.folder(folder)
        else:
            # The root itself, or one of the folders that have their own watch: observe anew.
            self._hints.everywhere()


class _OverflowHandler(logging.Handler):
    """Hears watchdog say that the kernel dropped events."""

    def __init__(self, hints: Hints) -> None:
        super().__init__(logging.WARNING)
        self._hints = hints

    def emit(self, record: logging.LogRecord) -> None:
        if "overflow" in record.getMessage():
            self._hints.everywhere()


def burst_limit() -> int | None:
    """How many events in one burst mean that the kernel's queue may have overflowed.

    None where watchdog says so itself.
    """
    if TELLS_ALL:
        return None
    try:
        queued = int(QUEUE_LIMIT.read_text(encoding="ascii"))
    except (OSError, ValueError):
        queued = DEFAULT_QUEUE_LIMIT
    return queued // 2


def explain(error: OSError) -> str:
    """Why inotify is not used, with what to set if a limit is the reason."""
    sysctl = SYSCTLS.get(error.errno or 0)
    if sysctl is None:
        return f"inotify failed: {error.strerror}"
    return f"inotify limit {sysctl} reached; raise it with `sysctl {sysctl}=…`"

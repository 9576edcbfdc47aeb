"""Database: the SQLite file under the journal, its transactions, and what its failures mean."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from daemon.errors import Busy, IoFailed, Unavailable
from daemon.journal_schema import SCHEMA, VERSION
from daemon.mounts import mount_of

BUSY_TIMEOUT_MS = 1000
"""How long a write waits for another connection. The event loop waits with it, hence short."""

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

_ADVICE = {
    sqlite3.SQLITE_FULL: ("the disk is full", "free some space there; nothing was changed"),
    sqlite3.SQLITE_READONLY: ("it is read-only", "check its owner and mode, and the mount"),
    sqlite3.SQLITE_PERM: ("access was denied", "check its owner and mode"),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "check that its folder is there and writable"),
    sqlite3.SQLITE_IOERR: ("the disk failed", "check the disk; `dmesg` may say more"),
    sqlite3.SQLITE_CORRUPT: ("it is damaged", "restart the daemon, which moves it aside"),
    sqlite3.SQLITE_NOTADB: ("it is damaged", "restart the daemon, which moves it aside"),
}


class Database:
    """One connection in WAL mode, used from the thread that opened it.

    Commits survive the death of the process; those made under `durable` also survive a loss of
    power. `messages` says, for people, what opening it had to do.
    """

    def __init__(self, path: Path) -> None:
        """Open or create `path`. A damaged file is moved aside and a new one begun.

        Raises Unavailable on a network mount or for a newer version's file, IoFailed if the file
        system refuses.
        """
        self.path = path
        self.messages: tuple[str, ...] = ()
        _require_local(path)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.chmod(0o700)
            # Created here and not by SQLite, so that it is private from its first byte on. The
            # files SQLite puts beside it get the same mode.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise IoFailed(
                f"cannot create {path}: {error.strerror}; make its folder writable, or set "
                "XDG_STATE_HOME to one that is"
            ) from error
        with explained("open the journal", path):
            try:
                self.connection = self._open()
            except sqlite3.DatabaseError as error:
                if _primary(error) not in _DAMAGED:
                    raise
                aside = _move_aside(path)
                self.messages = (
                    f"the journal was damaged ({error}); it was moved to {aside} and a new one "
                    "begun, so earlier history can no longer be undone here",
                )
                self.connection = self._open()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None
        )
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA foreign_keys=ON")
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                damaged = sqlite3.DatabaseError(found)
                damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
                raise damaged
            self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise Unavailable(
                f"{self.path} was written by a newer klineage (schema {version}, this one knows "
                f"{VERSION}); upgrade, or move the file away"
            )
        if version < VERSION:
            connection.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT;")

    @contextmanager
    def write(self, what: str) -> Iterator[sqlite3.Connection]:
        """One transaction, all or nothing. Raises IoFailed or Busy, naming `what` was tried."""
        with explained(what, self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            finally:
                # Still open if anything was raised; a full disk makes SQLite roll back by itself.
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    @contextmanager
    def durable(self, what: str) -> Iterator[sqlite3.Connection]:
        """As `write`, and on the disk itself when it returns: for what guards source files."""
        self.connection.execute("PRAGMA synchronous=FULL")
        try:
            with self.write(what) as connection:
                yield connection
        finally:
            self.connection.execute("PRAGMA synchronous=NORMAL")

    @contextmanager
    def read(self, what: str) -> Iterator[sqlite3.Connection]:
        """For queries: raises IoFailed or Busy as `write` does."""
        with explained(what, self.path):
            yield self.connection

    def close(self) -> None:
        """Close the file; the WAL is folded into it."""
        self.connection.close()


@contextmanager
def explained(what: str, path: Path) -> Iterator[None]:
    """Failures of the file system or of another process, as IoFailed or Busy that name `what`.

    Any other error of SQLite is our mistake and passes unchanged.
    """
    try:
        yield
    except sqlite3.Error as error:
        code = _primary(error)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise Busy(
                f"cannot {what}: another process holds {path}; try again once it is done"
            ) from error
        if code not in _ADVICE:
            raise
        cause, advice = _ADVICE[code]
        raise IoFailed(f"cannot {what} in {path}: {cause}; {advice}") from error


def utc_now() -> str:
    """The time now as the journal writes it: UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _primary(error: sqlite3.Error) -> int:
    # The low byte is the primary code: https://sqlite.org/rescode.html#extrc
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _require_local(path: Path) -> None:
    mount = mount_of(path)
    if mount is not None and not mount.is_local:
        raise Unavailable(
            f"{path} would be on a {mount.type} mount ({mount.point}), where SQLite's write-ahead "
            "log does not work; set XDG_STATE_HOME to a folder on a local disk"
        )


def _move_aside(path: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    for suffix in ("", "-wal", "-shm"):
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.rename(aside.with_name(aside.name + suffix))
    return aside

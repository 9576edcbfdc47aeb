"""ChangeLog: apply, undo and redo, each as one journaled transaction over its files."""

from __future__ import annotations

import logging
import secrets
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from daemon.errors import IoFailed, NotFound, RpcError, Stale
from daemon.journal import Journal
from daemon.journal_database import utc_now
from daemon.transaction.change import Change, ChangeMeta, Kind
from daemon.transaction.disk import Disk
from daemon.transaction.recovery import Found, Outcome, outcome
from daemon.transaction.rewrite import Announce, HalfDone, Rewrite, Write
from daemon.transaction.store import FileRecord, Store
from daemon.transaction.target import Target, locate
from gate.values.candidate import FileEdit
from gate.values.kernel import digest

log = logging.getLogger(__name__)


class ChangeLog:
    """What was applied and undone in the worktree `root`, and the doing of it.

    Calls are synchronous and take some milliseconds a file, most of it `fsync`. Every refusal
    leaves all files as they were and says so.
    """

    def __init__(
        self,
        journal: Journal,
        root: Path,
        *,
        announce: Announce = lambda path, digest: None,
        now: Callable[[], str] = utc_now,
        disk: Disk | None = None,
    ) -> None:
        """`announce` is told each path and digest right before the file gets it."""
        self._store = Store(journal, now)
        self._root = root
        self._announce = announce
        self._disk = disk or Disk()

    def apply(self, edits: Sequence[FileEdit], meta: ChangeMeta) -> Change:
        """Write all `edits`, or none; with a key that was used before, answer what it did then.

        Raises Stale if a file is not the one an edit was made from, IoFailed if one may not be
        or cannot be written.
        """
        self._settle()
        if meta.key and (done := self._store.by_key(meta.key)):
            return done
        writes = [self._write_for(edit) for edit in edits]
        if all(write.before == write.after for write in writes):
            raise Stale(f"{meta.skill} would change nothing in {meta.kernel}; it is there already")
        if len({write.target.location for write in writes}) < len(writes):
            raise IoFailed("two edits lead to the same file through a link; nothing was changed")
        return self._make(Kind.APPLIED, meta, writes)

    def undo(self, id: int | None = None) -> Change:
        """Give the files of an applied change (the newest) their old bytes back.

        Raises Stale, with what changed since, if that would lose anything; NotFound.
        """
        self._settle()
        return self._reverse(Kind.UNDONE, id)

    def redo(self, id: int | None = None) -> Change:
        """Apply an undone change (the one undone last) again. Raises as `undo` does."""
        self._settle()
        return self._reverse(Kind.REDONE, id)

    def entries(self, limit: int = 100) -> tuple[Change, ...]:
        """The history, newest first."""
        return self._store.newest(limit)

    def done_with(self, key: str) -> Change | None:
        """The change a request with this key made already; None if it made none."""
        return self._store.by_key(key)

    def files_before(self, id: int) -> dict[str, bytes]:
        """Each file that entry `id` or a later one changed, as it was before the first of them.

        Raises NotFound.
        """
        self._store.get(id)
        before: dict[str, bytes] = {}
        for change in reversed(self._store.newest(-1)):
            if change.id >= id and change.kind is not Kind.REJECTED:
                for file in self._store.files(change.id):
                    before.setdefault(file.path, self._store.image(file.before_digest))
        return before

    def record_rejection(self, meta: ChangeMeta, reason: str) -> Change:
        """Keep in the history that a person said no, and why."""
        return self._store.get(self._store.reject(meta, reason))

    def recover(self) -> list[str]:
        """Settle what was interrupted; one line for people about each. Call it at start.

        Every file then has its old or its new bytes, all of a change alike, except those that
        were edited since; they are left as they are. Calling it twice is harmless.
        """
        return [self._recover(change, tag) for change, tag in self._store.prepared()]

    # ---- making a change ----------------------------------------------------------------------

    def _write_for(self, edit: FileEdit) -> Write:
        target = locate(self._root, edit.path)
        before = self._read(target)
        if digest(before) != edit.before_digest:
            raise Stale(
                f"{edit.path} changed since this suggestion was made; nothing was written."
                " New suggestions are being made for it as it is now"
            )
        return Write(target, before, edit.after)

    def _read(self, target: Target) -> bytes:
        try:
            return self._disk.read(target.location)
        except OSError as error:
            raise IoFailed(f"cannot read {target.path}: {error.strerror}") from error

    def _make(
        self,
        kind: Kind,
        meta: ChangeMeta,
        writes: Sequence[Write],
        origin: int | None = None,
        note: str = "",
    ) -> Change:
        tag = secrets.token_hex(4)
        files = [(w.target.path, w.target.real_path, w.before, w.after) for w in writes]
        change = self._store.prepare(kind, meta, tag, files, origin, note)
        needed = [write for write in writes if write.before != write.after]
        rewrite = Rewrite(self._disk, tag, needed, self._announce)
        try:
            rewrite.carry_out()
        except HalfDone:
            raise  # it stays prepared, for `recover`
        except RpcError:
            self._store.roll_back(change)
            raise
        try:
            self._store.commit(change)
        except RpcError:
            rewrite.put_back()
            raise
        return self._store.get(change)

    # ---- undo and redo ------------------------------------------------------------------------

    def _reverse(self, kind: Kind, id_: int | None) -> Change:
        """`kind` is UNDONE or REDONE."""
        last = self._pick(kind, id_)
        origin = self._store.get(last.origin)
        writes = []
        for file in self._store.files(origin.id):
            old, new = file.before_digest, file.after_digest
            have, want = (new, old) if kind is Kind.UNDONE else (old, new)
            writes.append(self._write_back(file, have, want, last))
        unneeded = all(write.before == write.after for write in writes)
        note = "the files had these bytes already" if unneeded else ""
        return self._make(kind, replace(origin.meta, key=""), writes, origin.id, note)

    def _pick(self, kind: Kind, id_: int | None) -> Change:
        """The last word on the change that is to be undone or redone."""
        latest = self._store.latest()
        verb = "undo" if kind is Kind.UNDONE else "redo"
        fitting = [change for change in latest if change.undoable == (kind is Kind.UNDONE)]
        if id_ is None:
            if not fitting:
                raise NotFound(f"there is nothing to {verb}")
            return fitting[0]
        asked = self._store.get(id_)
        if asked.kind is Kind.REJECTED:
            raise NotFound(f"#{id_} is a rejection, which changed no file; nothing to {verb}")
        last = next(change for change in latest if change.origin == asked.origin)
        if last not in fitting:
            raise Stale(f"#{asked.origin} is {last.kind} already (#{last.id}); nothing was changed")
        return last

    def _write_back(self, file: FileRecord, have: str, want: str, last: Change) -> Write:
        target = locate(self._root, file.path)
        if target.real_path != file.real_path:
            raise Stale(
                f"{file.path} led to {file.real_path} when #{last.id} was made and leads to"
                f" {target.real_path} now; nothing was changed"
            )
        current = self._read(target)
        if digest(current) not in (have, want):
            raise Stale(self._why_changed(file, last))
        return Write(target, current, self._store.image(want))

    def _why_changed(self, file: FileRecord, last: Change) -> str:
        newer = next(
            (
                change
                for change in reversed(self._store.latest())
                if change.id > last.id and change.undoable and file.path in change.files
            ),
            None,
        )
        if newer is not None:
            return (
                f"{file.path} was changed again by #{newer.id} ({newer.meta.skill});"
                f" undo #{newer.id} first. Nothing was changed"
            )
        return (
            f"{file.path} was edited after #{last.id}, and those edits would be lost;"
            " nothing was changed. Take them out, or edit the file by hand"
        )

    # ---- after a kill -------------------------------------------------------------------------

    def _settle(self) -> None:
        for message in self.recover():
            log.warning("%s", message)

    def _recover(self, change: Change, tag: str) -> str:
        what = f"#{change.id} ({change.meta.skill} on {', '.join(change.files)})"
        records = [f for f in self._store.files(change.id) if f.before_digest != f.after_digest]
        try:
            found = [self._found(record) for record in records]
        except OSError as error:
            return f"{what} was interrupted, and {error.filename} cannot be read: {error.strerror}"
        writes = [
            Write(
                Target(record.path, record.real_path, self._root.resolve() / record.real_path),
                self._store.image(record.before_digest),
                self._store.image(record.after_digest),
            )
            for record in records
        ]
        rewrite = Rewrite(self._disk, tag, writes, self._announce)
        if outcome(found) is Outcome.FORWARD:
            rewrite.clean_up()
            self._store.commit(change.id)
            return f"{what} was {change.kind} when the daemon was interrupted; all of it was done"
        half = [write for write, how in zip(writes, found, strict=True) if how is Found.NEW]
        try:
            rewrite.put_back(half)
        except HalfDone as error:
            return f"{what} was interrupted: {error.message}"
        self._store.roll_back(change.id)
        edited = [
            record.path for record, how in zip(records, found, strict=True) if how is Found.OTHER
        ]
        left = f"; {', '.join(edited)} was edited since and left as it is" if edited else ""
        return f"{what} was interrupted before it was {change.kind}; its files are as before{left}"

    def _found(self, record: FileRecord) -> Found:
        location = self._root.resolve() / record.real_path
        try:
            # A link anywhere in the path was put there since; it must not lead outside.
            if location.resolve() != location or not stat.S_ISREG(location.lstat().st_mode):
                return Found.OTHER
            current = digest(self._disk.read(location))
        except (FileNotFoundError, NotADirectoryError):
            return Found.OTHER
        known = {record.before_digest: Found.OLD, record.after_digest: Found.NEW}
        return known.get(current, Found.OTHER)

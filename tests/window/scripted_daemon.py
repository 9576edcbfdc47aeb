"""A daemon that follows a script: the real server, socket and protocol; answers and notices by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from scene import DIFFS, make_snapshot, make_verdict

from daemon import handshake
from daemon.client import Client
from daemon.errors import NotFound, RpcError
from daemon.instance import Instance
from daemon.journal import Journal
from daemon.notices import Notices
from daemon.protocol import (
    Applied,
    Apply,
    Diff,
    Diffed,
    Empty,
    Entries,
    EntryView,
    Gate,
    Gated,
    Hello,
    HelloReply,
    History,
    Ok,
    Redo,
    Reject,
    Shutdown,
    Snapshot,
    StatusView,
    SuggestionView,
    Trust,
    Undo,
    Watch,
    Wire,
)
from daemon.runtime_dir import socket_path
from daemon.server import Handler, Server
from daemon.worktree import journal_path, lock_path
from klineage_tui.session import Connect, Connection

Script = Callable[["ScriptedDaemon"], None]


@dataclass
class ScriptedDaemon:
    """What it knows, what it was asked, and `notices` for the test to publish on."""

    root: Path
    notices: Notices
    snapshot: Snapshot
    asked: list[Wire] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    refusals: dict[str, RpcError] = field(default_factory=dict)
    """Method → what it refuses with."""
    held: dict[str, asyncio.Event] = field(default_factory=dict)
    """Method → answers only once this is set."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    def hello(self, said: Hello) -> HelloReply:
        trusted = self.snapshot.status.trusted
        return handshake.reply(said, self.root, trusted=trusted, seq=self.notices.seq)

    def handlers(self) -> dict[str, Handler]:
        answers = {
            "snapshot": self._snapshot,
            "status": self._status,
            "history": self._history,
            "diff": self._diff,
            "apply": self._apply,
            "gate": self._gate,
            "reject": self._reject,
            "undo": self._undo,
            "redo": self._redo,
            "trust": self._trust,
            "watch": self._watch,
            "shutdown": self._shutdown,
        }
        return {method: self._recorded(method, answer) for method, answer in answers.items()}

    def asked_for(self, kind: type[Wire]) -> list[Any]:
        return [params for params in self.asked if isinstance(params, kind)]

    def change(self, **fields: Any) -> None:
        """Change what the next snapshot says."""
        self.snapshot = msgspec.structs.replace(self.snapshot, **fields)

    def publish_status(self, **fields: Any) -> None:
        self.change(status=msgspec.structs.replace(self.snapshot.status, **fields))
        self.notices.publish("status.changed", status=self.snapshot.status)

    def publish_suggestion(self, suggestion: SuggestionView) -> None:
        others = tuple(one for one in self.snapshot.suggestions if one.id != suggestion.id)
        self.change(suggestions=(*others, suggestion))
        self.notices.publish("suggestion.changed", suggestion=suggestion)

    def _recorded(self, method: str, answer: Handler) -> Handler:
        async def handle(params: Any) -> Wire:
            self.asked.append(params)
            self.methods.append(method)
            if method in self.held:
                await self.held[method].wait()
            if method in self.refusals:
                raise self.refusals[method]
            return await answer(params)

        return handle

    def _suggestion(self, id: str) -> SuggestionView:
        for suggestion in self.snapshot.suggestions:
            if suggestion.id == id:
                return suggestion
        raise NotFound(f"no suggestion {id}")

    def _enter(self, kind: Any, suggestion: SuggestionView, **fields: Any) -> EntryView:
        number = max((entry.id for entry in self.snapshot.history), default=0) + 1
        entry = EntryView(
            number, "2026-11-30T14:03:00+00:00", kind, suggestion.id, suggestion.skill,
            suggestion.kernel, suggestion.files, **fields,
        )  # fmt: skip
        self.change(history=(entry, *self.snapshot.history))
        self.notices.publish("history.changed", entry=entry)
        return entry

    async def _snapshot(self, _: Empty) -> Snapshot:
        return msgspec.structs.replace(self.snapshot, seq=self.notices.seq)

    async def _status(self, _: Empty) -> StatusView:
        return self.snapshot.status

    async def _history(self, _: History) -> Entries:
        return Entries(self.snapshot.history)

    async def _diff(self, asked: Diff) -> Diffed:
        self._suggestion(asked.suggestion)
        return Diffed(DIFFS)

    async def _apply(self, asked: Apply) -> Applied:
        suggestion = self._suggestion(asked.suggestion)
        self.publish_suggestion(msgspec.structs.replace(suggestion, stage="applied"))
        entry = self._enter("applied", suggestion, gain="11.98×", undoable=True)
        return Applied(entry, f"{suggestion.skill} applied to {len(suggestion.files)} files.")

    async def _gate(self, asked: Gate) -> Gated:
        return Gated(make_verdict())

    async def _reject(self, asked: Reject) -> Ok:
        suggestion = self._suggestion(asked.suggestion)
        rejected = msgspec.structs.replace(suggestion, stage="rejected", reason=asked.reason)
        self.publish_suggestion(rejected)
        self._enter("rejected", suggestion, note=asked.reason)
        return Ok()

    async def _undo(self, asked: Undo) -> Applied:
        return self._again("undone", asked.entry, "undoable")

    async def _redo(self, asked: Redo) -> Applied:
        return self._again("redone", asked.entry, "")

    def _again(self, kind: Any, number: int, needs: str) -> Applied:
        for entry in self.snapshot.history:
            if number in (0, entry.id) and (not needs or entry.undoable):
                suggestion = SuggestionView(
                    entry.suggestion, entry.kernel, "", 0, entry.skill, "", "", "applied", 1
                )
                return Applied(self._enter(kind, suggestion), f"{entry.skill} {kind}.")
        raise NotFound("nothing to undo")

    async def _trust(self, asked: Trust) -> Ok:
        self.publish_status(trusted=asked.trusted)
        return Ok()

    async def _watch(self, asked: Watch) -> Ok:
        self.publish_status(watching="paused" if asked.action == "pause" else "inotify")
        return Ok()

    async def _shutdown(self, _: Shutdown) -> Ok:
        self.notices.publish("closing", reason="asked to")
        self.stop.set()
        return Ok("stopping")


@asynccontextmanager
async def scripted(root: Path, snapshot: Snapshot | None = None) -> AsyncIterator[ScriptedDaemon]:
    """The daemon of `root`, served on its real socket until the block ends or it is told to stop."""
    instance = Instance(lock_path(root), socket_path(root))
    journal = Journal(journal_path(root))
    daemon = ScriptedDaemon(root, Notices(journal.events), snapshot or make_snapshot())
    server = Server(root, socket_path(root), daemon.handlers(), daemon.hello, daemon.notices)
    ready = asyncio.Event()
    serving = asyncio.create_task(server.serve(daemon.stop, ready.set))
    try:
        await ready.wait()
        yield daemon
    finally:
        daemon.stop.set()
        await serving
        journal.close()
        instance.release()


def connector(root: Path) -> Connect:
    """Connects to a scripted daemon, and starts none: the test does."""

    async def connect(start: bool) -> Connection:
        return await Client.connect(root, spawn=False)

    return connect

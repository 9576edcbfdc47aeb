"""What the daemon answers to each method of daemon.protocol."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from daemon.configuration import Configuration
from daemon.connection import Handler
from daemon.errors import IoFailed, NotFound, RpcError
from daemon.journal_database import utc_now
from daemon.library_handlers import LibraryHandlers
from daemon.loop.board import Board, KernelState, Suggestion
from daemon.loop.changing import Changing
from daemon.loop.detecting import Detector
from daemon.loop.devices import Devices
from daemon.loop.evaluating import Evaluating
from daemon.loop.gate_queue import GateQueue
from daemon.loop.gating import Gating
from daemon.loop.loop import Loop
from daemon.loop.settling import Settling
from daemon.loop.views import (
    entry_view,
    file_view,
    job_view,
    suggestion_views,
    verdict_view,
)
from daemon.notices import Notices
from daemon.protocol import (
    INVALID_PARAMS,
    Applied,
    Apply,
    Detect,
    Diff,
    Diffed,
    Empty,
    Entries,
    FileDiff,
    FileView,
    Gate,
    Gated,
    History,
    Ok,
    Redo,
    Reject,
    Shutdown,
    Snapshot,
    StatusView,
    Suggest,
    Suggestions,
    Trust,
    Undo,
    Watch,
)
from daemon.transaction import ChangeLog
from daemon.trust import Trust as TrustAnswer
from daemon.version import VERSION
from daemon.watcher import Watcher
from gate.values.candidate import Candidate, FileEdit
from gate.values.kernel import Kernel, digest
from gate.values.verdict import Tier
from library.store import Store


class InvalidParams(RpcError):
    """A parameter that is well-formed but names nothing the daemon could act on."""

    code = INVALID_PARAMS


class Handlers:
    """One method each; they only translate between the protocol and the loop."""

    def __init__(
        self,
        root: Path,
        configuration: Configuration,
        board: Board,
        loop: Loop,
        detector: Detector,
        devices: Devices,
        settling: Settling,
        evaluating: Evaluating,
        gating: Gating,
        changing: Changing,
        changes: ChangeLog,
        queue: GateQueue,
        store: Store,
        watcher: Watcher,
        trust: TrustAnswer,
        notices: Notices,
        clients: Callable[[], int],
        stop: Callable[[str], None],
        warnings: Callable[[], tuple[str, ...]],
    ) -> None:
        self._root = root
        self._configuration = configuration
        self._board = board
        self._loop = loop
        self._detector = detector
        self._devices = devices
        self._evaluating = evaluating
        self._gating = gating
        self._changing = changing
        self._changes = changes
        self._queue = queue
        self._store = store
        self._watcher = watcher
        self._trust = trust
        self._notices = notices
        self._clients = clients
        self._stop = stop
        self._warnings = warnings
        self._library = LibraryHandlers(store, devices, settling, self._kernels)
        self._started = time.monotonic()

    def by_method(self) -> Mapping[str, Handler]:
        """Method → handler. `hello` and `subscribe` are the connection's own."""
        return {
            "ping": self.ping,
            "status": self.status,
            "trust": self.trust,
            "snapshot": self.snapshot,
            "detect": self.detect,
            "suggest": self.suggest,
            "gate": self.gate,
            "diff": self.diff,
            "apply": self.apply,
            "reject": self.reject,
            "undo": self.undo,
            "redo": self.redo,
            "history": self.history,
            "watch": self.watch,
            "shutdown": self.shutdown,
            **self._library.by_method(),
        }

    # ---- the daemon ----------------------------------------------------------------------------

    async def ping(self, _: Empty) -> Ok:
        """Alive."""
        return Ok("alive")

    async def status(self, _: Empty) -> StatusView:
        """Answered at once, whatever the gate does."""
        return self.status_view()

    def status_view(self) -> StatusView:
        """Everything `klineage status` prints."""
        platforms = list(self._devices.platforms.values())
        return StatusView(
            pid=os.getpid(),
            version=VERSION,
            root=str(self._root),
            uptime_s=round(time.monotonic() - self._started, 1),
            trusted=self._trust.trusted,
            watching=self._watcher.mode,
            platform=", ".join(platform.name for platform in platforms),
            device=", ".join(platform.device for platform in platforms),
            files=len(self._board.files),
            kernels=len(self._board.kernels),
            jobs=tuple(job_view(job) for job in self._queue.jobs),
            clients=self._clients(),
            warnings=self._warnings(),
            skills=len(self._store.entries),
        )

    async def trust(self, request: Trust) -> Ok:
        """Remember the person's answer; a yes starts what was waiting for it, a no stops it."""
        unwritten: RpcError | None = None
        try:
            self._trust.answer(request.trusted)
        except IoFailed as error:
            unwritten = error  # it holds until the daemon ends, and is acted on
        if not self._trust.trusted:
            self._gating.halt("this worktree is not trusted any more")
        self._notices.publish("status.changed", status=self.status_view())
        await self._loop.scanned()
        await self._loop.relook(sorted(self._board.files))
        if request.trusted and len(self._board.kernels) <= self._configuration.daemon.gate_at_start:
            for id in sorted(self._board.kernels):
                self._gating.want(id)
        if unwritten is not None:
            raise unwritten
        word = "trusted: its kernels are built and run" if request.trusted else "not trusted"
        return Ok(f"{self._root} is {word}")

    async def watch(self, request: Watch) -> Ok:
        """Pause, resume or look through everything again."""
        if request.action == "pause":
            self._watcher.pause()
        elif request.action == "resume":
            self._watcher.resume()
        else:
            self._store.load()
            self._devices.ask_again()
            self._watcher.rescan()
            await self._loop.relook(sorted(self._board.files))
        self._notices.publish("status.changed", status=self.status_view())
        return Ok(f"watching: {self._watcher.mode}")

    async def shutdown(self, request: Shutdown) -> Ok:
        """End, after the running job if asked to drain."""
        if request.drain:
            running = [job.done for job in self._queue.jobs if job.state == "running"]
            if running:
                await asyncio.wait(running)
        self._stop("asked to stop")
        return Ok("the daemon stops")

    # ---- looking -------------------------------------------------------------------------------

    async def snapshot(self, _: Empty) -> Snapshot:
        """All a window needs, as of one sequence number."""
        return Snapshot(
            seq=self._notices.seq,
            status=self.status_view(),
            files=tuple(file_view(file, self._board) for file in self._board.files.values()),
            suggestions=tuple(
                view for state in self._board.kernels.values() for view in suggestion_views(state)
            ),
            history=tuple(entry_view(change) for change in self._changes.entries(100)),
            keys=self._configuration.keys,
        )

    async def detect(self, request: Detect) -> FileView:
        """Look at one file now."""
        path = self._relative(request.path)
        await self._loop.refresh([path])
        file = self._board.files.get(path)
        if file is None:
            self._must_exist(path)
        return file_view(file, self._board) if file else FileView(path=path)

    async def suggest(self, request: Suggest) -> Suggestions:
        """Suggestions of a file, a kernel or everything. Asking about one file gates its kernels;
        about everything, only with `wait`."""
        if request.path:
            states = await self._kernels(request.path)
        else:
            await self._loop.scanned()
            await self._loop.ranked(list(self._board.files))
            states = tuple(self._board.kernels.values())
        ids = [state.id for state in states]
        if request.path or request.wait:
            for id in ids:
                self._gating.want(id)
        if request.wait:
            await self._gating.until_screened(ids)
        present = [self._board.kernels[id] for id in ids if id in self._board.kernels]
        return Suggestions(tuple(view for state in present for view in suggestion_views(state)))

    async def diff(self, request: Diff) -> Diffed:
        """The text before and after of each file a suggestion changes."""
        await self._loop.ranked([self._suggestion(request.suggestion)[1].kernel.path])
        suggestion, state = self._suggestion(request.suggestion)
        edits = suggestion.candidate.edits if suggestion.candidate else ()
        return Diffed(
            tuple(
                FileDiff(edit.path, _text(state.kernel.file(edit.path).data), _text(edit.after))
                for edit in edits
            )
        )

    async def history(self, request: History) -> Entries:
        """Newest first."""
        return Entries(tuple(entry_view(change) for change in self._changes.entries(request.limit)))

    # ---- measuring -----------------------------------------------------------------------------

    async def gate(self, request: Gate) -> Gated:
        """Gate a suggestion, a kernel as it stands, or a kernel against its past."""
        tier = Tier(request.tier)
        if request.suggestion:
            known = self._board.suggestion(request.suggestion)
            if known is None:
                raise NotFound(f"no suggestion {request.suggestion}; `klineage suggest` lists them")
            verdict = await self._evaluating.suggestion(request.suggestion, tier)
        else:
            state = (await self._kernels(request.kernel))[0]
            baseline, candidate = state.kernel, Candidate("", ())
            if request.since:
                baseline, candidate = self._since(state, request.since)
            verdict = await self._evaluating.kernel(state, baseline, candidate, tier)
        return Gated(verdict_view(verdict, utc_now()))

    def _since(self, state: KernelState, entry: int) -> tuple[Kernel, Candidate]:
        """The kernel before a history entry, and what was made of it as one candidate."""
        before = self._changes.files_before(entry)
        baseline = self._detector.kernel_with(state.kernel, before)
        if baseline is None:
            raise NotFound(f"{state.id} was not there before entry {entry}")
        edits = tuple(
            FileEdit(file.path, digest(before[file.path]), file.data)
            for file in state.kernel.files
            if file.path in before and before[file.path] != file.data
        )
        return baseline, Candidate("", edits)

    # ---- changing ------------------------------------------------------------------------------

    async def apply(self, request: Apply) -> Applied:
        """One key applies it."""
        return await self._changing.apply(request)

    async def reject(self, request: Reject) -> Ok:
        """A no, with its reason."""
        return await self._changing.reject(request)

    async def undo(self, request: Undo) -> Applied:
        """One key takes it back."""
        return await self._changing.undo(request.entry)

    async def redo(self, request: Redo) -> Applied:
        """And brings it back."""
        return await self._changing.redo(request.entry)

    # ---- names ---------------------------------------------------------------------------------

    def _suggestion(self, id: str) -> tuple[Suggestion, KernelState]:
        suggestion = self._board.suggestion(id)
        if suggestion is None:
            raise NotFound(f"no suggestion {id}; the code may have changed since")
        return suggestion, self._board.kernels[suggestion.kernel]

    async def _kernels(self, name: str) -> tuple[KernelState, ...]:
        """The kernels of `path` or `path::entry`, looked at now. Raises NotFound."""
        file, _, entry = name.partition("::")
        path = self._relative(file)
        await self._loop.refresh([path])
        known = self._board.files.get(path)
        if known is None:
            self._must_exist(path)
        states = tuple(self._board.kernels[id] for id in known.kernels) if known else ()
        chosen = tuple(s for s in states if not entry or s.kernel.entry == entry)
        if not chosen:
            problem = f": {known.problems[0]}" if known and known.problems else ""
            wanted = f"kernel {entry} in {path}" if entry and states else f"kernel in {path}"
            raise NotFound(f"no {wanted}{problem}")
        return chosen

    def _must_exist(self, path: str) -> None:
        if not (self._root / path).is_file():
            raise NotFound(f"there is no file {path} in {self._root}")

    def _relative(self, path: str) -> str:
        """A path below the root, as the board names it. Raises InvalidParams."""
        full = (self._root / path).resolve()
        if not full.is_relative_to(self._root):
            raise InvalidParams(f"{path} is outside the worktree {self._root}; name it with --root")
        return full.relative_to(self._root).as_posix()


def _text(data: bytes) -> str:
    """For a diff on a screen: bytes that are no UTF-8 show as replacement characters."""
    return data.decode("utf-8", errors="replace")

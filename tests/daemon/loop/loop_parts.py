"""The loop of a worktree as the supervisor wires it, with a scripted gate and no watcher.

Saves are delivered as the watcher would deliver them; notices are recorded as a client would see
them. Everything else is real: journal, files, library, analysis thread and gate queue.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from scripted_gate import ScriptedGate

from daemon.configuration import Configuration, load_configuration
from daemon.handlers import Handlers
from daemon.journal import Journal
from daemon.loop.board import Board, KernelState, Suggestion
from daemon.loop.changing import Changing
from daemon.loop.detecting import Detector
from daemon.loop.devices import Devices
from daemon.loop.evaluating import Evaluating
from daemon.loop.gate_queue import GateQueue, Job
from daemon.loop.gating import Gating
from daemon.loop.loop import Loop
from daemon.loop.publishing import Publisher
from daemon.loop.settling import Settling
from daemon.loop.trials import Trials
from daemon.notices import Notices
from daemon.protocol import NOTICES, Wire
from daemon.rpc import read_message
from daemon.transaction import ChangeLog
from daemon.trust import Trust
from daemon.watcher import Batch, Change, Watcher
from gate.values.kernel import Language, digest
from library.store import Place, Store, places

SAMPLES = Path(__file__).resolve().parents[3] / "sample_kernels"
GEMM = "gemm/gemm_naive.cl"
GEMM_KERNEL = f"{GEMM}::gemm_naive"
PATIENCE_S = 20.0
"""Far more than anything here takes; a test that waits this long has failed."""


def add_gemm(root: Path) -> Path:
    """The naive OpenCL GEMM and its workload; gives the kernel's file."""
    (root / "gemm").mkdir(exist_ok=True)
    for name in ("gemm_naive.cl", "workload.py"):
        shutil.copy(SAMPLES / "gemm" / "opencl" / name, root / "gemm" / name)
    return root / GEMM


def change_of(root: Path, path: str) -> Change:
    """As the watcher tells a file."""
    file = root / path
    if not file.exists():
        return Change(path, gone=True)
    data = file.read_bytes()
    return Change(path, data=data, digest=digest(data))


@dataclass
class Parts:
    """A running loop."""

    root: Path
    configuration: Configuration
    gate: ScriptedGate
    journal: Journal
    notices: Notices
    board: Board
    store: Store
    queue: GateQueue
    detector: Detector
    devices: Devices
    settling: Settling
    loop: Loop
    evaluating: Evaluating
    gating: Gating
    changes: ChangeLog
    changing: Changing
    trust: Trust
    handlers: Handlers
    said: list[tuple[str, Wire]] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    # ---- what a person does --------------------------------------------------------------------

    async def save(self, path: str, data: bytes | str | None = None) -> None:
        """Write a file (or leave it as it is) and deliver it alone, as after an editor's save."""
        if data is not None:
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data.encode() if isinstance(data, str) else data)
        await self.loop.deliver(Batch((change_of(self.root, path),), rescan=False))

    async def edit(self, path: str, before: str, after: str) -> None:
        """Replace text in a file and save it."""
        text = (self.root / path).read_text()
        assert before in text
        await self.save(path, text.replace(before, after))

    async def scan(self) -> None:
        """Deliver every kernel file, as the first scan does."""
        files = [p for p in self.root.rglob("*") if p.suffix in (".cl", ".py", ".h")]
        paths = sorted(p.relative_to(self.root).as_posix() for p in files)
        await self.loop.deliver(
            Batch(tuple(change_of(self.root, path) for path in paths), rescan=True)
        )

    # ---- what a person sees --------------------------------------------------------------------

    def kernel(self, id: str = GEMM_KERNEL) -> KernelState:
        return self.board.kernels[id]

    def suggestion(self, skill: str, id: str = GEMM_KERNEL) -> Suggestion:
        """The first suggestion of that skill."""
        found = [s for s in self.kernel(id).suggestions if skill_of(s) == skill]
        assert found, [skill_of(s) for s in self.kernel(id).suggestions]
        return found[0]

    def with_candidate(self, id: str = GEMM_KERNEL) -> list[Suggestion]:
        return [s for s in self.kernel(id).suggestions if s.candidate is not None]

    def heard(self, method: str) -> list[Wire]:
        """Notices of a kind so far."""
        return [notice for name, notice in self.said if name == method]

    def messages(self, level: str = "") -> list[str]:
        return [m.text for m in self.heard("message") if level in ("", m.level)]  # type: ignore[attr-defined]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds`, asked again after every notice."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                self._news.clear()
                await self._news.wait()

    async def until_idle(self) -> None:
        """Wait until nothing is queued, running or about to be for any kernel."""
        async with asyncio.timeout(PATIENCE_S):
            while tasks := [
                course.task
                for course in self.gating._courses.values()
                if course.task is not None and not course.task.done()
            ]:
                await asyncio.wait(tasks)

    async def listen(self) -> None:
        _, subscription = self.notices.subscribe(0)
        async for frame in subscription:
            message = read_message(frame)
            notice = msgspec.json.decode(message.params, type=NOTICES[message.method])
            self.said.append((message.method, notice))
            self._news.set()


@asynccontextmanager
async def asking(awaitable: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """A request of another client, begun; given up when the block ends."""
    task = asyncio.create_task(awaitable)
    await asyncio.sleep(0)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


def skill_of(suggestion: Suggestion) -> str:
    return suggestion.offer.entry.card.skill_id


@asynccontextmanager
async def running(
    root: Path, state: Path, gate: ScriptedGate | None = None, *, trusted: bool = True
) -> AsyncIterator[Parts]:
    """The loop of `root` with its journal in `state`; ended as the supervisor ends it."""
    gate = gate or ScriptedGate()
    journal = Journal(state / "journal.db")
    try:
        async with asyncio.TaskGroup() as tasks:
            parts = build(root, journal, gate, tasks, trusted)
            background = [
                tasks.create_task(parts.queue.run()),
                tasks.create_task(parts.loop.run()),
                tasks.create_task(parts.listen()),
            ]
            try:
                yield parts
            finally:
                gate.let_go.set()
                for task in background:
                    task.cancel()
                parts.gating.close()
                parts.loop.close()
                with suppress(asyncio.CancelledError):
                    await asyncio.gather(*background)
    finally:
        journal.close()


def untried_places(root: Path, configuration: Configuration) -> tuple[Place, ...]:
    """The places of a worktree, the shipped skills without the evidence they ship with: what these
    tests find tried, they have tried themselves."""
    shipped, *own = places(root, configuration.library)
    untried = root.parent / "untried-skills"
    if not untried.exists():
        shutil.copytree(shipped.path, untried, ignore=shutil.ignore_patterns("evidence"))
    return (Place(shipped.name, untried), *own)


def build(
    root: Path, journal: Journal, gate: ScriptedGate, tasks: asyncio.TaskGroup, trusted: bool
) -> Parts:
    configuration = load_configuration(root)
    trust = Trust(root)
    trust.answer(trusted)
    notices = Notices(journal.events, queue_limit=100_000)
    board = Board()
    publisher = Publisher(notices, board)
    store = Store(untried_places(root, configuration), configuration.library.disabled).load()
    gate.skills = {entry.digest: entry.card.skill_id for entry in store.entries}

    def job_changed(job: Job) -> None:
        evaluating.job_changed(job)

    def is_trusted() -> bool:
        return trust.trusted

    async def learned(language: Language) -> None:
        await loop.relook_language(language)

    queue = GateQueue(job_changed, journal.jobs)
    devices = Devices(gate, queue, publisher, tasks, learned)  # type: ignore[arg-type]
    settling = Settling(journal, queue, devices, is_trusted)
    detector = Detector(root, configuration.watch.workloads, store)
    trials = Trials(store, publisher, lambda: "2026-11-30T12:00:00Z")
    loop = Loop(
        root, board, detector, publisher, devices, settling, configuration.daemon.gate_at_start
    )
    evaluating = Evaluating(
        gate,
        queue,
        board,
        publisher,
        journal,
        trials,
        devices,
        settling,
        is_trusted,
        loop.ranked,  # type: ignore[arg-type]
    )
    gating = loop.gating = Gating(
        evaluating, devices, settling, queue, board, publisher, tasks, is_trusted, loop.relook
    )
    watcher = Watcher(root, configuration.watch)
    changes = ChangeLog(journal, root, announce=watcher.expect)
    changing = Changing(
        changes, evaluating, devices, queue, board, publisher, journal, trials, loop.refresh
    )
    handlers = Handlers(
        root,
        configuration,
        board,
        loop,
        detector,
        devices,
        settling,
        evaluating,
        gating,
        changing,
        changes,
        queue,
        store,
        watcher,
        trust,
        notices,
        lambda: 0,
        lambda why: None,
        lambda: (),
    )
    return Parts(
        root,
        configuration,
        gate,
        journal,
        notices,
        board,
        store,
        queue,
        detector,
        devices,
        settling,
        loop,
        evaluating,
        gating,
        changes,
        changing,
        trust,
        handlers,
    )


def paths_of(notices: Sequence[Wire]) -> list[str]:
    """Paths of `file.changed` notices, in order."""
    return [notice.file.path for notice in notices]  # type: ignore[attr-defined]

"""A daemon in small: the real lock, journal, socket and protocol, with stub handlers.

`python stub_daemon.py --root ROOT` serves until SIGTERM or `shutdown`; `--fail` dies at its start;
`--leave-running` leaves a job running; `--chatter` publishes without a pause. Import `serving` to have one in a test's own process.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from daemon import handshake
from daemon.errors import Busy, Stale
from daemon.instance import ALREADY_RUNNING_EXIT, Instance
from daemon.journal import Journal
from daemon.notices import Notices
from daemon.protocol import (
    Apply,
    Diff,
    Diffed,
    Empty,
    FileDiff,
    Gate,
    Hello,
    HelloReply,
    Ok,
    Shutdown,
    StatusView,
    Wire,
)
from daemon.runtime_dir import socket_path
from daemon.server import Handler, Server
from daemon.worktree import journal_path, lock_path


def make_status(root: Path, clients: int = 0) -> StatusView:
    return StatusView(
        pid=os.getpid(),
        version="0.1.0",
        root=str(root),
        uptime_s=1.0,
        trusted=True,
        watching="inotify",
        platform="pocl-cpu",
        device="stub",
        files=0,
        kernels=0,
        clients=clients,
    )


@dataclass
class StubDaemon:
    """A served daemon and what a test may want to look at or push."""

    root: Path
    journal: Journal
    notices: Notices
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    gate_began: asyncio.Event = field(default_factory=asyncio.Event)
    gate_cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    apply_began: asyncio.Event = field(default_factory=asyncio.Event)
    apply_may_end: asyncio.Event = field(default_factory=asyncio.Event)
    apply_ended: asyncio.Event = field(default_factory=asyncio.Event)
    server: Server = field(init=False)

    def hello(self, said: Hello) -> HelloReply:
        return handshake.reply(said, self.root, trusted=True, seq=self.notices.seq)

    def handlers(self) -> dict[str, Handler]:
        return {
            "ping": self.ping,
            "status": self.status,
            "gate": self.gate,
            "apply": self.apply,
            "diff": self.diff,
            "undo": self.undo,
            "shutdown": self.shutdown,
        }

    async def ping(self, _: Empty) -> Wire:
        return Ok("pong")

    async def status(self, _: Empty) -> Wire:
        return make_status(self.root, self.server.clients)

    async def gate(self, _: Gate) -> Wire:
        """Waits for ever, as a gate on a busy device does."""
        self.gate_began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.gate_cancelled.set()
        raise AssertionError

    async def apply(self, _: Apply) -> Wire:
        """Refuses as stale, once the test lets it."""
        self.apply_began.set()
        await self.apply_may_end.wait()
        self.apply_ended.set()
        raise Stale("gemm.cl changed since; save it again", {"path": "gemm.cl"})

    async def diff(self, asked: Diff) -> Wire:
        """A diff of as many MiB as the suggestion says."""
        return Diffed((FileDiff("gemm.cl", "", "x" * (int(asked.suggestion) << 20)),))

    async def undo(self, _: object) -> Wire:
        raise ZeroDivisionError("a fault\nof ours")

    async def shutdown(self, _: Shutdown) -> Wire:
        self.notices.publish("closing", reason="asked to")
        self.stop.set()
        return Ok("stopping")


@asynccontextmanager
async def serving(
    root: Path,
    *,
    queue_limit: int = 1000,
    owner: int | None = None,
    presence: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> AsyncIterator[StubDaemon]:
    """A daemon on the real socket path of `root`, in this process."""
    instance = Instance(lock_path(root), socket_path(root))
    journal = Journal(journal_path(root))
    stub = StubDaemon(root, journal, Notices(journal.events, queue_limit))
    stub.server = Server(
        root,
        socket_path(root),
        stub.handlers(),
        stub.hello,
        stub.notices,
        owner=owner,
        presence=presence,
    )
    try:
        served = asyncio.create_task(stub.server.serve(stub.stop, stub.ready.set))
        await stub.ready.wait()
        try:
            yield stub
        finally:
            stub.stop.set()
            await served
    finally:
        journal.close()
        instance.release()


async def main(root: Path, leave_running: bool, chatter: bool) -> None:
    async with serving(root) as stub:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stub.stop.set)
        for line in stub.journal.recover():
            stub.notices.publish("message", level="warning", text=line)
        if leave_running:
            stub.journal.jobs.begin("0123456789ab", "closure", "screen")
        while chatter and not stub.stop.is_set():
            stub.notices.publish("message", level="info", text="chatter")
            await asyncio.sleep(0)
        await stub.stop.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--fail", action="store_true")
    parser.add_argument("--leave-running", action="store_true")
    parser.add_argument("--chatter", action="store_true")
    options = parser.parse_args()
    if options.fail:
        sys.exit("no device: /dev/nothing")
    try:
        asyncio.run(main(options.root, options.leave_running, options.chatter))
    except Busy:
        sys.exit(ALREADY_RUNNING_EXIT)

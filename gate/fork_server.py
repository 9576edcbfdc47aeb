"""The parent's side of a fork server; gate/worker/fork_server.py is the other."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gate.child import (
    ENTRY,
    LAST_BREATH_S,
    Child,
    Start,
    StartedChild,
    WorkerEnds,
    exit_text,
    has_ended,
)
from gate.errors import Cancelled

MESSAGE_BYTES = 1 << 16
TICK_S = 0.05
FORK_S = 10.0
"""A fork takes milliseconds. A server that needs this long is stuck."""


class ServerLost(Exception):
    """The server died, or does not answer; `str(error)` says which. It has been ended."""


class ForkServer:
    """A process with a language's runtime imported. Safe to use from several threads."""

    def __init__(
        self,
        python: str,
        language: str,
        environment: Mapping[str, str],
        folder: Path,
        file_bytes: int,
    ) -> None:
        """Start it, with `folder` as its working directory. Raises OSError."""
        self.folder = folder
        self._lock = threading.Lock()
        self._owed = 0
        self._line, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        lifeline, self._lifeline = os.pipe()
        try:
            with (folder / "printed").open("wb") as printed:
                self._child = StartedChild(
                    [
                        python,
                        str(ENTRY),
                        "server",
                        language,
                        str(file_bytes),
                        str(far.fileno()),
                        str(lifeline),
                    ],
                    environment,
                    folder,
                    (far.fileno(), lifeline),
                    printed.fileno(),
                )
        except OSError:
            self._line.close()
            os.close(self._lifeline)
            raise
        finally:
            far.close()
            os.close(lifeline)
        self._open = True

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._open and not has_ended(self._child)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._child.pid

    def preload(self, here: bool, deadline_s: float, stop: threading.Event) -> str:
        """Have it import what workers need; why it cannot be forked from, empty if it can.

        `here`: launches run on a device of this machine. Raises ServerLost, Cancelled.
        """
        reply, _ = self._ask({"do": "preload", "here": here}, (), deadline_s, stop)
        return str(reply["refuses"])

    def worker(
        self, role: str, environment: Mapping[str, str], folder: Path, stop: threading.Event
    ) -> Start:
        """How to fork a worker. Starting raises ServerLost, Cancelled."""

        def start(ends: WorkerEnds) -> Child:
            request = {
                "do": "fork",
                "role": role,
                "environment": dict(environment),
                "folder": str(folder),
            }
            passed = (ends.requests, ends.replies, ends.printed, ends.lifeline)
            reply, received = self._ask(request, passed, FORK_S, stop)
            return ForkedChild(self, int(reply["pid"]), received[0])

        return start

    def reap(self, pid: int) -> int | None:
        """Exit code of a worker that has ended; None if the server is gone."""
        try:
            reply, _ = self._ask({"do": "reap", "pid": pid}, (), FORK_S, threading.Event())
        except ServerLost:
            return None
        code: int | None = reply["code"]
        return code

    def end(self) -> int | None:
        """Kill it; its workers go on. Its exit code. Does nothing a second time."""
        if not self._open:
            return None
        self._open = False
        code = self._child.end()
        self._line.close()
        os.close(self._lifeline)
        return code

    def loss(self) -> str:
        """How it ended, with the end of what it printed. Ends it if it has not."""
        said = (self.folder / "printed").read_bytes()[-2000:].decode(errors="replace").strip()
        told = exit_text(self.end())
        return f"{told}; it printed: {said}" if said else told

    def _ask(
        self,
        request: Mapping[str, object],
        passed: tuple[int, ...],
        deadline_s: float,
        stop: threading.Event,
    ) -> tuple[dict[str, Any], list[int]]:
        until = time.monotonic() + deadline_s
        while not self._lock.acquire(timeout=TICK_S):
            if stop.is_set():
                raise Cancelled("cancelled while a worker was started")
        try:
            # Of requests that were cancelled: a worker forked for one has lost its lifeline.
            while self._owed:
                _, left = self._receive(until, deadline_s, stop)
                for descriptor in left:
                    os.close(descriptor)
            if not self._open:
                raise ServerLost("it has ended")
            socket.send_fds(self._line, [json.dumps(request).encode()], passed)
            self._owed += 1
            return self._receive(until, deadline_s, stop)
        except OSError as error:
            raise ServerLost(self.loss()) from error
        finally:
            self._lock.release()

    def _receive(
        self, until: float, deadline_s: float, stop: threading.Event
    ) -> tuple[dict[str, Any], list[int]]:
        while not select.select([self._line], [], [], TICK_S)[0]:
            if stop.is_set():
                raise Cancelled("cancelled while a worker was started")
            if time.monotonic() > until:
                self.end()
                raise ServerLost(f"it did not answer within {deadline_s:.0f} s")
        data, received, _, _ = socket.recv_fds(self._line, MESSAGE_BYTES, 1)
        if not data:
            raise ServerLost(self.loss())
        self._owed -= 1
        return json.loads(data), received


class ForkedChild:
    """A worker that a server forked. The server reaps it once it is asked to."""

    def __init__(self, server: ForkServer, pid: int, process: int) -> None:
        self._server = server
        self.pid = pid
        self.process = process

    def end(self) -> int | None:
        ended = has_ended(self)
        # Unless it has ended without a parent to hold its id, the group is certainly its own.
        if not ended or self._server.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        # A fork that has not made its own group yet.
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.process, signal.SIGKILL)
        gone = bool(select.select([self.process], [], [], LAST_BREATH_S)[0])
        os.close(self.process)
        return self._server.reap(self.pid) if gone and self._server.alive else None

"""One worker process: started, asked with a deadline, and ended with all it has forked.

The pump below reads the reply pipe and the worker's output at once and looks every 50 ms whether
the worker still lives and whether to stop. So a worker may print megabytes, leave children that
hold its pipes, stop half way through a reply or write nonsense: it costs one verdict.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gate.child import Start, WorkerEnds, exit_text, has_ended
from gate.errors import Cancelled
from gate.messages import Envelope, Kind, R
from gate.worker.framing import Decoder, FrameTooLong, encode

TICK_S = 0.05
READ_BYTES = 1 << 16


class WorkerFailure(Exception):
    """A worker did not answer as asked. What that means depends on whose worker it was."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.message = message
        self.log = log


class WorkerDied(WorkerFailure):
    """It exited, was killed by a signal, or broke the protocol."""


class DeadlinePassed(WorkerFailure):
    """It took too long, and was killed with its process group."""


class WorkerRaised(WorkerFailure):
    """The request raised; the worker itself is well."""

    def __init__(self, kind: Kind, message: str, log: str) -> None:
        super().__init__(message, log)
        self.kind = kind


class Output:
    """What a worker printed: the beginning and the end, at most `limit_bytes` in all."""

    def __init__(self, limit_bytes: int) -> None:
        self._half = limit_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def feed(self, data: bytes) -> None:
        """Take in more output."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        surplus = len(self._tail) - self._half
        if surplus > 0:
            del self._tail[:surplus]
            self._dropped += surplus

    def text(self) -> str:
        """All that was kept, with a line for what was dropped."""
        gap = f"\n… {self._dropped} bytes left out …\n".encode() if self._dropped else b""
        return (bytes(self._head) + gap + bytes(self._tail)).decode(errors="replace")


class WorkerProcess:
    """A running worker of one role."""

    def __init__(self, role: str, start: Start, folder: Path, log_bytes: int) -> None:
        """Start it, with `folder` as its working directory. Raises what `start` raises."""
        self.role = role
        self.folder = folder
        self._log_bytes = log_bytes
        self._output = Output(log_bytes)
        self._decoder = Decoder()
        self._request = 0
        request_read, self._requests = os.pipe()
        self._replies, reply_write = os.pipe()
        self._printed, printed_write = os.pipe()
        lifeline_read, self._lifeline = os.pipe()
        ends = WorkerEnds(request_read, reply_write, printed_write, lifeline_read)
        try:
            self._child = start(ends)
        except BaseException:
            self._close_pipes()
            raise
        finally:
            for fd in (ends.requests, ends.replies, ends.printed, ends.lifeline):
                os.close(fd)
        for fd in (self._requests, self._replies, self._printed):
            os.set_blocking(fd, False)
        self._open = True

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._open and not has_ended(self._child)

    @property
    def pid(self) -> int:
        """Process id, which is also its process group's."""
        return self._child.pid

    def call(
        self,
        method: str,
        params: Mapping[str, Any],
        reply: type[R],
        deadline_s: float,
        stop: threading.Event,
    ) -> R:
        """Ask and wait for the answer.

        Raises Cancelled, DeadlinePassed or WorkerDied, after each of which the worker is gone with
        its process group; and WorkerRaised, after which it can be asked again.
        """
        if not self._open:
            raise WorkerDied(f"{self.role} worker has ended", "")
        self._output = Output(self._log_bytes)
        self._request += 1
        frame = encode({"id": self._request, "method": method, "params": dict(params)})
        try:
            body = self._pump(frame, method, time.monotonic() + deadline_s, deadline_s, stop)
            envelope = msgspec.json.decode(body, type=Envelope)
            if envelope.error is not None:
                error = envelope.error
                log = "\n".join(part for part in (error.log, self._output.text()) if part)
                raise WorkerRaised(error.kind, error.message, log[-self._log_bytes :])
            if envelope.id != self._request or isinstance(envelope.result, msgspec.UnsetType):
                raise self._broken(method, "an answer to another request")
            return msgspec.json.decode(envelope.result, type=reply)
        except (msgspec.DecodeError, msgspec.ValidationError, FrameTooLong) as error:
            raise self._broken(method, str(error)) from error

    def end(self) -> int | None:
        """Kill it with its process group, and give the pipes back; its exit code where it is known.

        Does nothing a second time.
        """
        if not self._open:
            return None
        self._open = False
        code = self._child.end()
        self._close_pipes()
        return code

    def _pump(
        self, frame: bytes, method: str, until: float, deadline_s: float, stop: threading.Event
    ) -> bytes:
        pending = memoryview(frame)
        with selectors.DefaultSelector() as selector:
            selector.register(self._requests, selectors.EVENT_WRITE)
            selector.register(self._replies, selectors.EVENT_READ)
            selector.register(self._printed, selectors.EVENT_READ)
            # Wakes the loop; that it has ended is looked at below, after what it still said.
            selector.register(self._child.process, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select(TICK_S):
                    if key.fd == self._child.process:
                        continue
                    if key.fd == self._requests:
                        pending = self._write(pending)
                        if not pending:
                            selector.unregister(self._requests)
                        continue
                    data = self._read(key.fd)
                    if key.fd == self._printed:
                        self._output.feed(data)
                    elif bodies := self._decoder.feed(data):
                        self._drain()
                        return bodies[0]
                    if not data:
                        selector.unregister(key.fd)
                self._look_around(method, until, deadline_s, stop)

    def _look_around(
        self, method: str, until: float, deadline_s: float, stop: threading.Event
    ) -> None:
        if stop.is_set():
            self.end()
            raise Cancelled(f"cancelled during {method}")
        if has_ended(self._child):
            self._drain()
            code = self.end()
            raise WorkerDied(f"{exit_text(code)} during {method}", self._output.text())
        if time.monotonic() > until:
            self._drain()
            self.end()
            raise DeadlinePassed(
                f"{method} took longer than {deadline_s:.0f} s", self._output.text()
            )

    def _write(self, pending: memoryview) -> memoryview:
        """What is left to write. A worker that has closed its end is found dead elsewhere."""
        try:
            return pending[os.write(self._requests, pending) :]
        except BlockingIOError:
            return pending
        except BrokenPipeError:
            return pending[len(pending) :]

    def _read(self, fd: int) -> bytes:
        return os.read(fd, READ_BYTES)

    def _drain(self) -> None:
        """Take in what was printed so far."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._printed, READ_BYTES):
                self._output.feed(data)

    def _broken(self, method: str, how: str) -> WorkerDied:
        self.end()
        return WorkerDied(f"broke the protocol during {method}: {how}", self._output.text())

    def _close_pipes(self) -> None:
        for fd in (self._requests, self._replies, self._printed, self._lifeline):
            os.close(fd)

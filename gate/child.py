"""A worker's process as its parent holds it: started as a program, or forked by a server."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ENTRY = Path(__file__).parent / "worker" / "__main__.py"

LAST_BREATH_S = 5.0
"""A killed process that is not gone after this hangs in a driver: it is left to the kernel."""


@dataclass(frozen=True, slots=True)
class WorkerEnds:
    """The worker's ends of its pipes; the parent closes its copies once the worker has them."""

    requests: int
    replies: int
    printed: int
    lifeline: int


Start = Callable[[WorkerEnds], "Child"]
"""Gives a process that has these descriptors. Raises OSError if it cannot be run."""


class Child(Protocol):
    """A running process that leads a group of its own."""

    pid: int
    process: int
    """A descriptor of the process, readable once it has ended (pidfd_open(2))."""

    def end(self) -> int | None:
        """Kill it with its group; its exit code, negative for a signal, None if it is not known."""
        ...


def has_ended(child: Child) -> bool:
    """Whether it has. Looking reaps nothing, so its id and its group's stay its own."""
    return bool(select.select([child.process], [], [], 0.0)[0])


def exit_text(code: int | None) -> str:
    """`killed by SIGSEGV`, `exited with status 3`."""
    if code is None:
        return "ended"
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exited with status {code}"


class StartedChild:
    """A process of our own, running the worker's or the fork server's program."""

    def __init__(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        folder: Path,
        passed: tuple[int, ...],
        printed: int,
    ) -> None:
        """`arguments` from the interpreter on. Raises OSError if it cannot be run."""
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            pass_fds=passed,
            start_new_session=True,
            env=dict(environment),
            cwd=folder,
        )
        self.pid = self._process.pid
        self.process = os.pidfd_open(self.pid)

    def end(self) -> int | None:
        # Before anything reaps it: until then nobody else can be given its group's id.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.close(self.process)
        try:
            return self._process.wait(LAST_BREATH_S)
        except subprocess.TimeoutExpired:
            return None


def started_worker(
    python: str,
    role: str,
    language: str,
    environment: Mapping[str, str],
    folder: Path,
    file_bytes: int,
) -> Start:
    """How to start a worker as a program of its own."""

    def start(ends: WorkerEnds) -> Child:
        passed = (ends.requests, ends.replies, ends.lifeline)
        arguments = [python, str(ENTRY), role, language, str(file_bytes), *map(str, passed)]
        return StartedChild(arguments, environment, folder, passed, ends.printed)

    return start

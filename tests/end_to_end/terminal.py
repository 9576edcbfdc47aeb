"""A real terminal for tests: a private tmux server, its screen as text, and waiting without sleeping."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class ScreenTimeout(AssertionError):
    """What was waited for never appeared; shows the last screen."""


class Terminal:
    """One program in one tmux window of a given size."""

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        environment: Mapping[str, str],
        size: tuple[int, int] = (120, 40),
    ) -> None:
        """Start `command`; `folder` holds the server's socket and the output pipe."""
        self._socket = folder / "tmux.sock"
        pipe = folder / "output.fifo"
        with contextlib.suppress(FileExistsError):
            os.mkfifo(pipe)
        # Read-write, so that neither side blocks while the other is not there yet.
        self._output = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        width, height = size
        self._tmux(
            *("-f", "/dev/null", "new-session", "-d", "-s", "main"),
            *("-x", str(width), "-y", str(height)),
            # The program waits for the pipe to be attached, so no output is missed.
            f"read go; exec {shlex.join(command)}",
            environment=environment,
        )
        self._tmux("set-option", "-g", "remain-on-exit", "on")
        self._tmux("pipe-pane", "-t", "main", f"exec cat > {shlex.quote(str(pipe))}")
        self.send("go", "Enter")

    def _tmux(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), *arguments],
            check=True,
            capture_output=True,
            text=True,
            env=dict(environment) if environment is not None else None,
        )
        return done.stdout

    def send(self, *keys: str) -> None:
        """Type keys by their tmux names: `a`, `Enter`, `C-p`."""
        self._tmux("send-keys", "-t", "main", *keys)

    def screen(self) -> str:
        """The text on the screen now."""
        return self._tmux("capture-pane", "-p", "-t", "main")

    def wait_for(self, wanted: str | Callable[[str], object], timeout_s: float = 60.0) -> str:
        """The screen once it shows `wanted`; woken by the program's output, never by a timer.

        Raises ScreenTimeout with the last screen.
        """
        shows = wanted if callable(wanted) else lambda text: wanted in text
        deadline = time.monotonic() + timeout_s
        while True:
            screen = self.screen()
            if shows(screen):
                return screen
            left = deadline - time.monotonic()
            if left <= 0:
                raise ScreenTimeout(
                    f"waited {timeout_s} s for {wanted!r}; the screen was:\n{screen}"
                )
            ready, _, _ = select.select([self._output], [], [], left)
            if ready:
                os.read(self._output, 1 << 16)

    def wait_for_exit(self, timeout_s: float = 20.0) -> None:
        """Return once the program has ended by itself. Raises ScreenTimeout with the last screen."""
        pid = int(self._tmux("display-message", "-p", "-t", "main", "#{pane_pid}"))
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            ended, _, _ = select.select([process], [], [], timeout_s)
        finally:
            os.close(process)
        if not ended:
            raise ScreenTimeout(f"still running after {timeout_s} s:\n{self.screen()}")

    def close(self) -> None:
        """End the program and the server."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")
        os.close(self._output)

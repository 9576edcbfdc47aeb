"""What opening the window loads, and that it opens, draws and leaves in a real terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

HEAVY = {
    "gate",
    "library",
    "torch",
    "triton",
    "numpy",
    "pyopencl",
    "watchdog",
    "openai",
    "tree_sitter",
    "yaml",
}


def test_the_window_and_its_client_load_nothing_of_gate_or_library() -> None:
    code = (
        "import sys, klineage_tui.app, klineage_tui.__main__, daemon.client;"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(done.stdout.split())


def test_the_first_picture_needs_neither_client_nor_lexers() -> None:
    code = "import sys, klineage_tui.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"daemon.client", "pygments.lexers.c_cpp", "pygments.lexers.python"})


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "klineage_tui", str(tmp_path / "nowhere")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no such folder" in done.stderr


@pytest.mark.serial
@pytest.mark.parametrize("no_color", [False, True])
def test_a_real_terminal_gets_a_picture_and_q_leaves_it(place: Path, no_color: bool) -> None:
    """A daemon that cannot start is said in the picture; leaving restores the terminal."""
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    if no_color:
        environment["NO_COLOR"] = "1"
    code = (
        "import sys; from pathlib import Path; from klineage_tui.app import Window\n"
        "async def connect(start): raise OSError('no daemon here')\n"
        f"Window(Path({str(place)!r}), connect, retry_s=60).run()"
    )
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=slave, stdout=slave, stderr=slave, env=environment
    )
    os.close(slave)
    try:
        seen = _read_until(master, b"no daemon here")
        os.write(master, b"q")
        seen += _read_until(master, b"\x1b[?1049l")
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)


def _read_until(terminal: int, wanted: bytes) -> bytes:
    seen, deadline = b"", time.monotonic() + 30
    while wanted not in seen:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"never wrote {wanted!r}; wrote {seen[-2000:]!r}"
        seen += os.read(terminal, 1 << 16)
    return seen

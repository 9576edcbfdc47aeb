"""A private place for sockets and state, so that no test meets a real daemon."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

STUB = Path(__file__).with_name("stub_daemon.py")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A worktree; the user's folders and the runtime folder are this test's own."""
    # pytest's folders are too deep for a socket's path.
    runtime = Path(tempfile.mkdtemp(prefix="kl-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    root = tmp_path / "worktree"
    root.mkdir()
    yield root
    shutil.rmtree(runtime)


@pytest.fixture
def stub_command(place: Path) -> list[str]:
    """What starts the stub daemon of `place`."""
    return [sys.executable, str(STUB), "--root", str(place)]

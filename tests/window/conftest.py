"""A worktree of a test's own, and windows on it."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pilots import Opener

# How long one example takes says nothing where cores are shared.
settings.register_profile("shared cores", deadline=None)
settings.load_profile("shared cores")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A worktree; the user's folders and the runtime folder are this test's own."""
    # pytest's folders are too deep for a socket's path.
    runtime = Path(tempfile.mkdtemp(prefix="kl-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.delenv("NO_COLOR", raising=False)
    root = tmp_path / "flash-ops"
    root.mkdir()
    # Connecting from elsewhere is a warning that would hide what a test looks for.
    monkeypatch.chdir(root)
    yield root
    shutil.rmtree(runtime)


@pytest.fixture
def open_window(place: Path, tmp_path: Path) -> Opener:
    """Opens windows on `place`; every key is pressed a second after the one before."""
    seconds = itertools.count()
    return Opener(place, tmp_path / "looks.json", lambda: float(next(seconds)))

"""A home of its own for a measurement: nothing of the person's is read, and nothing is left there."""

from __future__ import annotations

import os
from pathlib import Path

FOLDERS = ("RUNTIME_DIR", "STATE_HOME", "CONFIG_HOME", "DATA_HOME", "CACHE_HOME")


def move_in(home: Path) -> None:
    """Point every XDG folder of this process, and of what it starts, below `home`."""
    for name in FOLDERS:
        folder = home / name.lower()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ[f"XDG_{name}"] = str(folder)

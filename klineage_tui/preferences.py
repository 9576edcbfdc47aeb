"""Choices of looks that outlive the window, in one small file of the user's state folder."""

from __future__ import annotations

from pathlib import Path

import msgspec
from platformdirs import user_state_path

from klineage_tui.themes import DARK


class Preferences(msgspec.Struct, frozen=True):
    """Keys of a newer version are ignored: these are looks, not settings."""

    theme: str = DARK.name
    split: bool = False
    wrap: bool = False


def preferences_file() -> Path:
    return user_state_path("klineage") / "window.json"


def load(file: Path) -> Preferences:
    """The saved choices; the defaults if there are none or they cannot be read."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Preferences)
    except (OSError, msgspec.DecodeError):
        return Preferences()


def save(file: Path, preferences: Preferences) -> None:
    """Raises OSError if the folder cannot be written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode(preferences))

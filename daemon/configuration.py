"""Configuration: defaults, the repository's klineage.toml over them, the user's over both.

A repository's file is untrusted. What names an interpreter, a command, an endpoint, a device or a
key, or spends money, is the user's alone to set: in the repository's file it is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

import gate.settings
import library.settings
from daemon.configuration_default import commented_default
from daemon.configuration_layer import read_layer
from daemon.configuration_tables import TABLES
from daemon.errors import ConfigurationError
from daemon.settings import (
    BudgetSettings,
    DaemonSettings,
    KeySettings,
    RewriterSettings,
    WatchSettings,
)
from daemon.worktree import repository_configuration_path, user_configuration_path

__all__ = ["Configuration", "ConfigurationError", "commented_default", "load_configuration"]


@dataclass(frozen=True, slots=True)
class Configuration:
    """All settings of one worktree."""

    watch: WatchSettings
    daemon: DaemonSettings
    gate: gate.settings.GateSettings
    library: library.settings.LibrarySettings
    rewriter: RewriterSettings
    budget: BudgetSettings
    keys: KeySettings
    files: tuple[Path, ...]
    """Files that were read, later ones over earlier ones."""


def load_configuration(root: Path) -> Configuration:
    """The settings for a worktree; without any file, the defaults. Raises ConfigurationError."""
    user = user_configuration_path()
    repository = repository_configuration_path(root)
    below = read_layer(repository, TABLES, belongs=user)
    above = read_layer(user, TABLES, belongs=None)
    merged = {
        name: msgspec.convert(_merge(below.get(name, {}), above.get(name, {})), table.kind)
        for name, table in TABLES.items()
    }
    return Configuration(
        **merged, files=tuple(path for path in (repository, user) if path.exists())
    )


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Key by key, tables within tables too; where both set a key, `above` wins."""
    merged = dict(below)
    for key, value in above.items():
        lower = merged.get(key)
        both = isinstance(value, dict) and isinstance(lower, dict)
        merged[key] = _merge(lower, value) if both else value  # type: ignore[arg-type]
    return merged

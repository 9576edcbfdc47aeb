"""The tables of klineage.toml: the settings type of each, and which keys are the user's alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gate.settings
import library.settings
from daemon.settings import (
    BudgetSettings,
    DaemonSettings,
    KeySettings,
    RewriterSettings,
    WatchSettings,
)


@dataclass(frozen=True, slots=True)
class Table:
    """What a table may hold, and what of it a repository may not set."""

    kind: Any
    """The msgspec Struct, or the mapping type, of its keys."""
    user_only: frozenset[str] = frozenset()
    """Keys that only the user's own file may set."""
    all_user_only: bool = False
    """The whole table is the user's."""

    def forbids_repository(self, key: str) -> bool:
        """Whether only the user's own file may set `key`."""
        return self.all_user_only or key in self.user_only


TABLES: dict[str, Table] = {
    "watch": Table(WatchSettings),
    "daemon": Table(DaemonSettings),
    "gate": Table(gate.settings.GateSettings, frozenset(gate.settings.USER_ONLY)),
    "library": Table(library.settings.LibrarySettings, frozenset(library.settings.USER_ONLY)),
    "rewriter": Table(RewriterSettings, all_user_only=True),
    "budget": Table(BudgetSettings, all_user_only=True),
    "keys": Table(KeySettings, all_user_only=True),
}
"""Every table there is, in the order they are shown."""

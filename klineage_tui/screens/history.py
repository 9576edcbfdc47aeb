"""Screen 4: what was applied, undone and rejected."""

from __future__ import annotations

from typing import Any, ClassVar

from klineage_tui.actions import Scope, bindings
from klineage_tui.pane import Drawn
from klineage_tui.panes.history import history
from klineage_tui.screens.page import OnePane
from klineage_tui.selection import View


class HistoryScreen(OnePane):
    SCOPE: ClassVar[Scope] = "history"
    NAME = "HISTORY"
    BINDINGS: ClassVar[list[Any]] = bindings("history")

    def content(self, view: View, width: int) -> Drawn:
        return history(view, width)

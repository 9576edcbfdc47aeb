"""Screen 5: what the daemon is and does."""

from __future__ import annotations

from typing import Any, ClassVar

from klineage_tui.actions import Scope, bindings
from klineage_tui.pane import Drawn
from klineage_tui.panes.daemon import daemon
from klineage_tui.screens.page import OnePane
from klineage_tui.selection import View


class DaemonScreen(OnePane):
    SCOPE: ClassVar[Scope] = "daemon"
    NAME = "DAEMON"
    BINDINGS: ClassVar[list[Any]] = bindings("daemon")

    def content(self, view: View, width: int) -> Drawn:
        return daemon(view, width)

"""Screen 2: everything the gate did for the selected suggestion."""

from __future__ import annotations

from typing import Any, ClassVar

from klineage_tui.actions import Scope, bindings
from klineage_tui.pane import Drawn
from klineage_tui.panes.evidence import evidence
from klineage_tui.screens.page import OnePane
from klineage_tui.selection import View


class EvidenceScreen(OnePane):
    SCOPE: ClassVar[Scope] = "evidence"
    NAME = "EVIDENCE"
    BINDINGS: ClassVar[list[Any]] = bindings("evidence")

    def content(self, view: View, width: int) -> Drawn:
        return evidence(view, width)

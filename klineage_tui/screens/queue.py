"""Screen 1, the queue: files and state, skills, diff, conditions, profile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from textual import events
from textual.containers import Horizontal, Vertical
from textual.geometry import Size
from textual.widget import Widget

from klineage_tui.actions import Scope, bindings
from klineage_tui.diff.document import Document
from klineage_tui.diff.view import DiffView
from klineage_tui.paint import Line, Span, fit
from klineage_tui.pane import Bar, Drawn, Pane
from klineage_tui.panes.conditions import conditions
from klineage_tui.panes.features import features
from klineage_tui.panes.files import files
from klineage_tui.panes.profile import profile
from klineage_tui.panes.skills import skills
from klineage_tui.screens.page import NARROW, SHORT, Page
from klineage_tui.selection import View

_DRAWN: dict[str, tuple[str, Callable[[View, int], Drawn]]] = {
    "files": ("FILES", files),
    "state": ("STATE", features),
    "skills": ("SKILLS", skills),
    "conditions": ("PRECONDITIONS", conditions),
    "profile": ("PROFILE", profile),
}
ORDER = ("files", "state", "skills", "diff", "conditions", "profile")
"""Tab order."""
LEFT = ("files", "state", "conditions")
RIGHT = ("skills", "diff", "profile")
_GROUPS = (("files", "state"), ("skills",), ("diff",), ("conditions", "profile"))
"""Panes that share a narrow window; a short one shows just the focused pane."""


class QueueScreen(Page):
    """All panes at 100 columns and more; below that, those of one group, and tab goes on."""

    SCOPE: ClassVar[Scope] = "queue"
    AUTO_FOCUS = "#skills"
    BINDINGS: ClassVar[list[Any]] = bindings("queue")

    def __init__(self) -> None:
        super().__init__()
        self._focused = "skills"
        self._zoomed = False
        self._room = Size(0, 0)
        self._diff = DiffView("diff")
        self._drawn = {pane_id: Pane(title, pane_id) for pane_id, (title, _draw) in _DRAWN.items()}
        self._panes: dict[str, Widget] = {**self._drawn, "diff": self._diff}
        self._left = Vertical(*(self._panes[name] for name in LEFT), id="left")
        self._right = Vertical(*(self._panes[name] for name in RIGHT), id="right")
        self._tabs = Bar("tabs")

    def body(self) -> list[Widget]:
        return [self._tabs, Horizontal(self._left, self._right, id="body")]

    def show(self, view: View, overrides: dict[str, str]) -> None:
        super().show(view, overrides)
        for pane_id, (_title, draw) in _DRAWN.items():
            self._drawn[pane_id].show(partial(draw, view))

    def show_diff(self, document: Document | None, said: str) -> None:
        self._diff.show(document, said)

    def set_diff_modes(self, *, split: bool, wrap: bool) -> None:
        self._diff.set_modes(split=split, wrap=wrap)

    def suit(self, size: Size) -> None:
        super().suit(size)
        self._room = size
        self._arrange()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if event.widget.id in ORDER and event.widget.id != self._focused:
            self._focused = event.widget.id
            self._arrange()

    def focus_pane(self, pane_id: str) -> None:
        """Show the pane, where it is hidden, and give it the focus."""
        self._focused = pane_id
        self._arrange()
        self._panes[pane_id].focus()

    def action_next_pane(self) -> None:
        self.focus_pane(ORDER[(ORDER.index(self._focused) + 1) % len(ORDER)])

    def action_previous_pane(self) -> None:
        self.focus_pane(ORDER[(ORDER.index(self._focused) - 1) % len(ORDER)])

    def action_zoom(self) -> None:
        self._zoomed = not self._zoomed
        self._arrange()

    def _shown(self) -> tuple[str, ...]:
        if self._zoomed or (self._room.width < NARROW and self._room.height < SHORT):
            return (self._focused,)
        if self._room.width < NARROW:
            return next(group for group in _GROUPS if self._focused in group)
        return ORDER

    def _arrange(self) -> None:
        shown = self._shown()
        for pane_id, pane in self._panes.items():
            pane.display = pane_id in shown
        self._left.display = not set(LEFT).isdisjoint(shown)
        self._right.display = not set(RIGHT).isdisjoint(shown)
        self.set_class(shown == ORDER, "-grid")
        self._tabs.display = shown != ORDER
        self._tabs.show(partial(_tabs, shown, self._focused))


def _tabs(shown: tuple[str, ...], focused: str, width: int) -> Line:
    """All panes, the shown ones strong, the focused one in brackets; `tab` goes on."""
    line: Line = (Span(" "),)
    for name in ORDER:
        if name == focused:
            line = (*line, Span(f"[{name}]", "accent"), Span(" "))
        else:
            line = (*line, Span(f" {name} ", "plain" if name in shown else "dim"), Span(" "))
    return fit(line, width)

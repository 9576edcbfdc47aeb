"""Screen 1, the queue: files and state, skills, diff, conditions, profile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from textual import events
from textual.containers import Horizontal, Vertical
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

_DRAWN: dict[str, Callable[[View, int], Drawn]] = {
    "files": files,
    "state": features,
    "skills": skills,
    "conditions": conditions,
    "profile": profile,
}
ORDER = ("files", "state", "skills", "diff", "conditions", "profile")
"""Tab order."""
_LEFT = frozenset({"files", "state", "conditions"})
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

    def body(self) -> list[Widget]:
        left = Vertical(
            Pane("FILES", "files"),
            Pane("STATE", "state"),
            Pane("PRECONDITIONS", "conditions"),
            id="left",
        )
        right = Vertical(
            Pane("SKILLS", "skills"), DiffView("diff"), Pane("PROFILE", "profile"), id="right"
        )
        return [Bar("tabs"), Horizontal(left, right, id="body")]

    def show(self, view: View, overrides: dict[str, str]) -> None:
        super().show(view, overrides)
        for pane_id, draw in _DRAWN.items():
            self.query_one(f"#{pane_id}", Pane).show(partial(draw, view))

    def show_diff(self, document: Document | None, said: str) -> None:
        self.query_one(DiffView).show(document, said)

    def set_diff_modes(self, *, split: bool, wrap: bool) -> None:
        self.query_one(DiffView).set_modes(split=split, wrap=wrap)

    def on_mount(self) -> None:
        self._arrange()

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if event.widget.id in ORDER and event.widget.id != self._focused:
            self._focused = event.widget.id
            self._arrange()

    def focus_pane(self, pane_id: str) -> None:
        """Show the pane, where it is hidden, and give it the focus."""
        self._focused = pane_id
        self._arrange()
        self.query_one(f"#{pane_id}").focus()

    def action_next_pane(self) -> None:
        self.focus_pane(ORDER[(ORDER.index(self._focused) + 1) % len(ORDER)])

    def action_previous_pane(self) -> None:
        self.focus_pane(ORDER[(ORDER.index(self._focused) - 1) % len(ORDER)])

    def action_zoom(self) -> None:
        self._zoomed = not self._zoomed
        self._arrange()

    def _shown(self) -> tuple[str, ...]:
        if self._zoomed or (self.size.width < NARROW and self.size.height < SHORT):
            return (self._focused,)
        if self.size.width < NARROW:
            return next(group for group in _GROUPS if self._focused in group)
        return ORDER

    def _arrange(self) -> None:
        shown = self._shown()
        for pane_id in ORDER:
            self.query_one(f"#{pane_id}").display = pane_id in shown
        self.query_one("#left").display = not _LEFT.isdisjoint(shown)
        self.query_one("#right").display = not _LEFT.issuperset(shown)
        self.set_class(shown == ORDER, "-grid")
        tabs = self.query_one("#tabs", Bar)
        tabs.display = shown != ORDER
        tabs.show(partial(_tabs, shown, self._focused))


def _tabs(shown: tuple[str, ...], focused: str, width: int) -> Line:
    """All panes, the shown ones strong, the focused one in brackets; `tab` goes on."""
    line: Line = (Span(" "),)
    for name in ORDER:
        label = {"conditions": "conds"}.get(name, name)
        if name == focused:
            line = (*line, Span(f"[{label}]", "accent"), Span(" "))
        else:
            line = (*line, Span(f" {label} ", "plain" if name in shown else "dim"), Span(" "))
    return fit(line, width)

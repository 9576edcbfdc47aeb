"""The keys that are valid on a screen, from the table."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen

from klineage_tui.actions import ACTIONS, Scope, keys_of
from klineage_tui.paint import BLANK, Line, Span, cell, line, wrap
from klineage_tui.painted import LOOKS
from klineage_tui.pane import Drawn, Pane

_KEYS = 15
_LEGEND = (
    "A gain is measured here, on this device; “expected” and “claimed” are not.",
    "screened: two warm processes, the first shape. confirmed: fresh processes, every shape.",
    "noisy: the interval does not clear what the same kernel varies by against itself.",
)


class HelpScreen(ModalScreen[None]):
    """Scrolls; escape, `?` or `q` closes it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*LOOKS}
    BINDINGS: ClassVar[list[Any]] = [Binding("escape,question_mark,q", "close", show=False)]

    def __init__(self, scope: Scope, overrides: dict[str, str]) -> None:
        super().__init__()
        self._draw = partial(key_help, scope, overrides)

    def compose(self) -> ComposeResult:
        yield Pane("KEYS", "help")

    def on_mount(self) -> None:
        self.query_one(Pane).show(self._draw)

    def action_close(self) -> None:
        self.dismiss()


def key_help(scope: Scope, overrides: dict[str, str], width: int) -> Drawn:
    """Actions of the screen, then those of panes; on the queue also those of the diff."""
    lines: list[Line] = []
    sections: list[tuple[str, tuple[Scope, ...]]] = [(f"ON THE {scope.upper()} SCREEN", (scope,))]
    sections.append(("IN EVERY PANE", ("pane",)))
    if scope == "queue":
        sections.append(("IN THE DIFF", ("diff",)))
    for title, scopes in sections:
        lines += [line((f" {title}", "heading"))]
        for action in ACTIONS:
            if not set(scopes).isdisjoint(action.where):
                first = (Span(" "), *cell(" ".join(keys_of(action, overrides)), "key", _KEYS))
                lines += wrap(action.help, "plain", width, first=first, indent=_KEYS + 1)
        lines.append(BLANK)
    for words in _LEGEND:
        lines += wrap(words, "dim", width, first=line(" "), indent=3)
    return Drawn(lines, title="esc closes")

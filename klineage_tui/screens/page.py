"""Base of the four screens: header above, message and keys below, one `show` for new state."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from klineage_tui.actions import Scope, footer
from klineage_tui.painted import LOOKS
from klineage_tui.pane import Bar, Drawn, Pane
from klineage_tui.panes.footer import keys, message
from klineage_tui.panes.header import header
from klineage_tui.selection import View

NARROW = 100
"""Fewer columns show one group of panes at a time."""
ROOMY = 160
"""As many columns give the left side more."""
SHORT = 20
"""Fewer rows show one pane, without a border around it."""


class Page(Screen[None]):
    """A screen that draws a `View`."""

    SCOPE: ClassVar[Scope]
    COMPONENT_CLASSES: ClassVar[set[str]] = {*LOOKS}

    class Ready(Message):
        """The page has come to the front and wants to be drawn."""

    def compose(self) -> ComposeResult:
        body = self.body()
        # Before anything is mounted: each later change of class would style the whole tree again.
        self.suit(self.app.size)
        yield Bar("header")
        yield from body
        yield Bar("message")
        yield Bar("keys")

    def body(self) -> list[Widget]:
        """What lies between header and message."""
        raise TypeError(f"{type(self).__name__} has no body")

    def on_resize(self, event: events.Resize) -> None:
        self.suit(event.size)

    def suit(self, size: Size) -> None:
        """Choose the layout for a window of `size`."""
        self.set_class(size.width < NARROW, "-narrow")
        self.set_class(size.width >= ROOMY, "-roomy")
        self.set_class(size.height < SHORT, "-short")

    def on_screen_resume(self) -> None:
        self.post_message(self.Ready())

    def show(self, view: View, overrides: dict[str, str]) -> None:
        """Draw `view`; `overrides` are the keys of the user's configuration."""
        self.query_one("#header", Bar).show(partial(header, view.queue))
        self.query_one("#message", Bar).show(partial(message, view.queue, overrides))
        offered = footer(self.SCOPE, overrides)
        self.query_one("#keys", Bar).show(partial(keys, offered))


class OnePane(Page):
    """A screen of one pane."""

    NAME: ClassVar[str]

    def body(self) -> list[Widget]:
        return [Pane(self.NAME, "only")]

    def content(self, view: View, width: int) -> Drawn:
        """What the pane shows of `view`."""
        raise TypeError(f"{type(self).__name__} has no content")

    def show(self, view: View, overrides: dict[str, str]) -> None:
        super().show(view, overrides)
        self.query_one(Pane).show(partial(self.content, view))

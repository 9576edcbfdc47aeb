"""A titled, scrolling pane of lines, optionally with rows one can pick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from klineage_tui.actions import bindings
from klineage_tui.paint import BLANK, Line
from klineage_tui.painted import Painted


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a pane shows at one width."""

    lines: Sequence[Line]
    keys: Sequence[str] | None = None
    """For each line the row it belongs to, "" for none; None if nothing can be picked."""
    cursor: str = ""
    """The picked row."""
    head: Sequence[Line] = ()
    """Stays on top while the lines scroll."""
    title: str = ""
    """Beside the pane's name."""


class Pane(ScrollView, Painted, can_focus=True):
    """Draws what `show` was last given. Picking a row posts `Picked`; it never moves by itself."""

    BINDINGS: ClassVar[list[Any]] = bindings("pane")

    class Picked(Message):
        """A row was picked by key or mouse."""

        def __init__(self, pane: Pane, key: str) -> None:
            super().__init__()
            self.pane = pane
            self.key = key

    class Opened(Message):
        """Enter, or a click on the picked row."""

        def __init__(self, pane: Pane) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, name: str, pane_id: str) -> None:
        super().__init__(id=pane_id)
        self.border_title = name
        self._heading = name
        self._draw: Callable[[int], Drawn] = lambda _width: Drawn(())
        self._drawn = Drawn(())
        self._asked = ""
        """Row last asked for and not drawn yet: two quick keys must move by two."""

    def show(self, draw: Callable[[int], Drawn]) -> None:
        """Draw with `draw(width)` from now on, and again whenever the width changes."""
        self._draw = draw
        self._redraw()

    def _redraw(self) -> None:
        width = self.scrollable_content_region.width
        drawn = self._draw(width)
        moved = drawn.cursor != self._drawn.cursor
        self._drawn = drawn
        if self._asked == drawn.cursor or self._asked not in (drawn.keys or ()):
            self._asked = ""
        self.border_title = f"{self._heading}  {drawn.title}" if drawn.title else self._heading
        self.virtual_size = Size(width, len(drawn.head) + len(drawn.lines))
        if moved and drawn.keys is not None:
            self._reveal()
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        self._redraw()
        self._reveal()

    def _reveal(self) -> None:
        """Scroll just enough to show the whole picked row."""
        rows = self._rows_of(self._drawn.cursor)
        if not rows:
            return
        room = max(1, self.scrollable_content_region.height - len(self._drawn.head))
        top, bottom = rows[0], rows[-1]
        if top < self.scroll_y or bottom - top >= room:
            self.scroll_to(y=0 if top <= 1 else top, animate=False)
        elif bottom >= self.scroll_y + room:
            self.scroll_to(y=bottom - room + 1, animate=False)

    def _rows_of(self, key: str) -> list[int]:
        keys = self._drawn.keys or ()
        return [index for index, one in enumerate(keys) if key and one == key]

    def render_line(self, y: int) -> Strip:
        drawn = self._drawn
        width = self.scrollable_content_region.width
        if y < len(drawn.head):
            return self.strip(drawn.head[y], width)
        index = y - len(drawn.head) + round(self.scroll_y)
        if index >= len(drawn.lines):
            return self.strip(BLANK, width)
        if drawn.keys is not None and drawn.cursor and drawn.keys[index] == drawn.cursor:
            name = "pane--cursor" if self.has_focus else "pane--cursor-blurred"
            return self.strip(drawn.lines[index], width, self.look(name))
        return self.strip(drawn.lines[index], width)

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        index = event.y - self.gutter.top - len(self._drawn.head) + round(self.scroll_y)
        keys = self._drawn.keys or ()
        if not 0 <= index < len(keys) or not keys[index]:
            return
        if keys[index] == self._drawn.cursor:
            self.post_message(self.Opened(self))
        else:
            self.post_message(self.Picked(self, keys[index]))

    def _step(self, rows: int) -> None:
        """Pick the row `rows` further; scroll where there is nothing to pick."""
        if self._drawn.keys is None:
            self.scroll_to(y=round(self.scroll_y) + rows, animate=False)
            return
        order = list(dict.fromkeys(key for key in self._drawn.keys if key))
        if not order:
            return
        here = self._asked or self._drawn.cursor
        position = order.index(here) if here in order else 0
        there = order[min(max(position + rows, 0), len(order) - 1)]
        if there != here:
            self._asked = there
            self.post_message(self.Picked(self, there))

    @property
    def _page(self) -> int:
        return max(1, self.scrollable_content_region.height - len(self._drawn.head) - 1)

    def action_down(self) -> None:
        self._step(1)

    def action_up(self) -> None:
        self._step(-1)

    def action_page_down(self) -> None:
        self._step(self._page)

    def action_page_up(self) -> None:
        self._step(-self._page)

    def action_first(self) -> None:
        self._step(-len(self._drawn.lines))

    def action_last(self) -> None:
        self._step(len(self._drawn.lines))

    def action_open(self) -> None:
        self.post_message(self.Opened(self))


class Bar(Painted):
    """One line across the window."""

    def __init__(self, bar_id: str) -> None:
        super().__init__(id=bar_id)
        self._draw: Callable[[int], Line] = lambda _width: BLANK

    def show(self, draw: Callable[[int], Line]) -> None:
        self._draw = draw
        self.refresh()

    def render_line(self, y: int) -> Strip:
        return self.strip(self._draw(self.size.width), self.size.width)

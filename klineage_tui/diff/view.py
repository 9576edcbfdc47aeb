"""The diff pane: draws cached lines of a document, unified or split, clipped with marks or wrapped."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from klineage_tui.actions import bindings
from klineage_tui.diff.document import Document
from klineage_tui.diff.rows import Entry, Piece, Side, entries, folded, pieces
from klineage_tui.paint import line, printable
from klineage_tui.painted import Painted
from klineage_tui.units import count

SIDEWAYS = 8
_SIGNS = {"same": " ", "removed": "-", "added": "+", "note": " "}


class DiffView(ScrollView, Painted, can_focus=True):
    """Shows a `Document`, or one line where there is none."""

    BINDINGS: ClassVar[list[Any]] = bindings("pane", "diff")

    class Opened(Message):
        """Enter on the diff."""

    def __init__(self, pane_id: str) -> None:
        super().__init__(id=pane_id)
        self.border_title = "DIFF"
        self._document = Document()
        self._said = ""
        self._split = False
        self._wrap = False
        self._entries: list[Entry] = []
        self._lines: list[tuple[int, int]] = []
        """(entry, fold) of each line of the view."""
        self._digits = 3
        self._sideways = 0
        self._strips: dict[int, Strip] = {}

    def show(self, document: Document | None, said: str = "") -> None:
        """Draw `document` from its top; without one, the line `said`."""
        new = document or Document()
        if new is self._document and said == self._said:
            return
        self._document, self._said, self._sideways = new, said, 0
        self._arrange()
        self.scroll_to(y=0, animate=False)

    def set_modes(self, *, split: bool, wrap: bool) -> None:
        if (split, wrap) != (self._split, self._wrap):
            self._split, self._wrap, self._sideways = split, wrap, 0
            self._arrange()

    @property
    def side_by_side(self) -> bool:
        """Split is wanted and both sides have room for code."""
        return self._split and self.scrollable_content_region.width >= 60

    def _arrange(self) -> None:
        self._entries = list(entries(self._document, split=self.side_by_side))
        numbers = (side.number or 0 for entry in self._entries for side in entry.sides)
        self._digits = max(3, len(str(max(numbers, default=0))))
        self._lines = [
            (index, fold)
            for index, entry in enumerate(self._entries)
            for fold in range(self._folds(entry))
        ]
        self.virtual_size = Size(self.scrollable_content_region.width, max(1, len(self._lines)))
        self._title()
        self._forget()

    def _title(self) -> None:
        if not self._document.files:
            self.border_title = "DIFF"
            return
        how = "split" if self.side_by_side else "unified"
        if self._split and not self.side_by_side:
            how = "unified: too narrow to split"
        names = count(len(self._document.files), "file")
        wrap = ", wrapped" if self._wrap else ""
        self.border_title = (
            f"DIFF  {names}, {count(self._document.hunk_count, 'hunk')}  {how}{wrap}"
        )

    def _folds(self, entry: Entry) -> int:
        if not self._wrap or entry.sides[0].ground == "note":
            return 1
        widths = self._widths(len(entry.sides))
        return max(
            len(folded(pieces(side), width))
            for side, width in zip(entry.sides, widths, strict=True)
        )

    def _widths(self, sides: int) -> tuple[int, ...]:
        """Cells for code of each side, after its gutter and the rule between them."""
        total = self.scrollable_content_region.width
        gutter = self._digits + 3
        if sides == 1:
            return (max(1, total - gutter),)
        half = (total - 1) // 2
        return max(1, half - gutter), max(1, total - 1 - half - gutter)

    def _forget(self) -> None:
        self._strips.clear()
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if not self._lines:
            said = line((f" {self._said}", "dim")) if y == 0 else ()
            return self.strip(said, width)
        index = y + round(self.scroll_y)
        if index >= len(self._lines):
            return self.strip((), width)
        if index not in self._strips:
            self._strips[index] = self._draw(*self._lines[index])
        return self._strips[index]

    def _draw(self, index: int, fold: int) -> Strip:
        entry = self._entries[index]
        width = self.scrollable_content_region.width
        if entry.sides[0].ground == "note":
            base = self.look("diff--note")
            return self.strip(line(" ", *entry.sides[0].code), width, base)
        strips: list[Strip] = []
        for side, room in zip(entry.sides, self._widths(len(entry.sides)), strict=True):
            if strips:
                strips.append(Strip([Segment("│", self.rich_style + self.tone_style("dim"))]))
            strips.append(self._side(side, room, fold))
        return Strip.join(strips).adjust_cell_length(width, self.rich_style)

    def _side(self, side: Side, room: int, fold: int) -> Strip:
        ground = self._ground(side)
        number = str(side.number) if side.number is not None and fold == 0 else ""
        sign = _SIGNS[side.ground] if fold == 0 else " "
        gutter = ground + self.tone_style("dim")
        head = Strip([Segment(f"{number:>{self._digits}} {sign} ", gutter)])
        cut = pieces(side)
        if self._wrap:
            lines = folded(cut, room)
            shown = lines[fold] if fold < len(lines) else []
            code = self._code(shown, side, ground).adjust_cell_length(room, ground)
        else:
            code = self._window(self._code(cut, side, ground), room, ground)
        return Strip.join([head, code])

    def _ground(self, side: Side) -> Style:
        if side.ground in ("added", "removed"):
            return self.look(f"diff--{side.ground}")
        return self.rich_style

    def _code(self, cut: list[Piece], side: Side, ground: Style) -> Strip:
        segments = []
        for piece in cut:
            style = ground + self.tone_style(piece.span.tone)
            if piece.marked:
                mark = self.look(f"diff--{side.ground}-mark")
                style += Style(bgcolor=mark.bgcolor, bold=mark.bold, underline=mark.underline)
            segments.append(Segment(printable(piece.span.text), style))
        return Strip(segments)

    def _window(self, code: Strip, room: int, ground: Style) -> Strip:
        """The part of a line that is scrolled into view, with a mark at each end that was cut."""
        length = code.cell_length
        seen = code.crop_extend(self._sideways, self._sideways + room, ground)
        mark = ground + self.tone_style("accent")
        if length > self._sideways + room:
            seen = Strip.join([seen.crop(0, room - 1), Strip([Segment("›", mark)])])
        if self._sideways and length:
            seen = Strip.join([Strip([Segment("‹", mark)]), seen.crop(1, room)])
        return seen

    def _scroll_rows(self, rows: int) -> None:
        self.scroll_to(y=round(self.scroll_y) + rows, animate=False)

    def action_down(self) -> None:
        self._scroll_rows(1)

    def action_up(self) -> None:
        self._scroll_rows(-1)

    def action_page_down(self) -> None:
        self._scroll_rows(max(1, self.scrollable_content_region.height - 1))

    def action_page_up(self) -> None:
        self._scroll_rows(-max(1, self.scrollable_content_region.height - 1))

    def action_first(self) -> None:
        self.scroll_to(y=0, animate=False)

    def action_last(self) -> None:
        self.scroll_to(y=len(self._lines), animate=False)

    def action_open(self) -> None:
        self.post_message(self.Opened())

    def action_left(self) -> None:
        self._scroll_sideways(-SIDEWAYS)

    def action_right(self) -> None:
        self._scroll_sideways(SIDEWAYS)

    def _scroll_sideways(self, cells: int) -> None:
        room = min(self._widths(2 if self.side_by_side else 1))
        furthest = 0 if self._wrap else max(0, self._document.widest - room)
        self._sideways = min(max(0, self._sideways + cells), furthest)
        self._forget()

    def action_next_hunk(self) -> None:
        self._to_hunk([line for line in self._hunk_lines() if line > self.scroll_y])

    def action_previous_hunk(self) -> None:
        self._to_hunk([line for line in self._hunk_lines() if line < self.scroll_y][-1:])

    def _hunk_lines(self) -> list[int]:
        return [
            line
            for line, (entry, _fold) in enumerate(self._lines)
            if self._entries[entry].opens_hunk
        ]

    def _to_hunk(self, candidates: list[int]) -> None:
        if candidates:
            self.scroll_to(y=candidates[0], animate=False)

"""Base of our widgets: lines of tones drawn in the styles of the theme."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from klineage_tui.paint import Line, Tone, printable

TONES: tuple[Tone, ...] = Tone.__args__  # type: ignore[attr-defined]  # typing has no public way

LOOKS = frozenset(
    {
        *(f"tone--{tone}" for tone in TONES),
        "pane--cursor",
        "pane--cursor-blurred",
        "diff--added",
        "diff--removed",
        "diff--added-mark",
        "diff--removed-mark",
        "diff--note",
    }
)
"""Component classes of every screen with our widgets on it; window.tcss says how each looks.

They belong to the screen because Textual matches every one of them against the style sheet again
for each widget that has them: on each pane, that was half of the time to the first picture.
"""


class Painted(Widget):
    """Gives `strip`. Its screen has `LOOKS` among its component classes."""

    def look(self, name: str) -> Style:
        """The style of one of `LOOKS`, over the screen's background."""
        return self.screen.get_component_rich_style(name)

    def tone_style(self, tone: Tone) -> Style:
        """The tone's letters, without a background: partial styles of Textual do not blend."""
        style = self.look(f"tone--{tone}")
        return Style(
            color=style.color,
            bold=style.bold,
            italic=style.italic,
            underline=style.underline,
            reverse=style.reverse,
            dim=style.dim,
        )

    def strip(self, line: Line, width: int, base: Style | None = None) -> Strip:
        """`line` over `base` (the widget's style if None), padded to `width`."""
        under = self.rich_style if base is None else base
        segments = [Segment(printable(text), under + self.tone_style(tone)) for text, tone in line]
        return Strip(segments).adjust_cell_length(width, under)

"""Base of our widgets: lines of tones drawn in the styles of the theme."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from klineage_tui.paint import Line, Tone, printable

TONES: tuple[Tone, ...] = Tone.__args__  # type: ignore[attr-defined]  # typing has no public way

TONE_CLASSES = frozenset(f"tone--{tone}" for tone in TONES)
"""Textual looks for component classes along first bases only, so each widget names these."""


class Painted(Widget):
    """Gives `strip`; the theme's side is the `tone--…` rules of window.tcss."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*TONE_CLASSES}

    def tone_style(self, tone: Tone) -> Style:
        """The tone's letters, blended with the widget's background but not bringing it along."""
        return without_ground(self.get_component_rich_style(f"tone--{tone}"))

    def strip(self, line: Line, width: int, base: Style | None = None) -> Strip:
        """`line` over `base` (the widget's style if None), padded to `width`."""
        under = self.rich_style if base is None else base
        segments = [Segment(printable(text), under + self.tone_style(tone)) for text, tone in line]
        return Strip(segments).adjust_cell_length(width, under)


def without_ground(style: Style) -> Style:
    """The style without its background. Partial styles of Textual will not do: they do not blend."""
    return Style(
        color=style.color,
        bold=style.bold,
        italic=style.italic,
        underline=style.underline,
        reverse=style.reverse,
        dim=style.dim,
    )

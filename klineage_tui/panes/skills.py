"""SKILLS: the ranked suggestions, with gain and status."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from daemon.protocol import SuggestionView
from klineage_tui.outcome import gain, word
from klineage_tui.paint import Line, Span, cell, clip, fit, line, text_of, width_of, wrap
from klineage_tui.pane import Drawn
from klineage_tui.selection import View

_RANK, _GAIN, _STATUS = 4, 7, 19
_INTERVAL = 13
"""Cells for `0.991–1.014`, and one of air."""
_WIDE = 64
"""A narrower pane has no column for the interval."""


def skills(view: View, width: int) -> Drawn:
    """A row for each suggestion of the selected file or kernel, in the daemon's order."""
    offered, shown = view.offered(), view.shown()
    title = view.at.place.rpartition("::")[2] or view.at.place
    if view.at.filter:
        title = f"{title} · {len(shown)} of {len(offered)} · filter: {view.at.filter}"
    elif offered:
        title = f"{title} · {len(offered)}"
    if not shown:
        return Drawn([line((f" {_nothing(view, bool(offered))}", "dim"))], title=title)
    several = len({one.kernel for one in shown}) > 1
    name = _name_width(shown, width, several)
    lines: list[Line] = []
    keys: list[str] = []
    for one in shown:
        rows = [_row(one, width, name, several)]
        if one.id == view.at.suggestion:
            rows += _details(one, width)
        lines += rows
        keys += [one.id] * len(rows)
    return Drawn(lines, keys, view.at.suggestion, head=(_head(width, name),), title=title)


def _name_width(shown: Sequence[SuggestionView], width: int, several: bool) -> int:
    """Room for the longest name, as long as the measured interval keeps its own."""
    longest = max(cell_len(text_of(_name(one, several))) for one in shown) + 1
    interval = _INTERVAL if width >= _WIDE else 0
    return min(longest, max(8, width - _RANK - _GAIN - 1 - interval - _STATUS - 1))


def _details(suggestion: SuggestionView, width: int) -> list[Line]:
    """Under the picked row: its intent, and in a narrow pane the interval that has no column."""
    first = line(" " * _RANK)
    if width < _WIDE:
        interval = gain(suggestion)[1]
        first = (*first, *interval, Span("  ")) if interval else first
    return wrap(suggestion.intent, "dim", width - 1, first=first, indent=_RANK)


def _name(suggestion: SuggestionView, several: bool) -> Line:
    faded = suggestion.stage in ("blocked", "manual", "rejected")
    entry = f"  {suggestion.kernel.rpartition('::')[2]}" if several else ""
    return line((suggestion.skill, "dim" if faded else "plain"), (entry, "dim"))


def _nothing(view: View, offered: bool) -> str:
    if offered:
        return f"No skill matches “{view.at.filter}”; esc shows all."
    if not view.at.place:
        return "Skills appear when a kernel is found."
    return "No skill in the library is about this kernel."


def _head(width: int, name: int) -> Line:
    interval = width - _RANK - name - _GAIN - 1 - _STATUS - 1
    return clip(
        (
            *cell("#", "dim", _RANK - 1, right=True),
            Span(" "),
            *cell("skill", "dim", name),
            *cell("gain", "dim", _GAIN, right=True),
            Span(" "),
            *cell("interval" if width >= _WIDE else "", "dim", interval),
            *cell("status", "dim", _STATUS),
        ),
        width,
    )


def _row(suggestion: SuggestionView, width: int, name: int, several: bool) -> Line:
    ratio, interval = gain(suggestion)
    room = width - _RANK - name - _GAIN - 1 - _STATUS - 1
    if width_of(interval) >= room:
        # The number of trials is said again in the profile; the expected gain is only said here.
        interval = tuple(Span(text.partition(" (")[0], tone) for text, tone in interval)
    text, tone = word(suggestion)
    return (
        *cell(str(suggestion.rank), "dim", _RANK - 1, right=True),
        Span(" "),
        *fit(_name(suggestion, several), name),
        *fit(ratio, _GAIN, right=True),
        Span(" "),
        *fit(interval if width >= _WIDE else (), room),
        *cell(text, tone, _STATUS),
        Span(" "),
    )

"""SKILLS: the ranked suggestions, with gain and status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from daemon.protocol import SuggestionView
from klineage_tui.outcome import expected, gain, word
from klineage_tui.paint import Line, Span, cell, clip, fit, line, text_of, wrap
from klineage_tui.pane import Drawn
from klineage_tui.selection import View

_RANK, _GAIN, _STATUS = 4, 7, 19
_INTERVAL = 13
"""Cells for `0.991–1.014`, and air."""
_WIDE = 64
"""A narrower pane has no column for the interval."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Cells of the columns whose width is not fixed."""

    name: int
    interval: int
    """0: the pane is too narrow for it."""


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
    names = _names(shown)
    columns = _columns(names, width)
    lines: list[Line] = []
    keys: list[str] = []
    for one in shown:
        rows = [_row(one, names[one.id], columns)]
        if one.id == view.at.suggestion:
            rows += _details(one, columns, width)
        lines += rows
        keys += [one.id] * len(rows)
    head = (clip(_head(columns), width),)
    return Drawn(lines, keys, view.at.suggestion, head=head, title=title)


def _nothing(view: View, offered: bool) -> str:
    if offered:
        return f"No skill matches “{view.at.filter}”; clear the filter to see all."
    if not view.at.place:
        return "Skills appear when a kernel is found."
    return "No skill in the library is about this kernel."


def _names(shown: Sequence[SuggestionView]) -> Mapping[str, Line]:
    """Skill ids; with the kernel where there are several, with the line where a skill fits twice."""
    several = len({one.kernel for one in shown}) > 1
    times = Counter((one.kernel, one.skill) for one in shown)
    return {
        one.id: line(
            (one.skill, "dim" if one.stage in ("blocked", "manual", "rejected") else "plain"),
            (f" line {one.line}" if times[one.kernel, one.skill] > 1 else "", "dim"),
            (f"  {one.kernel.rpartition('::')[2]}" if several else "", "dim"),
        )
        for one in shown
    }


def _columns(names: Mapping[str, Line], width: int) -> _Columns:
    """The longest name gets its room, as long as a measured interval keeps its own."""
    room = width - _RANK - _GAIN - 1 - _STATUS
    least = _INTERVAL if width >= _WIDE else 0
    longest = max(cell_len(text_of(name)) for name in names.values()) + 1
    name = longest if longest <= room - least else max(8, room - least)
    return _Columns(name if least else max(8, room), room - name if least else 0)


def _details(suggestion: SuggestionView, columns: _Columns, width: int) -> list[Line]:
    """Under the picked row: its intent, and in a narrow pane the interval that has no column."""
    first = line(" " * _RANK)
    if not columns.interval and (interval := _interval(suggestion, width // 2)):
        first = (*first, *interval, Span("  "))
    return wrap(suggestion.intent, "dim", width - 1, first=first, indent=_RANK)


def _interval(suggestion: SuggestionView, width: int) -> Line:
    """The measured interval, or in words what evidence elsewhere leads to expect, as far as it fits."""
    if interval := gain(suggestion)[1]:
        return interval
    awaited = expected(suggestion)
    if not awaited:
        return ()
    gist = awaited.partition(" (")[0].partition(", ")[0]
    for text in (f"expected {awaited}", f"expected {gist}"):
        if cell_len(text) <= width:
            return line((text, "dim"))
    return line((gist if "claimed" in gist else f"expected {gist}", "dim"))


def _head(columns: _Columns) -> Line:
    return (
        *cell("#", "dim", _RANK - 1, right=True),
        Span(" "),
        *cell("skill", "dim", columns.name),
        *cell("gain", "dim", _GAIN, right=True),
        Span(" "),
        *cell("interval", "dim", columns.interval),
        *cell("status", "dim", _STATUS),
    )


def _row(suggestion: SuggestionView, name: Line, columns: _Columns) -> Line:
    ratio, _ = gain(suggestion)
    text, tone = word(suggestion)
    room = columns.interval - 1
    return (
        *cell(str(suggestion.rank), "dim", _RANK - 1, right=True),
        Span(" "),
        *fit(name, columns.name),
        *fit(ratio, _GAIN, right=True),
        Span(" "),
        *(fit(_interval(suggestion, room), room) if room > 0 else ()),
        Span(" " if room > 0 else ""),
        *cell(text, tone, _STATUS),
    )

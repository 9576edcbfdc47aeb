"""SKILLS: the ranked suggestions, with gain and status."""

from __future__ import annotations

from daemon.protocol import SuggestionView
from klineage_tui.outcome import gain, word
from klineage_tui.paint import Line, Span, cell, clip, fit, line
from klineage_tui.pane import Drawn
from klineage_tui.selection import View

_RANK, _GAIN, _STATUS = 4, 7, 19
_INTERVAL_WIDE, _INTERVAL_NARROW = 27, 13


def skills(view: View, width: int) -> Drawn:
    """A row for each suggestion of the selected file or kernel, in the daemon's order."""
    offered, shown = view.offered(), view.shown()
    title = view.at.place.rpartition("::")[2] or view.at.place
    if view.at.filter:
        title = f"{title}  {len(shown)} of {len(offered)}  filter: {view.at.filter}"
    elif offered:
        title = f"{title}  {len(offered)}"
    if not shown:
        return Drawn([line((f" {_nothing(view, bool(offered))}", "dim"))], title=title)
    several = len({one.kernel for one in shown}) > 1
    lines = [_row(one, width, several) for one in shown]
    keys = [one.id for one in shown]
    return Drawn(lines, keys, view.at.suggestion, head=(_head(width),), title=title)


def _nothing(view: View, offered: bool) -> str:
    if offered:
        return f"No skill matches “{view.at.filter}”; esc shows all."
    if not view.at.place:
        return "Skills appear when a kernel is found."
    return "No skill in the library is about this kernel."


def _interval(width: int) -> int:
    return _INTERVAL_WIDE if width >= 76 else _INTERVAL_NARROW


def _name(width: int) -> int:
    return max(8, width - _RANK - _GAIN - 1 - _interval(width) - _STATUS - 1)


def _head(width: int) -> Line:
    return clip(
        (
            *cell("#", "dim", _RANK - 1, right=True),
            Span(" "),
            *cell("skill", "dim", _name(width)),
            *cell("gain", "dim", _GAIN, right=True),
            Span(" "),
            *cell("interval", "dim", _interval(width)),
            *cell("status", "dim", _STATUS),
        ),
        width,
    )


def _row(suggestion: SuggestionView, width: int, several: bool) -> Line:
    ratio, interval = gain(suggestion)
    text, tone = word(suggestion)
    entry = suggestion.kernel.rpartition("::")[2]
    faded = suggestion.stage in ("blocked", "manual", "rejected")
    name = line(
        (suggestion.skill, "dim" if faded else "plain"), (f"  {entry}" if several else "", "dim")
    )
    return (
        *cell(str(suggestion.rank), "dim", _RANK - 1, right=True),
        Span(" "),
        *fit(name, _name(width)),
        *fit(ratio, _GAIN, right=True),
        Span(" "),
        *fit(interval, _interval(width)),
        *cell(text, tone, _STATUS),
        Span(" "),
    )

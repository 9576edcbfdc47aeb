"""PRECONDITIONS and RISK: what must hold, whether it does and why; what could go wrong."""

from __future__ import annotations

from daemon.protocol import ConditionView
from klineage_tui.paint import BLANK, Line, Span, Tone, line, wrap
from klineage_tui.pane import Drawn
from klineage_tui.selection import View

_MARKS: dict[str, tuple[str, Tone]] = {
    "met": ("[x] met  ", "good"),
    "unmet": ("[!] unmet  ", "bad"),
    "unknown": ("[?] unknown  ", "warn"),
}
_ORDER = {"unmet": 0, "unknown": 1, "met": 2}
_INDENT = 5


def conditions(view: View, width: int) -> Drawn:
    """What is not met first; a mark and a word each; for an unknown, what would supply it."""
    suggestion = view.suggestion()
    if suggestion is None:
        return Drawn([line((" No skill is selected.", "dim"))])
    lines: list[Line] = []
    for one in sorted(suggestion.conditions, key=lambda one: _ORDER[one.truth]):
        lines += _condition(one, width)
    if not suggestion.conditions:
        lines.append(line((" None declared.", "dim")))
    lines += [BLANK, *_risks(suggestion.risks, width)]
    met = sum(one.truth == "met" for one in suggestion.conditions)
    return Drawn(lines, title=f"{met} of {len(suggestion.conditions)} met")


def _condition(condition: ConditionView, width: int) -> list[Line]:
    mark, tone = _MARKS[condition.truth]
    lines = wrap(condition.text, "plain", width, first=line(" ", (mark, tone)), indent=_INDENT)
    if condition.because:
        lines += wrap(condition.because, "dim", width, first=line(" " * _INDENT), indent=_INDENT)
    if condition.truth == "unknown" and condition.supply:
        first = line(" " * _INDENT, ("supply: ", "warn"))
        lines += wrap(condition.supply, "plain", width, first=first, indent=_INDENT + 8)
    return lines


def _risks(risks: tuple[str, ...], width: int) -> list[Line]:
    if not risks:
        return [line((" RISK  ", "warn"), ("none declared", "dim"))]
    lines: list[Line] = []
    for risk in risks:
        label = Span(" " * 7) if lines else Span(" RISK  ", "warn")
        lines += wrap(risk, "plain", width, first=(label, Span("· ", "dim")), indent=9)
    return lines

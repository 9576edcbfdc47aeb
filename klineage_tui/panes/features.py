"""STATE: the optimization features of the selected kernel, and what each was seen in."""

from __future__ import annotations

from daemon.protocol import FeatureView
from klineage_tui.paint import Line, Tone, cell, clip, line, wrap
from klineage_tui.pane import Drawn
from klineage_tui.selection import View

_ORDER = {"present": 0, "unknown": 1, "absent": 2}
_TONES: dict[str, Tone] = {"present": "good", "unknown": "warn", "absent": "dim"}


def features(view: View, width: int) -> Drawn:
    """One line a feature, presence in words: present first, then unknown, then absent."""
    kernel = view.kernel()
    if kernel is None:
        return Drawn([line((" No kernel is selected.", "dim"))])
    shown = sorted(kernel.features, key=lambda one: (_ORDER[one.presence], one.id))
    lines = [row for feature in shown for row in _feature(feature, width)]
    if kernel.workload is None:
        lines = [
            *wrap("no workload: shown, not gated", "warn", width, first=line(" "), indent=1),
            *lines,
        ]
    return Drawn(lines or [line((" Not analysed yet.", "dim"))], title=kernel.entry)


def _feature(feature: FeatureView, width: int) -> list[Line]:
    tone = _TONES[feature.presence]
    where = f"{feature.layer} {feature.line}" if feature.line else feature.layer
    if feature.presence == "absent":
        where = ""
    name_tone: Tone = "dim" if feature.presence == "absent" else "plain"
    name_room = width - 9 - len(where) - 2
    first = (
        *cell(f" {feature.presence}", tone, 9),
        *cell(feature.name, name_tone, max(name_room, 4)),
        *line((f" {where} ", "dim")),
    )
    rows = [clip(first, width)]
    if feature.detail and feature.presence != "absent":
        rows += wrap(feature.detail, "dim", width - 1, first=line(" " * 9), indent=9)
    return rows

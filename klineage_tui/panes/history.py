"""History: what was applied, undone, redone and rejected, newest first."""

from __future__ import annotations

from daemon.protocol import EntryView
from klineage_tui.paint import Line, Span, Tone, cell, clip, fit, line, wrap
from klineage_tui.pane import Drawn
from klineage_tui.selection import View
from klineage_tui.units import clock

_KINDS: dict[str, Tone] = {"applied": "good", "undone": "warn", "redone": "good", "rejected": "dim"}


def history(view: View, width: int) -> Drawn:
    """A row for each entry, with details under the picked one."""
    entries = view.queue.history
    if not entries:
        text = "Nothing was applied, undone or rejected yet."
        return Drawn(wrap(text, "dim", width, first=line(" "), indent=1))
    lines: list[Line] = []
    keys: list[str] = []
    for entry in entries:
        rows = [_row(entry, width)]
        if entry.id == view.at.entry:
            rows += _details(entry, width)
        lines += rows
        keys += [str(entry.id)] * len(rows)
    return Drawn(lines, keys, str(view.at.entry), title=str(len(entries)))


def _row(entry: EntryView, width: int) -> Line:
    when = clock(entry.at)
    when = when if width >= 90 else when[5:16]
    room = max(10, width - len(when) - 2 - 10 - 9)
    name = fit(line(entry.skill, (f"  {entry.kernel}", "dim")), room)
    return clip(
        (
            Span(" "),
            Span(f"{when} ", "dim"),
            *cell(entry.kind, _KINDS[entry.kind], 10),
            *name,
            *cell(entry.gain.partition(" ")[0], "strong", 9, right=True),
        ),
        width,
    )


def _details(entry: EntryView, width: int) -> list[Line]:
    lines: list[Line] = []
    if entry.files:
        lines += wrap(
            ", ".join(entry.files), "dim", width, first=line(("   changed ", "dim")), indent=11
        )
    if " " in entry.gain:
        lines += wrap(entry.gain, "plain", width, first=line(("   gain    ", "dim")), indent=11)
    if entry.note:
        lines += wrap(entry.note, "plain", width, first=line(("   note    ", "dim")), indent=11)
    says = "undo takes it back" if entry.undoable else "cannot be undone now"
    return [
        *lines,
        clip(line(("   ", "dim"), (says, "accent" if entry.undoable else "dim")), width),
    ]

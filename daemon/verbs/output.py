"""How verbs print: JSON for programs, aligned lines for people and screen readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from daemon.protocol import ConditionView, SuggestionView, TimingView, VerdictView

MARKS = {"met": "[x]", "unmet": "[!]", "unknown": "[?]"}
"""Always printed beside the word, never instead of it."""


def print_json(value: object) -> None:
    """Print one JSON document, with every field of a wire type, defaults included."""
    print(msgspec.json.format(msgspec.json.encode(plain(value)), indent=2).decode())


def plain(value: object) -> object:
    """`value` as dicts, lists and scalars; wire types keep the fields they would omit."""
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def table(rows: Iterable[Sequence[str]]) -> str:
    """Rows as left-aligned columns two spaces apart; the last column is not padded."""
    listed = [tuple(row) for row in rows]
    if not listed:
        return ""
    widths = [max(len(row[i]) for row in listed) for i in range(len(listed[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in listed
    )


def latency(microseconds: float) -> str:
    """A latency in the unit an engineer would say: `8.31 µs`, `1.92 ms`, `2.1 s`."""
    for scale, unit in ((1.0, "µs"), (1e3, "ms")):
        if microseconds / scale < 999.5:  # what rounds to 1000 is 1 of the next unit
            return f"{microseconds / scale:.3g} {unit}"
    seconds = microseconds / 1e6
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:.0f} s"


def speedup(timing: TimingView) -> str:
    """`3.12x [2.98, 3.30]`: the measured ratio with its interval."""
    low, high = timing.speedup_low, timing.speedup_high
    return f"{timing.speedup:.3g}x [{low:.3g}, {high:.3g}]"


def timing_line(timing: TimingView) -> str:
    """One measured shape: before, after, speedup, interval and its coverage."""
    return (
        f"{timing.shape}: {latency(timing.before_us)} → {latency(timing.after_us)}  "
        f"{speedup(timing)} at {timing.confidence:.1%}"
    )


def gain(suggestion: SuggestionView) -> str:
    """What was measured, or what is merely expected, never one in the other's place."""
    verdict = suggestion.verdict
    if verdict is None:
        return f"expected {suggestion.expected}" if suggestion.expected else "not measured"
    if not verdict.timings or verdict.status not in ("faster", "tie", "slower"):
        # A ratio that decided nothing would be read as a gain all the same.
        return f"{verdict.status} ({verdict.tier})"
    return f"{verdict.status} {speedup(verdict.timings[0])} ({verdict.tier})"


def condition_lines(conditions: Iterable[ConditionView]) -> list[str]:
    """Conditions with mark, word, text, and the facts that decided."""
    lines = []
    for condition in conditions:
        line = f"{MARKS[condition.truth]} {condition.truth:<7} {condition.text}"
        if condition.because:
            line += f"  ({condition.because})"
        if condition.truth == "unknown" and condition.supply:
            line += f"; to find out: {condition.supply}"
        lines.append(line)
    return lines


def verdict_lines(verdict: VerdictView) -> list[str]:
    """A verdict as lines: status, message, timings, checks done and not done."""
    lines = [f"{verdict.status}  ({verdict.tier}, {verdict.platform}, {verdict.trust})"]
    lines += [f"  {verdict.message}"] if verdict.message else []
    lines += [f"  {timing_line(timing)}" for timing in verdict.timings]
    lines += [f"  {check.outcome:<8} {check.name}: {check.detail}" for check in verdict.checks]
    if verdict.status in ("compile_error", "crashed", "wrong", "ungateable") and verdict.log:
        lines += ["  log:", *(f"    {line}" for line in verdict.log.splitlines()[-20:])]
    return lines

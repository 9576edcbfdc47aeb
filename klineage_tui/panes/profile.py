"""PROFILE: latency before and after, its interval, resources; only what was measured."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from daemon.protocol import CheckView, SuggestionView, TimingView, VerdictView
from klineage_tui.outcome import MEASURED, tone_of
from klineage_tui.paint import BLANK, Line, Span, Tone, cell, line, wrap
from klineage_tui.pane import Drawn
from klineage_tui.selection import View
from klineage_tui.units import latency_pair, percent, ratio_triple, resource

_LABEL = 13


def profile(view: View, width: int) -> Drawn:
    """The selected suggestion's verdict at its first shape; where there is none, why."""
    suggestion = view.suggestion()
    if suggestion is None:
        return Drawn([line((" Nothing measured.", "dim"))])
    verdict = suggestion.verdict
    if verdict is None:
        return Drawn(unmeasured(suggestion, width), title="not measured")
    lines = verdict_lines(verdict, width)
    if verdict.timings and verdict.status in MEASURED:
        lines += timing_lines(verdict.timings[0], width)
        more = len(verdict.timings) - 1
        if more:
            lines += _row("", f"{more} more shape{'s' if more > 1 else ''}: press 2", width, "dim")
    lines += resource_lines(verdict, width)
    lines += [BLANK, *check_summary(verdict.checks, width)]
    return Drawn(lines, title=f"{verdict.status.replace('_', ' ')} at tier {verdict.tier}")


def unmeasured(suggestion: SuggestionView, width: int) -> list[Line]:
    """Why there is no verdict, and what evidence elsewhere leads to expect."""
    reason = suggestion.reason or f"stage: {suggestion.stage}"
    lines = wrap(reason, "plain", width, first=line(" "), indent=1)
    if suggestion.expected:
        lines += _row(
            "expected", f"{suggestion.expected}; not measured on this kernel", width, "dim"
        )
    return lines


def verdict_lines(verdict: VerdictView, width: int) -> list[Line]:
    """Status and the gate's own sentence."""
    status = verdict.status.replace("_", " ")
    return wrap(
        verdict.message,
        "plain",
        width,
        first=line(" ", (f"{status}: ", tone_of(verdict))),
        indent=1,
    )


def timing_lines(timing: TimingView, width: int) -> list[Line]:
    """Shape, latency before → after in one unit, speedup with its interval."""
    before, after, unit = latency_pair(timing.before_us, timing.after_us)
    middle, low, high = ratio_triple(timing.speedup, timing.speedup_low, timing.speedup_high)
    sure = percent(timing.confidence)
    return [
        *_row("shape", timing.shape, width),
        *_row("latency", f"{before} → {after} {unit}", width, "strong"),
        *_row("speedup", f"{middle}×  ({sure} interval {low}–{high}×)", width, "strong"),
    ]


def resource_lines(verdict: VerdictView, width: int) -> list[Line]:
    """Resources before → after; what a device cannot report is `unavailable`."""
    names = dict.fromkeys(chain(verdict.resources_before, verdict.resources_after))
    lines: list[Line] = []
    for name in names:
        before = resource(name, verdict.resources_before.get(name))
        after = resource(name, verdict.resources_after.get(name))
        text = before if before == after else f"{before} → {after}"
        label = name.removesuffix("_bytes").replace("_", " ")
        lines += _row(label, text, width, "dim" if text == "unavailable" else "plain")
    return lines


def check_summary(checks: Iterable[CheckView], width: int) -> list[Line]:
    """How many checks passed; each that failed or was not run by name."""
    checks = tuple(checks)
    passed = sum(one.outcome == "passed" for one in checks)
    lines = _row("checks", f"{passed} of {len(checks)} passed", width)
    for one in checks:
        if one.outcome != "passed":
            tone: Tone = "bad" if one.outcome == "failed" else "warn"
            first: Line = (*cell("", "dim", _LABEL + 1), Span(f"{one.outcome}: ", tone))
            lines += wrap(one.name, "plain", width, first=first, indent=_LABEL + 1)
    return lines


def _row(label: str, text: str, width: int, tone: Tone = "plain") -> list[Line]:
    first: Line = (Span(" "), *cell(label, "dim", _LABEL))
    return wrap(text, tone, width, first=first, indent=_LABEL + 1)

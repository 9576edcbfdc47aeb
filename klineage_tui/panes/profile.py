"""PROFILE: latency before and after, its interval, resources; only what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from daemon.protocol import CheckView, SuggestionView, TimingView, VerdictView
from klineage_tui.outcome import MEASURED, tone_of
from klineage_tui.paint import Line, Span, Tone, cell, clip, line, wrap
from klineage_tui.pane import Drawn
from klineage_tui.selection import View
from klineage_tui.units import clock, count, latency_pair, percent, ratio_triple, resource

_LABEL = 13
WIDE = 64
"""Cells from which latency and speedup share a line."""


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
        lines += timing_lines(verdict.timings[0], len(verdict.timings) - 1, width)
    if width >= WIDE:
        lines += _row("resources", _joined_resources(verdict), width)
    else:
        lines += resource_lines(verdict, width)
    lines += check_summary(verdict.checks, width)
    lines += _row("measured", f"{clock(verdict.at)} on {verdict.platform}, {verdict.device}", width)
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


def timing_lines(timing: TimingView, more: int, width: int) -> list[Line]:
    """Shape, latency before → after in one unit, speedup with its interval; `more` shapes exist."""
    before, after, unit = latency_pair(timing.before_us, timing.after_us)
    middle, low, high = ratio_triple(timing.speedup, timing.speedup_low, timing.speedup_high)
    latency = line((f"{before} → {after} {unit}", "strong"))
    speedup = line((f"{middle}×", "strong"), f"  {low}–{high}× ({percent(timing.confidence)} CI)")
    others = f"   and {count(more, 'shape')} more, in the evidence" if more else ""
    lines = [_labelled("shape", line(timing.shape, (others, "dim")), width)]
    if width >= WIDE:
        lines.append(_labelled("latency", (*latency, Span("   "), *speedup), width))
    else:
        lines += [_labelled("latency", latency, width), _labelled("speedup", speedup, width)]
    return lines + _disagreement(timing, width)


def _disagreement(timing: TimingView, width: int) -> list[Line]:
    """Says why two latencies do not divide to the speedup, where they do not."""
    ratio = timing.before_us / timing.after_us
    if timing.speedup_low <= ratio <= timing.speedup_high:
        return []
    said = f"latencies are medians of each arm ({ratio:.2f}×); the speedup is of interleaved pairs"
    return _row("", said, width, "warn")


def _resources(verdict: VerdictView) -> Iterator[tuple[str, str]]:
    """Name and `before → after`; what a device cannot report is `unavailable`."""
    for name in dict.fromkeys(chain(verdict.resources_before, verdict.resources_after)):
        before = resource(name, verdict.resources_before.get(name))
        after = resource(name, verdict.resources_after.get(name))
        label = name.removesuffix("_bytes").replace("_", " ")
        yield label, before if before == after else f"{before} → {after}"


def _joined_resources(verdict: VerdictView) -> str:
    return ", ".join(f"{label} {text}" for label, text in _resources(verdict)) or "not reported"


def resource_lines(verdict: VerdictView, width: int) -> list[Line]:
    """A line for each resource."""
    return [
        row
        for label, text in _resources(verdict)
        for row in _row(label, text, width, "dim" if text == "unavailable" else "plain")
    ]


def check_summary(checks: tuple[CheckView, ...], width: int) -> list[Line]:
    """How many checks passed; each that failed or was not run by name."""
    passed = sum(one.outcome == "passed" for one in checks)
    lines = _row("checks", f"{passed} of {len(checks)} passed", width)
    for outcome in ("failed", "not run"):
        names = ", ".join(one.name for one in checks if one.outcome == outcome)
        if names:
            lines += _row(outcome, names, width, "bad" if outcome == "failed" else "warn")
    return lines


def _row(label: str, text: str, width: int, tone: Tone = "plain") -> list[Line]:
    first: Line = (Span(" "), *cell(label, "dim", _LABEL))
    return wrap(text, tone, width, first=first, indent=_LABEL + 1)


def _labelled(label: str, content: Line, width: int) -> Line:
    return clip((Span(" "), *cell(label, "dim", _LABEL), *content), width)

"""Evidence: all that the gate did for one verdict."""

from __future__ import annotations

from daemon.protocol import CheckView, TimingView, VerdictView
from klineage_tui.outcome import MEASURED
from klineage_tui.paint import BLANK, Line, Span, Tone, cell, clip, line, wrap
from klineage_tui.pane import Drawn
from klineage_tui.panes.profile import resource_lines, unmeasured, verdict_lines
from klineage_tui.selection import View
from klineage_tui.units import clock, duration, latency_pair, percent, ratio_triple

_OUTCOMES: dict[str, Tone] = {"passed": "good", "failed": "bad", "not run": "warn"}


def evidence(view: View, width: int) -> Drawn:
    """Verdict, checks, timings of every shape, resources and log of the selected suggestion."""
    suggestion = view.suggestion()
    if suggestion is None:
        return Drawn([line((" No skill is selected.", "dim"))])
    title = f"{suggestion.skill} on {suggestion.kernel}"
    verdict = suggestion.verdict
    if verdict is None:
        return Drawn(unmeasured(suggestion, width), title=title)
    lines = [*verdict_lines(verdict, width), *_setting(verdict, width)]
    lines += _section("CHECKS", [row for one in verdict.checks for row in _check(one, width)])
    lines += _section("TIMINGS", _timings(verdict, width))
    lines += _section("RESOURCES  before → after", resource_lines(verdict, width))
    log = [clip(line(f" {text}"), width) for text in verdict.log.splitlines()]
    lines += _section("LOG", log)
    return Drawn(lines, title=title)


def _setting(verdict: VerdictView, width: int) -> list[Line]:
    facts = (
        f"tier {verdict.tier}",
        f"{verdict.platform}, {verdict.device}",
        verdict.trust,
        f"agrees with the {verdict.equivalent_to}" if verdict.equivalent_to else "",
        f"cost {duration(verdict.cost_s)}",
        clock(verdict.at),
    )
    return wrap(" · ".join(fact for fact in facts if fact), "dim", width, first=line(" "), indent=1)


def _section(name: str, lines: list[Line]) -> list[Line]:
    return [BLANK, line((f" {name}", "heading")), *(lines or [line((" none", "dim"))])]


def _check(check: CheckView, width: int) -> list[Line]:
    first = (
        *cell(f" {check.outcome}", _OUTCOMES[check.outcome], 10),
        *cell(check.name, "strong", 20),
    )
    if width < 70:
        lines = [clip(first, width)]
        return lines + wrap(check.detail, "dim", width, first=line(" " * 10), indent=10)
    return wrap(check.detail, "plain", width, first=(*first, Span(" ")), indent=31)


def _timings(verdict: VerdictView, width: int) -> list[Line]:
    lines: list[Line] = []
    means_something = verdict.status in MEASURED
    for timing in verdict.timings:
        lines += _timing(timing, width, means_something)
    if verdict.timings:
        if not means_something:
            said = f"A {verdict.status.replace('_', ' ')} verdict has no speedup; latencies only."
            lines += wrap(said, "warn", width, first=line(" "), indent=1)
        for method in _methods(verdict.timings):
            lines += wrap(method, "dim", width, first=line(" "), indent=1)
    return lines


def _methods(timings: tuple[TimingView, ...]) -> list[str]:
    """How it was timed, once; then what differs from shape to shape."""
    parts = [timing.method.split("; ") for timing in timings]
    common = [part for part in parts[0] if all(part in each for each in parts)]
    differing = [
        f"{timing.shape}: {'; '.join(part for part in each if part not in common)}"
        for timing, each in zip(timings, parts, strict=True)
        if any(part not in common for part in each)
    ]
    return [*([f"method: {'; '.join(common)}"] if common else []), *differing]


def _timing(timing: TimingView, width: int, means_something: bool) -> list[Line]:
    before, after, unit = latency_pair(timing.before_us, timing.after_us)
    latency = f"{before} → {after} {unit}"
    speedup, interval = "", ""
    if means_something:
        middle, low, high = ratio_triple(timing.speedup, timing.speedup_low, timing.speedup_high)
        speedup, interval = f"{middle}×", f"{low}–{high}× ({percent(timing.confidence)} CI)"
    if width < 90:
        lines = wrap(timing.shape, "plain", width, first=line(" "), indent=1)
        return [
            *lines,
            clip(line("   ", latency, ("  " + speedup, "strong"), ("  " + interval, "dim")), width),
        ]
    shape_room = width - 65
    return [
        (
            Span(" "),
            *cell(timing.shape, "plain", shape_room),
            *cell(latency, "plain", 24, right=True),
            *cell(speedup, "strong", 10, right=True),
            *cell("  " + interval, "dim", 29),
        )
    ]

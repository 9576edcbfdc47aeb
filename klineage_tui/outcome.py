"""How a suggestion stands, in one word, and its gain: measured, or only expected, never mixed up."""

from __future__ import annotations

from daemon.protocol import SuggestionView, TimingView, VerdictView
from klineage_tui.paint import Line, Tone, line
from klineage_tui.units import ratio_triple

MEASURED = ("faster", "tie", "slower")
"""Verdicts whose ratio means something; a wrong or suspicious kernel has no speedup."""

_TONES: dict[str, Tone] = {
    "faster": "good",
    "tie": "plain",
    "slower": "warn",
    "noisy": "warn",
    "unmeasured": "dim",
    "ungateable": "warn",
}


def word(suggestion: SuggestionView) -> tuple[str, Tone]:
    """Stage and verdict as a word that needs no colour to be understood."""
    verdict = suggestion.verdict
    match suggestion.stage:
        case "screening" | "confirming" as stage:
            return stage, "accent"
        case "screened" | "confirmed" if verdict is not None:
            status = verdict.status.replace("_", " ")
            if verdict.tier == "screen":
                return f"{status}, screened", "fair" if status == "faster" else tone_of(verdict)
            return f"{status}, confirmed", tone_of(verdict)
        case "blocked":
            unmet = sum(one.truth == "unmet" for one in suggestion.conditions)
            unknown = sum(one.truth == "unknown" for one in suggestion.conditions)
            parts = [f"{unmet} unmet"] * bool(unmet) + [f"{unknown} unknown"] * bool(unknown)
            return ", ".join(parts) or "blocked", "warn" if not unmet else "dim"
        case "manual":
            return "needs a rewriter", "dim"
        case "applied":
            return "applied", "accent"
    return suggestion.stage, "dim"


def tone_of(verdict: VerdictView) -> Tone:
    """Calm for what may be, loud for what must not."""
    return _TONES.get(verdict.status, "bad")


def headline(suggestion: SuggestionView) -> TimingView | None:
    """The timing shown first: that of the first declared shape, if its ratio means something."""
    verdict = suggestion.verdict
    if verdict is None or verdict.status not in MEASURED or not verdict.timings:
        return None
    return verdict.timings[0]


def gain(suggestion: SuggestionView) -> tuple[Line, Line]:
    """The gain column and the interval column: `12.0×` and `11.8–12.4`; a dash where nothing is measured."""
    timing = headline(suggestion)
    if timing is None:
        return line(("—", "dim")), ()
    middle, low, high = ratio_triple(timing.speedup, timing.speedup_low, timing.speedup_high)
    tone = tone_of(suggestion.verdict) if suggestion.verdict else "plain"
    if suggestion.verdict and suggestion.verdict.tier == "screen" and tone == "good":
        tone = "fair"
    return line((f"{middle}×", tone)), line((f"{low}–{high}", "dim"))


def expected(suggestion: SuggestionView) -> str:
    """What evidence leads to expect, as long as nothing was measured on this kernel; else empty."""
    verdict = suggestion.verdict
    return suggestion.expected if verdict is None or verdict.status == "unmeasured" else ""

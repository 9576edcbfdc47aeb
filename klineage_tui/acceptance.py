"""Whether the accept key may apply a suggestion, and if not, why, in one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from daemon.protocol import SuggestionView
from klineage_tui.units import count


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What pressing accept does now."""

    does: Literal["apply", "confirm then apply", "explain"]
    says: str


def acceptance(suggestion: SuggestionView, *, trusted: bool) -> Acceptance:
    """Apply on a confirmed `faster`; confirm first on a screened one; explain anything else.

    The daemon decides again, against the file as it is then.
    """
    name, verdict = suggestion.skill, suggestion.verdict
    if verdict is not None and verdict.status == "faster":
        if suggestion.stage == "confirmed":
            return Acceptance("apply", f"Applying {name}…")
        if suggestion.stage == "screened" and trusted:
            says = (
                f"Confirming {name} first, since it was only screened; it goes in if still faster…"
            )
            return Acceptance("confirm then apply", says)
        if suggestion.stage == "screened":
            return Acceptance("explain", _untrusted(name))
    return Acceptance("explain", _why_not(suggestion, trusted))


def _why_not(suggestion: SuggestionView, trusted: bool) -> str:
    name, verdict = suggestion.skill, suggestion.verdict
    match suggestion.stage:
        case "queued":
            return (
                f"{name} is not measured yet; it waits for the gate."
                if trusted
                else _untrusted(name)
            )
        case "screening" | "confirming" as stage:
            return f"{name} is still {stage}; wait for its verdict."
        case "blocked":
            unmet = sum(one.truth != "met" for one in suggestion.conditions)
            return f"{name} does not apply: {count(unmet, 'precondition')} not met."
        case "manual":
            return f"{name} has no patch: {suggestion.reason or 'its carrier needs a rewriter'}."
        case "rejected":
            return f"{name} was rejected: {suggestion.reason or 'no reason given'}."
        case "applied":
            return f"{name} is applied already; undo takes it back."
    if verdict is None:
        return f"{name} has no verdict yet; re-gate it."
    status = verdict.status.replace("_", " ")
    return f"{name} is {status}, not faster: {verdict.message or suggestion.reason}"


def _untrusted(name: str) -> str:
    return f"{name} cannot be measured: this worktree is not trusted, so nothing is run."

"""The two bottom lines: what was last said with what runs now, and the keys valid here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from daemon.protocol import JobView
from klineage_tui.actions import BY_NAME, keys_of
from klineage_tui.paint import Line, Span, Tone, between, clip, fit, line, width_of
from klineage_tui.state import Link, QueueState

_LEVELS: dict[str, tuple[str, Tone]] = {
    "info": ("", "plain"),
    "warning": ("warning: ", "warn"),
    "error": ("error: ", "bad"),
}


def message(state: QueueState, overrides: Mapping[str, str], width: int) -> Line:
    """The newest line said, or how to get the daemon back; at the right, the running job."""
    said = _said(state, overrides)
    room = max(width // 3, width - width_of(said) - 2)
    return between(said, clip(_job(state), room), width)


def _said(state: QueueState, overrides: Mapping[str, str]) -> Line:
    if state.link is Link.CONNECTING:
        return line((" Connecting to the daemon…", "dim"))
    if state.link in (Link.GONE, Link.STOPPED):
        happened = "is gone" if state.link is Link.GONE else "stopped"
        detail = f" ({state.link_detail})" if state.link_detail else ""
        key = keys_of(BY_NAME["reconnect"], overrides)[0]
        says = f" The daemon {happened}{detail}. {key} starts it; what is shown may be old."
        return line((says, "bad"))
    if state.said is None:
        return ()
    prefix, tone = _LEVELS[state.said.level]
    return line(" ", (prefix, tone), (state.said.text, tone))


def _job(state: QueueState) -> Line:
    running: JobView | None = next((job for job in state.jobs if job.state == "running"), None)
    if running is None:
        return ()
    suggestion = state.suggestion(running.suggestion)
    name = suggestion.skill if suggestion else running.suggestion
    step = f" · {running.step}" if running.step else ""
    return line((f"{running.tier} {name}{step} ", "accent"))


def keys(offered: Sequence[tuple[str, str]], width: int) -> Line:
    """Keys with their labels; those that do not fit are left out whole, help never is."""
    helped = [pair for pair in offered if pair[1] == "help"]
    others = [pair for pair in offered if pair[1] != "help"]
    tail = tuple(span for pair in helped for span in _key(*pair))
    shown: Line = (Span(" "),)
    for pair in others:
        part = _key(*pair)
        if width_of(shown) + width_of(part) + width_of(tail) > width:
            continue
        shown = (*shown, *part)
    return fit((*shown, *tail), width)


def _key(key: str, label: str) -> Line:
    return line((key, "key"), (f" {label}  ", "dim"))

"""The top line: worktree, platform, gate, watching, daemon."""

from __future__ import annotations

from pathlib import PurePath

from daemon.protocol import JobView, StatusView
from klineage_tui.paint import Line, Span, Tone, between, line, width_of
from klineage_tui.state import Link, QueueState

_LINK_TONES: dict[Link, Tone] = {
    Link.LIVE: "good",
    Link.CONNECTING: "dim",
    Link.GONE: "bad",
    Link.STOPPED: "warn",
}
_GAP = Span("   ")


def header(state: QueueState, width: int) -> Line:
    """As many facts as fit, the least needed left out first; the daemon's state always shows."""
    status = state.status
    name = PurePath(state.root).name
    left = [line((" klineage", "heading")), line((name, "strong"))]
    if status is not None:
        left += [line((text, tone)) for text, tone in _hardware(status) if text]
    right = [_watching(state), _gate(state), _daemon(state)]
    for drop_left, drop_right in ((0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2)):
        shown_left = _joined(left[: max(1, len(left) - drop_left)])
        shown_right = (*_joined([part for part in right[drop_right:] if part]), Span(" "))
        if width_of(shown_left) + width_of(shown_right) + 2 <= width:
            break
    return between(shown_left, shown_right, width)


def _hardware(status: StatusView) -> list[tuple[str, Tone]]:
    return [(status.platform, "plain"), (status.device, "dim")]


def _joined(parts: list[Line]) -> Line:
    joined: Line = ()
    for part in parts:
        joined = (*joined, _GAP, *part) if joined else part
    return joined


def _gate(state: QueueState) -> Line:
    if state.status is None:
        return ()
    running = [job for job in state.jobs if job.state == "running"]
    queued = len(state.jobs) - len(running)
    if running:
        waiting = f", {queued} queued" if queued else ""
        return line(("gate ", "dim"), (f"{_doing(running[0])}{waiting}", "accent"))
    if queued:
        return line(("gate ", "dim"), (f"{queued} queued", "plain"))
    if not state.status.trusted:
        return line(("gate ", "dim"), ("off: untrusted", "warn"))
    return line(("gate ", "dim"), ("idle", "plain"))


def _doing(job: JobView) -> str:
    return {"screen": "screening", "confirm": "confirming", "admit": "admitting"}[job.tier]


def _watching(state: QueueState) -> Line:
    if state.status is None:
        return ()
    how = state.status.watching
    tone: Tone = "warn" if how.startswith(("paused", "degraded")) else "plain"
    return line(("watch ", "dim"), (how, tone))


def _daemon(state: QueueState) -> Line:
    return line(("daemon ", "dim"), (state.link.value, _LINK_TONES[state.link]))

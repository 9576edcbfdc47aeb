"""Daemon: what it is, what it watches, what it is doing."""

from __future__ import annotations

from daemon.protocol import HelloReply, StatusView
from klineage_tui.paint import BLANK, Line, Span, Tone, cell, line, wrap
from klineage_tui.pane import Drawn
from klineage_tui.selection import View
from klineage_tui.units import duration

_LABEL = 14


def daemon(view: View, width: int) -> Drawn:
    """Its status as last heard, its jobs and its warnings."""
    status = view.queue.status
    if status is None:
        return Drawn([line((" No status yet.", "dim"))])
    lines = [
        row for label, text in _facts(status, view.queue.hello) for row in _row(label, text, width)
    ]
    lines += [BLANK, line((" JOBS", "heading"))]
    for job in view.queue.jobs:
        suggestion = view.queue.suggestion(job.suggestion)
        name = suggestion.skill if suggestion else job.suggestion
        lines += _row(job.state, f"{job.tier} {name}{' · ' + job.step if job.step else ''}", width)
    if not view.queue.jobs:
        lines.append(line((" none", "dim")))
    if status.warnings:
        lines += [BLANK, line((" WARNINGS", "heading"))]
        for warning in status.warnings:
            lines += wrap(warning, "warn", width, first=line(" "), indent=1)
    return Drawn(lines, title=view.queue.link.value)


def _facts(status: StatusView, hello: HelloReply | None) -> list[tuple[str, str]]:
    facts = [
        ("worktree", status.root),
        ("trusted", "yes: its kernels are run" if status.trusted else "no: nothing of it is run"),
        ("platform", f"{status.platform}, {status.device}"),
        ("watching", f"{status.watching}; {status.files} files, {status.kernels} kernels"),
        ("skills", str(status.skills)),
        (
            "process",
            f"{status.pid}, version {status.version}, up {duration(status.uptime_s)} when asked",
        ),
        ("clients", str(status.clients)),
    ]
    if hello is not None:
        facts.append(("interpreter", hello.interpreter))
    return facts


def _row(label: str, text: str, width: int, tone: Tone = "plain") -> list[Line]:
    first: Line = (Span(" "), *cell(label, "dim", _LABEL))
    return wrap(text, tone, width, first=first, indent=_LABEL + 1)

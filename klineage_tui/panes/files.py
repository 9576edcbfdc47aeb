"""FILES: each watched file, its kernels, and how much of their state is known."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath

from daemon.protocol import FileView, KernelView
from klineage_tui.paint import Line, Span, Tone, cell, fit, line, wrap
from klineage_tui.pane import Drawn
from klineage_tui.selection import View
from klineage_tui.state import Link
from klineage_tui.units import count

_COLUMNS = (("has", 4), ("lacks", 6), ("?", 3), ("fits", 5))
"""Features a kernel has, lacks, may have; skills that fit it. With the cells of each."""
_UNFIT = ("blocked", "manual", "rejected")
_NUMBERS = sum(cells for _, cells in _COLUMNS)


def files(view: View, width: int) -> Drawn:
    """A row for each file and kernel, with how many features it has, and skills that fit it."""
    queue = view.queue
    if not queue.files:
        return Drawn(_nothing(view, width))
    lines: list[Line] = []
    keys: list[str] = []
    # Counted from what SKILLS shows: files are not told again when a trace makes a condition known.
    fitting = Counter(one.kernel for one in queue.suggestions if one.stage not in _UNFIT)
    for file in queue.files:
        rows = _file(file, changed=file.path == queue.saved, width=width)
        lines += rows
        keys += [file.path] * len(rows)
        for kernel in file.kernels:
            lines.append(_kernel(kernel, fitting[kernel.id], width))
            keys.append(kernel.id)
    following = "picked" if view.at.place_picked else "following saves"
    title = f"{count(len(queue.kernels()), 'kernel')} · {following}"
    return Drawn(lines, keys, view.at.place, head=(_head(width),), title=title)


def _nothing(view: View, width: int) -> list[Line]:
    if view.queue.link is Link.CONNECTING:
        return [line((" Reading the worktree…", "dim"))]
    text = "No kernel found. Save one that the watch patterns of klineage.toml match."
    return wrap(text, "dim", width, first=line(" "), indent=1)


def _head(width: int) -> Line:
    numbers = (cell(word, "dim", cells, right=True) for word, cells in _COLUMNS)
    return (*cell(" kernel", "dim", width - _NUMBERS), *(s for one in numbers for s in one))


def _file(file: FileView, *, changed: bool, width: int) -> list[Line]:
    path = PurePosixPath(file.path)
    folder = "" if str(path.parent) == "." else f"{path.parent}/"
    mark = line((" saved", "accent")) if changed else ()
    # The name matters more than where it lies, so the folder is what gives way.
    room = width - 1 - len(path.name) - sum(len(span.text) for span in mark)
    if len(folder) > room:
        folder = "…" + folder[-(room - 1) :] if room > 1 else ""
    rows: list[Line] = [fit(line(" ", (folder, "dim"), (path.name, "strong"), *mark), width)]
    for problem in file.problems:
        rows += wrap(problem, "bad", width, first=line(("   ! ", "bad")), indent=5)
    return rows


def _kernel(kernel: KernelView, fitting: int, width: int) -> Line:
    counts = Counter(feature.presence for feature in kernel.features)
    values = (counts["present"], counts["absent"], counts["unknown"], fitting)
    tones: tuple[Tone, ...] = ("plain", "plain", "plain", "good")
    name = fit(line("   ", kernel.entry), width - _NUMBERS - 1)
    numbers = (
        _number(value, tone, cells)
        for value, tone, (_, cells) in zip(values, tones, _COLUMNS, strict=True)
    )
    return (*name, Span(" "), *(span for one in numbers for span in one))


def _number(value: int, tone: Tone, cells: int) -> Line:
    return cell(str(value) if value else "·", tone if value else "dim", cells, right=True)

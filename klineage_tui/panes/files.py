"""FILES: each watched file, its kernels, and how much of their state is known."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath

from daemon.protocol import FileView, KernelView
from klineage_tui.paint import Line, Span, cell, fit, line, wrap
from klineage_tui.pane import Drawn
from klineage_tui.selection import View
from klineage_tui.state import Link
from klineage_tui.units import count

_NUMBERS = 4


def files(view: View, width: int) -> Drawn:
    """A row for each file and kernel; columns are present, absent and unknown features, and fitting skills."""
    queue = view.queue
    if not queue.files:
        return Drawn(_nothing(view, width))
    lines: list[Line] = []
    keys: list[str] = []
    for file in queue.files:
        rows = _file(file, changed=file.path == queue.saved, width=width)
        lines += rows
        keys += [file.path] * len(rows)
        for kernel in file.kernels:
            lines.append(_kernel(kernel, width))
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
    numbers = (cell(word, "dim", _NUMBERS, right=True) for word in ("pres", "abs", "unk", "fit"))
    return (*cell(" kernel", "dim", width - 4 * _NUMBERS), *(s for one in numbers for s in one))


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


def _kernel(kernel: KernelView, width: int) -> Line:
    counts = Counter(feature.presence for feature in kernel.features)
    name = fit(line("   ", kernel.entry), width - 4 * _NUMBERS - 1)
    return (
        *name,
        Span(" "),
        *_number(counts["present"]),
        *_number(counts["absent"]),
        *_number(counts["unknown"]),
        *cell(str(kernel.applicable), "good" if kernel.applicable else "dim", _NUMBERS, right=True),
    )


def _number(value: int) -> Line:
    return cell(str(value) if value else "·", "plain" if value else "dim", _NUMBERS, right=True)

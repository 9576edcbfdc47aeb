"""A candidate as a patch that `patch -p1` and `git apply` take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import unified_diff

from daemon.protocol import FileDiff

_NO_NEWLINE = "\\ No newline at end of file\n"


def patch_text(diffs: Iterable[FileDiff]) -> str:
    """Unified diff with three lines of context, paths under `a/` and `b/`."""
    return "".join(line for diff in diffs for line in _file(diff))


def _file(diff: FileDiff) -> Iterator[str]:
    # Split at newlines alone: form feeds and the like are part of a line to patch and git.
    before, after = _lines(diff.before), _lines(diff.after)
    for line in unified_diff(before, after, f"a/{diff.path}", f"b/{diff.path}"):
        yield line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"


def _lines(text: str) -> list[str]:
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [
        last for last in text.split("\n")[-1:] if last
    ]

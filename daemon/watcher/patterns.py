"""Which paths of a worktree are watched: include and exclude globs, and folders never entered."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator

NEVER_ENTERED = frozenset(
    {
        ".git", ".hg", ".svn", ".jj", ".klineage",
        "__pycache__", ".venv", "venv", "node_modules", "site-packages",
        "build", "_build", "dist", "_skbuild",
        ".tox", ".nox", ".eggs", ".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis",
    }
)  # fmt: skip
"""Folders of history, environments and build products, by name."""

NEVER_ENTERED_GLOBS = ("cmake-build-*", "bazel-*", "*.egg-info")

OWN_PREFIX = ".klineage-"
"""Names of our temporary files start with this; the watcher never reports one."""


def translate(pattern: str) -> str:
    """The regular expression that full-matches what the glob `pattern` does.

    `**` stands for any number of whole path components, `*` and `?` stay within one, `[...]` is a
    set. A pattern without a slash matches the name in any folder; one that ends in a slash
    matches all that is below that folder.
    """
    if pattern.endswith("/"):
        pattern += "**"
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    parts = pattern.removeprefix("./").lstrip("/").split("/")
    out = ""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            out += ".+" if last else "(?:[^/]+/)*"
        else:
            out += _component(part) + ("" if last else "/")
    return out


def _component(part: str) -> str:
    out = ""
    position = 0
    while position < len(part):
        char = part[position]
        position += 1
        closing = _set_end(part, position) if char == "[" else -1
        if char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif closing >= 0:
            out += _set(part[position:closing])
            position = closing + 1
        else:
            out += re.escape(char)
    return out


def _set_end(part: str, start: int) -> int:
    """Where the set that opens before `start` closes; -1 if it does not, then `[` is a letter.

    A `]` right at the start, or after the `!`, belongs to the set.
    """
    start += part[start : start + 1] in ("!", "^")
    return part.find("]", start + 1)


def _set(members: str) -> str:
    negated = members[0] in "!^"
    rest = members[negated:]
    out = ""
    while rest:
        is_range = rest[1:2] == "-" and len(rest) > 2
        first, last = rest[0], rest[2 if is_range else 0]
        rest = rest[3 if is_range else 1 :]
        if first <= last:  # a range that runs backwards holds nothing
            out += f"{re.escape(first)}-{re.escape(last)}"
    if negated:
        return f"[^/{out}]"
    return f"[{out}]" if out else "(?!)"


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    alternatives = [translate(pattern) for pattern in patterns]
    # No pattern at all matches nothing; an empty alternation would match the empty path.
    return re.compile("|".join(alternatives) if alternatives else r"(?!)")


class PathFilter:
    """Decides over relative paths with forward slashes; touches no disk."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str] = ()) -> None:
        include = tuple(include)
        self._include = _any_of(include)
        self._exclude = _any_of(exclude)
        self._named = frozenset(
            folder for pattern in include for folder in _literal_folders(pattern)
        )

    def includes(self, path: str) -> bool:
        """Whether the file at `path` is wanted, given that its folders are entered."""
        name = path.rpartition("/")[2]
        return (
            self._include.fullmatch(path) is not None
            and self._exclude.fullmatch(path) is None
            and not name.startswith(OWN_PREFIX)
        )

    def enters(self, folder: str) -> bool:
        """Whether `folder` is looked into, given that its parents are.

        A folder that is never entered by its name is entered after all when an include pattern
        spells it out: `build/generated/*.cl`.
        """
        if self._exclude.fullmatch(folder) is not None or self._exclude.fullmatch(f"{folder}/_"):
            return False
        name = folder.rpartition("/")[2]
        ignored = name in NEVER_ENTERED or any(
            fnmatch.fnmatchcase(name, glob) for glob in NEVER_ENTERED_GLOBS
        )
        return not ignored or folder in self._named

    def enters_all(self, folder: str) -> bool:
        """Whether `folder` and every folder above it is entered."""
        return all(self.enters(part) for part in (*folders_of(folder), folder))

    def holds(self, path: str) -> bool:
        """Whether the file at `path` is wanted and lies in entered folders only."""
        return self.includes(path) and all(self.enters(folder) for folder in folders_of(path))


def folders_of(path: str) -> Iterator[str]:
    """The folders above `path`, outermost first: `a/b/c.cl` gives `a`, `a/b`."""
    position = path.find("/")
    while position >= 0:
        yield path[:position]
        position = path.find("/", position + 1)


def _literal_folders(pattern: str) -> Iterator[str]:
    """Folders that `pattern` spells out before its first wildcard."""
    for folder in folders_of(pattern):
        if any(char in folder for char in "*?["):
            return
        yield folder

"""Every action a key can start: the one table behind bindings, footer, help, palette and [keys].

A name here is what `[keys]` in klineage.toml overrides. Keys are plain letters where possible:
ctrl+enter, ctrl+i, ctrl+j, ctrl+m, ctrl+h and ctrl+[ do not arrive as themselves in every terminal,
and ctrl+b belongs to tmux.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding

Scope = Literal["queue", "evidence", "history", "daemon", "pane", "diff"]
"""A screen, or the kind of pane that has the focus."""

SCREENS: tuple[Scope, ...] = ("queue", "evidence", "history", "daemon")


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a key does."""

    name: str
    keys: str
    """Default keys, comma-separated, the one shown first."""
    label: str
    """For the footer."""
    help: str
    where: tuple[Scope, ...]
    footer: int = 0
    """Place in the footer, 1 first; 0 is not shown there."""
    target: str = "app"
    """Whose `action_<name>` runs: the app's, or that of the screen or pane it is bound on."""

    def call(self) -> str:
        return f"app.{self.name}" if self.target == "app" else self.name


_SELECTED: tuple[Scope, ...] = ("queue", "evidence")

ACTIONS: tuple[Action, ...] = (
    Action(
        "accept",
        "a",
        "accept",
        "Apply the selected suggestion; confirms a screened one first",
        _SELECTED,
        1,
    ),
    Action(
        "reject",
        "x",
        "reject",
        "Reject the selected suggestion, with a reason that is kept",
        _SELECTED,
        2,
    ),
    Action(
        "undo", "u", "undo", "Undo the newest change, or the one selected in history", SCREENS, 3
    ),
    Action(
        "redo",
        "U,ctrl+r",
        "redo",
        "Redo the newest undone change, or the one selected in history",
        SCREENS,
        12,
    ),
    Action(
        "regate",
        "r",
        "re-gate",
        "Measure the selected suggestion again, at tier confirm",
        _SELECTED,
        4,
    ),
    Action("toggle_split", "v", "split", "Diff side by side, or as one column", ("queue",), 5),
    Action(
        "toggle_wrap",
        "w",
        "wrap",
        "Wrap long lines in the diff, or clip them with a mark",
        ("queue",),
        6,
    ),
    Action("yank", "y", "yank", "Send the patch to the terminal's clipboard", _SELECTED, 10),
    Action("save_patch", "Y", "save patch", "Write the patch to a file", _SELECTED),
    Action("filter", "slash", "filter", "Show only skills with these words", ("queue",), 7),
    Action("clear_filter", "escape", "clear filter", "Show every skill again", ("queue",)),
    Action(
        "follow",
        "f",
        "follow",
        "Follow saves again, and the first rank: undoes picking a file or a skill",
        ("queue",),
        11,
    ),
    Action("pause", "p", "pause", "Pause or resume watching files", SCREENS, 9),
    Action("trust", "T", "trust", "Decide whether this worktree's kernels may be run", SCREENS),
    Action("reconnect", "R", "start daemon", "Start the daemon, or connect to it again", SCREENS),
    Action("queue", "1", "queue", "Files, skills, diff and conditions", SCREENS),
    Action(
        "evidence",
        "2",
        "evidence",
        "Checks, timings of every shape and log of the selected suggestion",
        SCREENS,
        8,
    ),
    Action("history", "4", "history", "Changes applied, undone and rejected", SCREENS, 8),
    Action("daemon", "5", "daemon", "What the daemon is doing", SCREENS, 13),
    Action("to_queue", "escape", "back", "Back to the queue", ("evidence", "history", "daemon"), 7),
    Action("palette", "ctrl+p", "commands", "Find an action or a theme by name", SCREENS),
    Action("help", "question_mark", "help", "The keys that are valid here", SCREENS, 20),
    Action("leave", "q", "quit", "Leave the window; the daemon stays", SCREENS, 14),
    Action("stop_daemon", "Q", "stop daemon", "Stop the daemon, after a question", SCREENS),
    Action("next_pane", "tab", "next pane", "Next pane", ("queue",), target="screen"),
    Action(
        "previous_pane", "shift+tab", "previous pane", "Previous pane", ("queue",), target="screen"
    ),
    Action(
        "zoom",
        "z",
        "zoom",
        "Give the focused pane the whole window, or give it back",
        ("queue",),
        target="screen",
    ),
    Action("down", "j,down", "down", "Down", ("pane",), target="pane"),
    Action("up", "k,up", "up", "Up", ("pane",), target="pane"),
    Action("first", "g,home", "first", "First line", ("pane",), target="pane"),
    Action("last", "G,end", "last", "Last line", ("pane",), target="pane"),
    Action("page_down", "pagedown,ctrl+d", "page down", "One page down", ("pane",), target="pane"),
    Action("page_up", "pageup,ctrl+u", "page up", "One page up", ("pane",), target="pane"),
    Action(
        "open",
        "enter",
        "open",
        "Open: a kernel's skills, a skill's diff, a diff's evidence",
        ("pane",),
        target="pane",
    ),
    Action("left", "h,left", "left", "Scroll the code left", ("diff",), target="pane"),
    Action("right", "l,right", "right", "Scroll the code right", ("diff",), target="pane"),
    Action("next_hunk", "n", "next hunk", "Next hunk", ("diff",), target="pane"),
    Action("previous_hunk", "N", "previous hunk", "Previous hunk", ("diff",), target="pane"),
)

BY_NAME = {action.name: action for action in ACTIONS}

_KEY_SIGNS = {
    "question_mark": "?",
    "slash": "/",
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


def bindings(*scopes: Scope) -> list[Binding]:
    """Textual bindings of every action valid in one of `scopes`; the id is what a keymap overrides."""
    return [
        Binding(action.keys, action.call(), action.label, show=False, id=action.name)
        for action in ACTIONS
        if not set(scopes).isdisjoint(action.where)
    ]


def keys_of(action: Action, overrides: Mapping[str, str]) -> tuple[str, ...]:
    """The keys that start `action` now, as people write them: `?`, `ctrl+p`."""
    keys = overrides.get(action.name) or action.keys
    return tuple(_KEY_SIGNS.get(key.strip(), key.strip()) for key in keys.split(","))


def footer(scope: Scope, overrides: Mapping[str, str]) -> list[tuple[str, str]]:
    """Key and label of the actions the footer of a screen offers, most wanted first."""
    offered = [a for a in ACTIONS if a.footer and scope in a.where and a.name != scope]
    offered.sort(key=lambda action: action.footer)
    return [(keys_of(action, overrides)[0], action.label) for action in offered]


def checked_overrides(keys: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The overrides whose action exists, and one line for each that does not or that takes a key in use."""
    known = {name: key for name, key in keys.items() if name in BY_NAME}
    problems = [_unknown(name) for name in keys if name not in BY_NAME]
    for name, key in known.items():
        for other in ACTIONS:
            if other.name != name and _clash(BY_NAME[name], key, other, known):
                problems.append(f"[keys] {name} = {key!r} is also the key of {other.name}")
    return known, problems


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, BY_NAME, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"[keys] has no action {name!r}{hint}"


def _clash(action: Action, key: str, other: Action, known: Mapping[str, str]) -> bool:
    if set(action.where).isdisjoint(other.where):
        return False
    return not set(_split(key)).isdisjoint(_split(known.get(other.name) or other.keys))


def _split(keys: str) -> Iterable[str]:
    return (key.strip() for key in keys.split(","))

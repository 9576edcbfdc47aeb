"""The table of actions: keys that arrive everywhere, no clash, and something behind every key."""

from __future__ import annotations

import itertools

import pytest

from klineage_tui.actions import ACTIONS, SCREENS, Scope, bindings, checked_overrides, footer
from klineage_tui.app import Window
from klineage_tui.bursts import QUIET_S, Bursts
from klineage_tui.diff.view import DiffView
from klineage_tui.paint import text_of
from klineage_tui.pane import Pane
from klineage_tui.panes.footer import keys
from klineage_tui.screens.queue import QueueScreen

UNRELIABLE = {
    "ctrl+enter",
    "ctrl+i",
    "ctrl+j",
    "ctrl+m",
    "ctrl+h",
    "ctrl+b",
    "ctrl+left_square_bracket",
}


@pytest.mark.parametrize("scope", SCREENS)
def test_no_key_means_two_things_where_it_is_valid(scope: Scope) -> None:
    scopes = {scope, "pane", "diff"}
    valid = [action for action in ACTIONS if not scopes.isdisjoint(action.where)]
    for one, other in itertools.combinations(valid, 2):
        assert set(one.keys.split(",")).isdisjoint(other.keys.split(",")), (one.name, other.name)


def test_every_key_arrives_in_every_terminal() -> None:
    assert UNRELIABLE.isdisjoint(key for action in ACTIONS for key in action.keys.split(","))


def test_every_action_is_implemented_by_whom_it_names() -> None:
    owners = {"app": (Window,), "screen": (QueueScreen,), "pane": (Pane, DiffView)}
    for action in ACTIONS:
        assert any(hasattr(owner, f"action_{action.name}") for owner in owners[action.target]), (
            action.name
        )


@pytest.mark.parametrize("scope", SCREENS)
def test_the_footer_offers_only_keys_that_are_bound_there(scope: Scope) -> None:
    bound = {binding.description for binding in bindings(scope)}
    assert {label for _key, label in footer(scope, {})} <= bound


@pytest.mark.parametrize("width", [20, 60, 80, 120, 200])
def test_the_footer_drops_whole_keys_and_never_help(width: int) -> None:
    shown = text_of(keys(footer("queue", {}), width))
    assert len(shown) == width
    assert "? help" in shown
    assert "…" not in shown


def test_overrides_name_unknown_actions_and_clashes() -> None:
    known, problems = checked_overrides({"accept": "x", "undoo": "b"})
    assert known == {"accept": "x"}
    assert problems == [
        "[keys] has no action 'undoo'; did you mean undo?",
        "[keys] accept = 'x' is also the key of reject",
    ]


def test_a_key_counts_alone_only_with_quiet_on_both_sides() -> None:
    bursts = Bursts()
    first = bursts.key(0.0)
    assert bursts.alone(first)
    second = bursts.key(QUIET_S / 2)
    assert not bursts.alone(first)
    assert not bursts.alone(second)
    third = bursts.key(1.0)
    assert bursts.alone(third)

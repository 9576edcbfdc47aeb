"""The command palette's entries: every action of the table that is valid on the screen."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any

from textual.command import DiscoveryHit, Hit, Hits, Provider

from klineage_tui.actions import ACTIONS, Action
from klineage_tui.screens.page import Page


class Actions(Provider):
    """Offers actions that are not mere movement."""

    def _valid(self) -> list[Action]:
        page = self.screen
        if not isinstance(page, Page):
            return []
        return [
            a
            for a in ACTIONS
            if a.target != "pane" and page.SCOPE in a.where and a.name != "palette"
        ]

    async def discover(self) -> Hits:
        for action in self._valid():
            yield DiscoveryHit(action.label, self._runner(action), help=action.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action in self._valid():
            text = f"{action.label}: {action.help}"
            if (score := matcher.match(text)) > 0:
                yield Hit(score, matcher.highlight(text), self._runner(action))

    def _runner(self, action: Action) -> partial[Coroutine[Any, Any, bool]]:
        return partial(self.app.run_action, action.call(), self.screen)

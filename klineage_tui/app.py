"""The window: joins session, selection and screens. It draws before it connects."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from textual.app import SystemCommand
from textual.message import Message
from textual.screen import Screen

from daemon.errors import RpcError
from daemon.protocol import FileDiff
from klineage_tui import later, preferences
from klineage_tui.actions import checked_overrides
from klineage_tui.asking import Asking
from klineage_tui.diff.document import Document, document
from klineage_tui.diff.view import DiffView
from klineage_tui.pane import Pane
from klineage_tui.requests import Requests
from klineage_tui.screens.page import Page
from klineage_tui.screens.prompts import Ask
from klineage_tui.screens.queue import QueueScreen
from klineage_tui.selection import Selection, View, settle
from klineage_tui.session import RETRY_S, Connect, Session
from klineage_tui.state import Link, QueueState
from klineage_tui.themes import THEMES

DOCUMENTS_KEPT = 32
"""Aligned diffs, so that moving up and down a list draws at once."""


class StateChanged(Message):
    """The session has a new state; a newer one stands for an older one still waiting."""

    def __init__(self, state: QueueState) -> None:
        super().__init__()
        self.state = state

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, StateChanged)


class Window(Asking):
    """The application of `klineage-tui`, on one worktree."""

    TITLE = "klineage"
    CSS_PATH = "window.tcss"
    MODES: ClassVar[dict[str, Any]] = {
        "queue": QueueScreen,
        "evidence": later.evidence_screen,
        "history": later.history_screen,
        "daemon": later.daemon_screen,
    }
    DEFAULT_MODE = "queue"
    COMMANDS: ClassVar[set[Any]] = {*Asking.COMMANDS, later.commands}
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        root: Path,
        connect: Connect,
        *,
        looks: Path | None = None,
        retry_s: float = RETRY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`looks` is the file that remembers theme and diff modes."""
        super().__init__(clock)
        self.session = Session(str(root), connect, self._changed, retry_s=retry_s)
        self.requests = Requests(self.session)
        self.view = View(self.session.state, Selection())
        self.overrides: dict[str, str] = {}
        self._looks_file = looks or preferences.preferences_file()
        self._looks = preferences.load(self._looks_file)
        self._trust_asked = False
        self._documents: dict[str, tuple[tuple[FileDiff, ...], Document]] = {}
        for theme in THEMES:
            self.register_theme(theme)
        known = self._looks.theme in self.available_themes
        self.theme = self._looks.theme if known else THEMES[0].name
        self.add_class("-no-color" if self.no_color else "-color")

    def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, lambda theme: self._keep(theme=theme.name))
        self.call_after_refresh(self._drawn)

    def _drawn(self) -> None:
        """The first picture is on the screen; connecting imports the client and may start a daemon."""
        gc.enable()
        self.start(self.session.run, "session")

    def _changed(self, state: QueueState) -> None:
        self.post_message(StateChanged(state))

    def on_state_changed(self, message: StateChanged) -> None:
        before, state = self.view.queue, message.state
        at = settle(self.view.at, before, state)
        if at.place != self.view.at.place != "":
            self.moved()
        self.view = View(state, at)
        if state.keys != before.keys:
            self._bind(state.keys)
        self.draw()
        self._load_diff()
        untrusted = state.status is not None and not state.status.trusted
        if untrusted and state.link is Link.LIVE and not self._trust_asked:
            self._trust_asked = True
            self.ask_trust()

    def _bind(self, keys: dict[str, str]) -> None:
        self.overrides, problems = checked_overrides(keys)
        self.set_keymap(self.overrides)
        for problem in problems:
            self.session.say(problem, "warning")

    def draw(self) -> None:
        """Show the view on every page of the stack; prompts stay as they are."""
        for screen in self.screen_stack:
            if isinstance(screen, Page) and screen.is_mounted:
                screen.show(self.view, self.overrides)

    def on_page_ready(self) -> None:
        self.draw()
        self._load_diff()

    def select(self, **changes: Any) -> None:
        """Move the selection, and settle what depends on it."""
        at = replace(self.view.at, **changes)
        self.view = View(self.view.queue, settle(at, self.view.queue, self.view.queue))
        self.draw()
        self._load_diff()

    def on_pane_picked(self, message: Pane.Picked) -> None:
        match message.pane.id:
            case "files":
                self.select(place=message.key, place_picked=True, suggestion_picked=False)
            case "skills":
                self.select(suggestion=message.key, suggestion_picked=True)
            case _:
                self.select(entry=int(message.key))

    def on_pane_opened(self, message: Pane.Opened) -> None:
        queue = self.screen
        if isinstance(queue, QueueScreen):
            if message.pane.id in ("files", "state"):
                queue.focus_pane("skills")
            elif message.pane.id == "skills":
                queue.focus_pane("diff")
            else:
                self.action_evidence()

    def on_diff_view_opened(self, message: DiffView.Opened) -> None:
        self.action_evidence()

    def _load_diff(self) -> None:
        self.start(self._show_diff, "diff", exclusive=True)

    async def _show_diff(self) -> None:
        suggestion = self.view.suggestion()
        if suggestion is None:
            self._draw_diff(None, "")
            return
        if not suggestion.files:
            self._draw_diff(None, f"No patch: {suggestion.reason or suggestion.stage}")
            return
        try:
            files = await self.session.diff(suggestion.id)
        except (RpcError, OSError) as refusal:
            self._draw_diff(None, f"No diff: {refusal}")
            return
        self._draw_diff(await self._document(suggestion.id, files), "")

    async def _document(self, suggestion: str, files: tuple[FileDiff, ...]) -> Document:
        known = self._documents.get(suggestion)
        if known is None or known[0] is not files:
            # A thread, because aligning and lexing a big file takes longer than a frame.
            known = files, await asyncio.to_thread(document, files)
            if len(self._documents) >= DOCUMENTS_KEPT:
                self._documents.clear()
            self._documents[suggestion] = known
        return known[1]

    def _draw_diff(self, shown: Document | None, said: str) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, QueueScreen):
                screen.show_diff(shown, said)
                screen.set_diff_modes(split=self._looks.split, wrap=self._looks.wrap)

    def _keep(self, **changes: Any) -> None:
        self._looks = msgspec.structs.replace(self._looks, **changes)
        try:
            preferences.save(self._looks_file, self._looks)
        except OSError as failure:
            self.session.say(
                f"cannot remember looks in {self._looks_file}: {failure.strerror}", "warning"
            )

    def action_toggle_split(self) -> None:
        self._keep(split=not self._looks.split)
        self._load_diff()

    def action_toggle_wrap(self) -> None:
        self._keep(wrap=not self._looks.wrap)
        self._load_diff()

    def action_filter(self) -> None:
        before = self.view.at.filter

        def answered(text: str | None) -> None:
            self.select(filter=before if text is None else text)

        prompt = Ask(
            "FILTER",
            "Words of a skill, kernel, intent or status:",
            before,
            required=False,
            on_typing=lambda text: self.select(filter=text),
        )
        self.push_screen(prompt, answered)

    def action_clear_filter(self) -> None:
        self.select(filter="")

    def action_follow(self) -> None:
        self.select(place_picked=False, suggestion_picked=False)

    def action_queue(self) -> None:
        self.switch_mode("queue")

    def action_to_queue(self) -> None:
        self.switch_mode("queue")

    def action_evidence(self) -> None:
        self.switch_mode("evidence")

    def action_history(self) -> None:
        self.switch_mode("history")

    def action_daemon(self) -> None:
        self.switch_mode("daemon")

    def action_help(self) -> None:
        if isinstance(self.screen, Page):
            self.push_screen(later.help_screen(self.screen.SCOPE, self.overrides))

    def action_palette(self) -> None:
        self.action_command_palette()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Only the choice of theme: the rest of Textual's would double ours."""
        yield SystemCommand(
            "theme", "Choose colours; the choice is remembered", self.action_change_theme
        )

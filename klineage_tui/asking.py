"""Actions that ask something of the daemon or the person: accept, reject, undo, yank, trust, stop."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import ParamSpec

from textual import events
from textual.app import App

from daemon.errors import RpcError
from daemon.protocol import EntryView, SuggestionView
from klineage_tui.bursts import QUIET_S, Bursts
from klineage_tui.diff.patch import patch_text
from klineage_tui.patch_file import clipboard_note, patch_name, write_patch
from klineage_tui.requests import Requests
from klineage_tui.screens.prompts import Ask, Choice
from klineage_tui.selection import View
from klineage_tui.session import Session
from klineage_tui.trust import trust_text

P = ParamSpec("P")

SEEN_S = 0.5
"""Sooner than this nobody reacts to what they see."""


class Asking(App[None]):
    """What was selected when the key was pressed is what is acted on, whatever arrives meanwhile."""

    view: View
    session: Session
    requests: Requests

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._bursts = Bursts()
        self._key = 0
        self._moved_s = float("-inf")

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded:
            self._key = self._bursts.key(self._clock())
        await super().on_event(event)

    def when_alone(self, act: Callable[[], object]) -> None:
        """Run `act` shortly, unless the key that asked for it was part of a burst."""
        key = self._key

        def decide() -> None:
            if self._bursts.alone(key):
                act()
            else:
                self.session.say("Ignored: that key came in a burst, as from a paste.", "warning")

        self.set_timer(QUIET_S, decide)

    def moved(self) -> None:
        """The selection went to another kernel by itself; a key on its way was not meant for it."""
        self._moved_s = self._clock()

    def _aimed(self) -> SuggestionView | None:
        """The selected suggestion, if the person can have seen that it is the selected one."""
        if self._clock() - self._moved_s < SEEN_S:
            self.session.say("Ignored: the selection had just moved to what was saved.", "warning")
            return None
        suggestion = self.view.suggestion()
        if suggestion is None:
            self.session.say("No suggestion is selected.", "warning")
        return suggestion

    def start(
        self, work: Callable[[], Awaitable[None]], group: str, *, exclusive: bool = False
    ) -> None:
        """Run `work` beside the window, until it ends or the window closes."""
        # Handed over uncalled: a window that closes first must not leave a coroutine never awaited.
        self.run_worker(work, group=group, exclusive=exclusive)

    def _ask_daemon(
        self, request: Callable[P, Awaitable[None]], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        self.start(partial(request, *args, **kwargs), "requests")

    def action_accept(self) -> None:
        if suggestion := self._aimed():
            self.when_alone(lambda: self._ask_daemon(self.requests.accept, suggestion))

    def action_regate(self) -> None:
        if suggestion := self._aimed():
            self.when_alone(lambda: self._ask_daemon(self.requests.regate, suggestion))

    def action_reject(self) -> None:
        if suggestion := self._aimed():
            self.when_alone(lambda: self._ask_reason(suggestion))

    def _ask_reason(self, suggestion: SuggestionView) -> None:
        def answered(reason: str | None) -> None:
            if reason:
                self._ask_daemon(self.requests.reject, suggestion, reason)

        text = f"Why is {suggestion.skill} wrong for this kernel? The reason is kept with it."
        self.push_screen(Ask("REJECT", text), answered)

    def action_undo(self) -> None:
        entry = self._picked_entry()
        if entry is not None and not entry.undoable:
            self.session.say(f"{entry.skill}, {entry.kind}, cannot be undone now.", "warning")
            return
        number = entry.id if entry else 0
        self.when_alone(lambda: self._ask_daemon(self.requests.undo, number))

    def action_redo(self) -> None:
        entry = self._picked_entry()
        if entry is not None and entry.kind != "undone":
            self.session.say(
                f"{entry.skill} is {entry.kind}; only what is undone can be redone.", "warning"
            )
            return
        number = entry.id if entry else 0
        self.when_alone(lambda: self._ask_daemon(self.requests.redo, number))

    def _picked_entry(self) -> EntryView | None:
        """The selected entry on the history screen; None elsewhere, which means the newest."""
        if self.current_mode != "history":
            return None
        return next((e for e in self.view.queue.history if e.id == self.view.at.entry), None)

    def action_pause(self) -> None:
        self.when_alone(lambda: self._ask_daemon(self.requests.pause))

    def action_trust(self) -> None:
        self.when_alone(self.ask_trust)

    def ask_trust(self) -> None:
        """Ask whether this worktree's kernels may be run; escape leaves it as it is."""

        def answered(key: str | None) -> None:
            if key is not None:
                self._ask_daemon(self.requests.trust, key == "y")

        answers = {"y": "trust and run", "n": "do not run", "esc": "decide later"}
        text = trust_text(self.view.queue)
        self.push_screen(Choice("TRUST THIS WORKTREE?", text, answers), answered)

    def action_stop_daemon(self) -> None:
        def answered(key: str | None) -> None:
            if key is not None:
                self._ask_daemon(self.requests.stop_daemon, key == "d")

        text = "Stop the daemon of this worktree? What was applied stays, and can be undone later."
        answers = {"y": "stop now", "d": "finish the running job first", "esc": "keep it"}
        self.when_alone(
            lambda: self.push_screen(Choice("STOP THE DAEMON?", text, answers), answered)
        )

    def action_reconnect(self) -> None:
        self.session.wake()

    def action_leave(self) -> None:
        self.when_alone(self.exit)

    def action_yank(self) -> None:
        if suggestion := self._aimed():
            self._ask_daemon(self._yank, suggestion)

    async def _yank(self, suggestion: SuggestionView) -> None:
        patch = await self._patch(suggestion)
        if patch is not None:
            self.copy_to_clipboard(patch)
            self.session.say(*clipboard_note(patch))

    def action_save_patch(self) -> None:
        if suggestion := self._aimed():
            self.when_alone(lambda: self._ask_file(suggestion))

    def _ask_file(self, suggestion: SuggestionView) -> None:
        def answered(path: str | None) -> None:
            if path:
                self._ask_daemon(self._save, suggestion, Path(path).expanduser().absolute())

        text = "Write the patch to a new file:"
        self.push_screen(Ask("SAVE PATCH", text, patch_name(suggestion.skill)), answered)

    async def _save(self, suggestion: SuggestionView, path: Path) -> None:
        patch = await self._patch(suggestion)
        if patch is None:
            return
        try:
            self.session.say(write_patch(path, patch))
        except FileExistsError:
            self.session.say(f"{path.name} exists; save the patch under another name.", "error")
        except OSError as failure:
            self.session.say(f"cannot write {path}: {failure.strerror}", "error")

    async def _patch(self, suggestion: SuggestionView) -> str | None:
        if not suggestion.files:
            why = suggestion.reason or suggestion.stage
            self.session.say(f"{suggestion.skill} has no patch: {why}", "warning")
            return None
        try:
            return patch_text(await self.session.diff(suggestion.id))
        except (RpcError, OSError) as refusal:
            self.session.say(f"diff: {refusal}", "error")
            return None

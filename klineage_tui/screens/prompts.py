"""Questions over a screen. While one is open its keys are its own; nothing reaches the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class Guard(Protocol):
    """The app's side: runs an action only if its key was pressed alone."""

    def when_alone(self, act: Callable[[], object]) -> None: ...


class Choice(ModalScreen[str | None]):
    """A question answered by one key of `answers` (key → label); escape answers None."""

    BINDINGS: ClassVar[list[Any]] = [Binding("escape", "refuse", show=False)]

    def __init__(self, title: str, text: str, answers: dict[str, str]) -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._answers = answers
        for key in answers:
            self._bindings.bind(key, f"answer({key!r})")

    def compose(self) -> ComposeResult:
        offered = "   ".join(f"{key}  {label}" for key, label in self._answers.items())
        with Vertical(id="prompt") as box:
            box.border_title = self._title
            yield Static(self._text, id="prompt-text", markup=False)
            yield Static(offered, id="prompt-keys", markup=False)

    def action_answer(self, key: str) -> None:
        cast("Guard", self.app).when_alone(lambda: self._answer(key))

    def _answer(self, key: str | None) -> None:
        if self.is_current:
            self.dismiss(key)

    def action_refuse(self) -> None:
        self._answer(None)


class Ask(ModalScreen[str | None]):
    """A line of text; enter gives it, escape gives None. `on_typing` hears it while it is typed."""

    BINDINGS: ClassVar[list[Any]] = [Binding("escape", "refuse", show=False)]

    def __init__(
        self,
        title: str,
        text: str,
        initial: str = "",
        *,
        required: bool = True,
        on_typing: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(classes="ask")
        self._title = title
        self._text = text
        self._initial = initial
        self._required = required
        self._on_typing = on_typing

    def compose(self) -> ComposeResult:
        with Vertical(id="prompt") as box:
            box.border_title = self._title
            yield Static(self._text, id="prompt-text", markup=False)
            yield Input(self._initial, compact=True, select_on_focus=False)
            yield Static("enter  accept   esc  cancel", id="prompt-keys", markup=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._on_typing is not None:
            self._on_typing(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip() or not self._required:
            self.dismiss(event.value.strip())

    def action_refuse(self) -> None:
        self.dismiss(None)

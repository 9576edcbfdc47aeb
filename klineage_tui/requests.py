"""What the person asks of the daemon: each request says what it does, then how it ended."""

from __future__ import annotations

from uuid import uuid4

from daemon.errors import RpcError
from daemon.protocol import (
    Applied,
    Apply,
    Gate,
    Gated,
    Redo,
    Reject,
    Shutdown,
    SuggestionView,
    Trust,
    Undo,
    Watch,
    Wire,
)
from klineage_tui.acceptance import acceptance
from klineage_tui.session import Session


class Requests:
    """Never raises for what a daemon can answer: a refusal is one line for the person."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._busy: set[str] = set()
        """Suggestions with a request under way, so that a second press does not send another."""

    async def accept(self, suggestion: SuggestionView) -> None:
        """Apply it, confirm and apply it, or say why neither."""
        status = self._session.state.status
        decided = acceptance(suggestion, trusted=status is not None and status.trusted)
        if decided.does == "explain":
            self._session.say(decided.says, "warning")
            return
        if suggestion.id in self._busy:
            self._session.say(f"{suggestion.skill} is being worked on already.")
            return
        confirm = decided.does == "confirm then apply"
        params = Apply(suggestion=suggestion.id, confirm=confirm, key=uuid4().hex)
        reply = await self._ask("apply", params, decided.says, suggestion.id)
        if isinstance(reply, Applied):
            self._session.say(_and(reply.message, "undo takes it back"))

    async def regate(self, suggestion: SuggestionView) -> None:
        """Measure it again at tier confirm."""
        if suggestion.id in self._busy:
            self._session.say(f"{suggestion.skill} is being worked on already.")
            return
        says = f"Confirming {suggestion.skill}…"
        reply = await self._ask("gate", Gate(suggestion=suggestion.id), says, suggestion.id)
        if isinstance(reply, Gated):
            status = reply.verdict.status.replace("_", " ")
            self._session.say(f"{suggestion.skill}: {status}. {reply.verdict.message}")

    async def reject(self, suggestion: SuggestionView, reason: str) -> None:
        params = Reject(suggestion=suggestion.id, reason=reason)
        if await self._ask("reject", params):
            self._session.say(f"Rejected {suggestion.skill}: {reason}")

    async def undo(self, entry: int) -> None:
        """Undo history entry `entry`; 0 for the newest applied."""
        reply = await self._ask("undo", Undo(entry=entry))
        if isinstance(reply, Applied):
            self._session.say(_and(reply.message, "redo applies it again"))

    async def redo(self, entry: int) -> None:
        """Redo history entry `entry`; 0 for the newest undone."""
        reply = await self._ask("redo", Redo(entry=entry))
        if isinstance(reply, Applied):
            self._session.say(_and(reply.message, "undo takes it back"))

    async def pause(self) -> None:
        """Pause watching, or resume it if it is paused."""
        status = self._session.state.status
        paused = status is not None and status.watching == "paused"
        if await self._ask("watch", Watch(action="resume" if paused else "pause")):
            says = (
                "Watching files again."
                if paused
                else "Paused: saves are not looked at until watching is resumed."
            )
            self._session.say(says)

    async def trust(self, trusted: bool) -> None:
        if await self._ask("trust", Trust(trusted=trusted)):
            says = "Trusted: kernels of this worktree are compiled and run here."
            if not trusted:
                says = "Not trusted: states and conditions are shown, nothing is run. The trust action asks again."
            self._session.say(says)

    async def stop_daemon(self, drain: bool) -> None:
        """Stop the daemon; `drain` lets the running job finish first."""
        await self._ask("shutdown", Shutdown(drain=drain), "Stopping the daemon…")

    async def _ask(self, method: str, params: Wire, says: str = "", busy: str = "") -> Wire | None:
        """The result, or None after saying why there is none."""
        if says:
            self._session.say(says)
        self._busy.add(busy)
        try:
            reply: Wire = await self._session.call(method, params)
        except (RpcError, OSError) as refusal:
            self._session.say(f"{method}: {refusal}", "error")
            return None
        finally:
            self._busy.discard(busy)
        return reply


def _and(message: str, hint: str) -> str:
    return f"{message.rstrip('.')}; {hint}"

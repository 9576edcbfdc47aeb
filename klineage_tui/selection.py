"""Where the person is: a file or kernel, a suggestion, a filter. Pure, and kept across saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from daemon.protocol import FileView, KernelView, SuggestionView
from klineage_tui.outcome import word
from klineage_tui.state import QueueState


@dataclass(frozen=True, slots=True)
class Selection:
    """What is selected; empty strings where nothing is."""

    place: str = ""
    """A file's path, or a kernel's id."""
    place_picked: bool = False
    """The person chose it; otherwise it follows what is saved."""
    suggestion: str = ""
    suggestion_picked: bool = False
    """The person chose it; otherwise it is the first one shown."""
    entry: int = 0
    """History entry."""
    filter: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """The state and where the person is in it: all that screens draw from."""

    queue: QueueState
    at: Selection

    def file(self) -> FileView | None:
        for file in self.queue.files:
            if file.path == self.at.place or any(k.id == self.at.place for k in file.kernels):
                return file
        return None

    def kernel(self) -> KernelView | None:
        """The selected kernel; on a file that has just one, that one."""
        if kernel := self.queue.kernel(self.at.place):
            return kernel
        file = self.file()
        return file.kernels[0] if file and len(file.kernels) == 1 else None

    def offered(self) -> tuple[SuggestionView, ...]:
        """Suggestions of the selected file or kernel, before the filter."""
        return tuple(
            one for one in self.queue.suggestions if self.at.place in (one.kernel, one.path)
        )

    def shown(self) -> tuple[SuggestionView, ...]:
        """Suggestions in the skills pane."""
        return tuple(one for one in self.offered() if matches(one, self.at.filter))

    def suggestion(self) -> SuggestionView | None:
        return self.queue.suggestion(self.at.suggestion)


def matches(suggestion: SuggestionView, wanted: str) -> bool:
    """Every word of `wanted` is somewhere in the skill, kernel, intent or status word."""
    text = " ".join(
        (suggestion.skill, suggestion.kernel, suggestion.intent, word(suggestion)[0])
    ).casefold()
    return all(part in text for part in wanted.casefold().split())


def settle(at: Selection, before: QueueState, now: QueueState) -> Selection:
    """The selection moved to what exists in `now`.

    What the person did not pick follows: the place to what was saved last, the suggestion to the
    first rank. What they picked stays. A save gives every suggestion of a kernel a new id, so the
    same skill on the same kernel counts as the same row; failing that, the row that took its place.
    """
    at = _settled_place(at, now)
    shown = View(now, at).shown()
    suggestion = _settled_suggestion(at, before, shown)
    return replace(at, suggestion=suggestion, entry=_settled_entry(at, before, now))


def _settled_place(at: Selection, now: QueueState) -> Selection:
    kernels = now.kernels()
    places = {file.path for file in now.files} | {kernel.id for kernel in kernels}
    path = at.place.partition("::")[0]
    if at.place in places and (at.place_picked or now.saved in ("", path)):
        return at
    if at.place_picked and path in places:
        return replace(at, place=path)
    best = sorted(kernels, key=lambda one: (one.path != now.saved, -one.applicable, one.id))
    place = best[0].id if best else min(places, default="")
    return at if place == at.place else replace(at, place=place, suggestion_picked=False)


def _settled_entry(at: Selection, before: QueueState, now: QueueState) -> int:
    """The newest entry as long as the newest is selected; else the one that is."""
    newest = now.history[0].id if now.history else 0
    was_newest = bool(before.history) and at.entry == before.history[0].id
    if was_newest and before.history != now.history:
        return newest
    return at.entry if any(one.id == at.entry for one in now.history) else newest


def _settled_suggestion(at: Selection, before: QueueState, shown: Sequence[SuggestionView]) -> str:
    if not shown:
        return ""
    if not at.suggestion_picked:
        return shown[0].id
    if any(one.id == at.suggestion for one in shown):
        return at.suggestion
    old = before.suggestion(at.suggestion)
    if old is None:
        return shown[0].id
    same = [one for one in shown if (one.kernel, one.skill) == (old.kernel, old.skill)]
    if same:
        # A skill may fit at several lines, and a save may have moved them.
        return min(same, key=lambda one: abs(one.line - old.line)).id
    rows = View(before, at).shown()
    position = next((index for index, one in enumerate(rows) if one.id == old.id), 0)
    return shown[min(position, len(shown) - 1)].id

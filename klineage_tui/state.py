"""What the window knows, frozen; and how one notice changes it.

`QueueState` is a snapshot plus every notice since. Reducing is pure: the same snapshot and notices
give the same state, so a window that reopens shows what the closed one showed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from daemon.protocol import (
    Closing,
    EntryView,
    FileChanged,
    FileView,
    HelloReply,
    HistoryChanged,
    JobProgress,
    JobView,
    KernelView,
    Message,
    Snapshot,
    StatusChanged,
    StatusView,
    SuggestionChanged,
    SuggestionsChanged,
    SuggestionView,
    Wire,
)


class Link(StrEnum):
    """How the window stands to the daemon."""

    CONNECTING = "connecting"
    LIVE = "ok"
    GONE = "gone"
    """Lost or never reached; the window keeps trying."""
    STOPPED = "stopped"
    """It said that it was closing."""


@dataclass(frozen=True, slots=True)
class Said:
    """A line for the person, and how much it matters."""

    text: str
    level: str = "info"
    """`info`, `warning` or `error`."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """All a window shows, as of notice `seq`."""

    root: str = ""
    """Worktree the window was opened on."""
    seq: int = 0
    link: Link = Link.CONNECTING
    link_detail: str = ""
    hello: HelloReply | None = None
    """Who answers; None before the first connection."""
    status: StatusView | None = None
    files: tuple[FileView, ...] = ()
    """By path."""
    suggestions: tuple[SuggestionView, ...] = ()
    """By kernel as in `files`, then by rank."""
    history: tuple[EntryView, ...] = ()
    """Newest first."""
    jobs: tuple[JobView, ...] = ()
    """Queued and running ones."""
    keys: dict[str, str] = field(default_factory=dict)
    said: Said | None = None
    """The newest line for people."""
    saved: str = ""
    """Path of the newest file that changed."""

    def kernels(self) -> tuple[KernelView, ...]:
        return tuple(kernel for file in self.files for kernel in file.kernels)

    def kernel(self, kernel_id: str) -> KernelView | None:
        return next((kernel for kernel in self.kernels() if kernel.id == kernel_id), None)

    def suggestion(self, suggestion_id: str) -> SuggestionView | None:
        return next((one for one in self.suggestions if one.id == suggestion_id), None)


def from_snapshot(state: QueueState, snapshot: Snapshot) -> QueueState:
    """The snapshot's state; what was last said and saved stays."""
    return replace(
        state,
        seq=snapshot.seq,
        link=Link.LIVE,
        link_detail="",
        status=snapshot.status,
        files=_by_path(snapshot.files),
        suggestions=_ranked(snapshot.suggestions),
        history=_newest_first(snapshot.history),
        jobs=_unfinished(snapshot.status.jobs),
        keys=snapshot.keys,
    )


def reduce(state: QueueState, notice: Wire) -> QueueState:
    """The state after `notice`; itself if the notice is not newer than it."""
    seq = getattr(notice, "seq", 0)
    if seq <= state.seq:
        return state
    return replace(_apply(state, notice), seq=seq)


def _apply(state: QueueState, notice: Wire) -> QueueState:
    match notice:
        case FileChanged(file=file, gone=gone):
            return _with_file(state, file, gone)
        case SuggestionsChanged(kernel=kernel, suggestions=suggestions):
            others = (one for one in state.suggestions if one.kernel != kernel)
            return replace(state, suggestions=_ranked((*others, *suggestions)))
        case SuggestionChanged(suggestion=suggestion):
            others = (one for one in state.suggestions if one.id != suggestion.id)
            return replace(state, suggestions=_ranked((*others, suggestion)))
        case JobProgress(job=job):
            return replace(state, jobs=_with_job(state.jobs, job))
        case HistoryChanged(entry=entry):
            return replace(state, history=with_entry(state.history, entry))
        case StatusChanged(status=status):
            return with_status(state, status)
        case Message(level=level, text=text):
            return replace(state, said=Said(text, level))
        case Closing(reason=reason):
            return replace(state, link=Link.STOPPED, link_detail=reason, jobs=())
    return state


def with_status(state: QueueState, status: StatusView) -> QueueState:
    """`state` with a status that a live daemon just gave."""
    jobs = _unfinished(status.jobs)
    return replace(state, link=Link.LIVE, link_detail="", status=status, jobs=jobs)


def with_entry(history: tuple[EntryView, ...], entry: EntryView) -> tuple[EntryView, ...]:
    """`history` with `entry` added, or put in the place of the one with its id."""
    return _newest_first((entry, *(one for one in history if one.id != entry.id)))


def _with_file(state: QueueState, file: FileView, gone: bool) -> QueueState:
    others = tuple(one for one in state.files if one.path != file.path)
    files = others if gone else _by_path((*others, file))
    kept = {kernel.id for one in files for kernel in one.kernels}
    return replace(
        state,
        files=files,
        suggestions=tuple(one for one in state.suggestions if one.kernel in kept),
        saved="" if gone else file.path,
    )


def _with_job(jobs: tuple[JobView, ...], job: JobView) -> tuple[JobView, ...]:
    if any(one.id == job.id for one in jobs):
        jobs = tuple(job if one.id == job.id else one for one in jobs)
    else:
        jobs = (*jobs, job)
    return _unfinished(jobs)


def _unfinished(jobs: Iterable[JobView]) -> tuple[JobView, ...]:
    return tuple(job for job in jobs if job.state in ("queued", "running"))


def _by_path(files: Iterable[FileView]) -> tuple[FileView, ...]:
    return tuple(sorted(files, key=lambda file: file.path))


def _ranked(suggestions: Iterable[SuggestionView]) -> tuple[SuggestionView, ...]:
    return tuple(sorted(suggestions, key=lambda one: (one.path, one.kernel, one.rank, one.id)))


def _newest_first(entries: Iterable[EntryView]) -> tuple[EntryView, ...]:
    return tuple(sorted(entries, key=lambda entry: -entry.id))

"""Publisher: every change of the board told to the clients, in the protocol's words."""

from __future__ import annotations

import logging

from daemon.loop.board import Board, Suggestion
from daemon.loop.gate_queue import Job
from daemon.loop.views import entry_view, file_view, job_view, suggestion_view, suggestion_views
from daemon.notices import Notices
from daemon.protocol import FileView
from daemon.transaction import Change

log = logging.getLogger(__name__)


class Publisher:
    """What the loop says aloud."""

    def __init__(self, notices: Notices, board: Board) -> None:
        self._notices = notices
        self._board = board

    def file(self, path: str) -> None:
        """A file's content changed."""
        view = file_view(self._board.files[path], self._board)
        self._notices.publish("file.changed", file=view)

    def file_gone(self, path: str) -> None:
        """A file is no longer there, or no longer watched."""
        self._notices.publish("file.changed", file=FileView(path=path), gone=True)

    def kernel(self, id: str) -> None:
        """A kernel's whole, ranked set of suggestions."""
        views = suggestion_views(self._board.kernels[id])
        self._notices.publish("suggestions.changed", kernel=id, suggestions=views)

    def kernel_gone(self, id: str) -> None:
        """A kernel has no suggestions any more."""
        self._notices.publish("suggestions.changed", kernel=id, suggestions=())

    def suggestion(self, suggestion: Suggestion) -> None:
        """One suggestion moved on."""
        state = self._board.kernels[suggestion.kernel]
        self._notices.publish("suggestion.changed", suggestion=suggestion_view(suggestion, state))

    def job(self, job: Job) -> None:
        """A job's state or step."""
        self._notices.publish("job.progress", job=job_view(job))

    def change(self, change: Change) -> None:
        """An entry of history."""
        self._notices.publish("history.changed", entry=entry_view(change))

    def message(self, level: str, text: str) -> None:
        """One line for people, and for the log."""
        log.log(
            {"info": logging.INFO, "warning": logging.WARNING}.get(level, logging.ERROR), "%s", text
        )
        self._notices.publish("message", level=level, text=text)

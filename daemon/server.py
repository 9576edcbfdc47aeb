"""Server: the socket of one daemon, its clients, and their end."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from daemon.connection import Connection, Handler
from daemon.notices import Notices
from daemon.peer import is_other_user, peer_uid
from daemon.protocol import Hello, HelloReply
from daemon.stream import READ_LIMIT_BYTES

log = logging.getLogger(__name__)

GRACE_S = 5.0
"""How long requests that do not merely wait may go on after the daemon was told to stop."""


class Server:
    """Answers clients of this user on a Unix socket.

    `handlers` answer methods (`hello` and `subscribe` are the server's own); `hello` makes the
    answer to an accepted client; `presence` is held while a client is connected.
    """

    def __init__(
        self,
        root: Path,
        path: Path,
        handlers: Mapping[str, Handler],
        hello: Callable[[Hello], HelloReply],
        notices: Notices,
        *,
        presence: Callable[[], AbstractContextManager[None]] = nullcontext,
        owner: int | None = None,
    ) -> None:
        """`owner`: user id whose processes may connect; None for this process's."""
        self._root = root
        self._path = path
        self._handlers = handlers
        self._hello = hello
        self._notices = notices
        self._presence = presence
        self._owner = owner
        self._connections: dict[asyncio.Task[None], Connection] = {}
        self._requests: set[asyncio.Task[None]] = set()

    @property
    def clients(self) -> int:
        """Open connections."""
        return len(self._connections)

    async def serve(self, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
        """Listen until `stop`; then let requests end (GRACE_S) and notifications be sent.

        The caller holds the Instance of this worktree: a socket that is there already was left by
        a daemon that died, and is removed. `ready` is called once clients can connect. Publish
        `closing` before setting `stop`, and clients are told why.
        """
        async with asyncio.TaskGroup() as tasks:
            listener = await asyncio.start_unix_server(
                lambda reader, writer: self._accept(reader, writer, tasks),
                sock=bind(self._path),
                limit=READ_LIMIT_BYTES,
            )
            try:
                log.info("serving %s on %s", self._root, self._path)
                ready()
                await stop.wait()
            finally:
                listener.close()
                self._path.unlink(missing_ok=True)
            await self._end()

    def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tasks: asyncio.TaskGroup
    ) -> None:
        connected = writer.get_extra_info("socket")
        if is_other_user(connected, self._owner):
            log.warning("refused a connection of user %s", peer_uid(connected))
            writer.transport.abort()
            return
        connection = Connection(
            reader,
            writer,
            self._handlers,
            self._hello,
            self._notices,
            self._presence,
            tasks,
            self._requests,
        )
        task = tasks.create_task(self._serve(connection), name="connection")
        self._connections[task] = connection
        task.add_done_callback(self._connections.pop)

    async def _serve(self, connection: Connection) -> None:
        try:
            await connection.serve()
        except Exception:
            # One client's trouble is not the others'.
            log.exception("a connection failed")

    async def _end(self) -> None:
        for connection in self._connections.values():
            connection.abandon_waiting()
        if self._requests:
            _, late = await asyncio.wait(self._requests, timeout=GRACE_S)
            for task in late:
                task.cancel()
        for task in self._connections:
            task.cancel()


def bind(path: Path) -> socket.socket:
    """A socket bound to `path`, mode 0600 from its first moment; a stale one there is replaced."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The mode of a bound socket comes from the umask; chmod afterwards would leave a gap.
    before = os.umask(0o177)
    try:
        listener.bind(os.fspath(path))
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener

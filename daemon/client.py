"""Client: the daemon as the window sees it, on asyncio."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from daemon import rpc
from daemon.backlog import Backlog
from daemon.call import ConnectionLost, call_once
from daemon.handshake import hello
from daemon.peer import is_other_user
from daemon.protocol import HelloReply, Resync, Wire
from daemon.rendezvous import NoDaemon, sockets
from daemon.spawn import daemon_command, start
from daemon.stream import READ_LIMIT_BYTES, FrameWriter, read_frame

__all__ = ["Client", "ConnectionLost", "call_once"]

log = logging.getLogger(__name__)

Notice = tuple[str, Wire]

NOTICES_KEPT = 1000
"""Notifications that may wait to be taken; one more, and they become one `resync`."""

FLUSH_S = 1.0


class _OnlySeq(msgspec.Struct, frozen=True):
    seq: int = 0


class Client:
    """One connection to the daemon of a worktree. Calls may overlap; answers come as they are done.

    `hello` is what the daemon said of itself, with warnings to show.
    """

    def __init__(
        self, root: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """For `connect`, which is how to get one."""
        self.hello: HelloReply
        self._root = root
        self._reader = reader
        self._writer = FrameWriter(writer)
        self._ids = itertools.count(1)
        self._calls: dict[rpc.Id, asyncio.Future[rpc.Message]] = {}
        self._seq = 0
        self._notices: Backlog[Notice] = Backlog(
            NOTICES_KEPT, lambda: ("resync", Resync(seq=self._seq))
        )
        self._reading = asyncio.create_task(self._read(), name="daemon client")

    @classmethod
    async def connect(
        cls,
        root: Path,
        *,
        spawn: bool = True,
        command: Sequence[str] | None = None,
        name: str = "klineage-tui",
    ) -> Client:
        """Connect and shake hands; starts the daemon if none runs and `spawn`.

        `command` is what starts it, by default the installed one. Raises Unavailable if there is
        none and none can be started, VersionMismatch if it speaks another protocol.
        """
        command = command or daemon_command(root)
        try:
            return await cls._greeted(root, command, spawn, name)
        except ConnectionLost:
            # It was ending just then. Nothing was asked of it yet, so asking again is safe.
            return await cls._greeted(root, command, spawn, name)

    @classmethod
    async def _greeted(cls, root: Path, command: Sequence[str], spawn: bool, name: str) -> Client:
        client = cls(root, *await _connect(root, command, spawn))
        try:
            client.hello = await client.call("hello", hello(name, root))
        except BaseException:
            await client.close()
            raise
        return client

    async def call(self, method: str, params: Wire) -> Any:
        """The result of one method of `METHODS`, of its type.

        Raises the RpcError that the daemon answered, or ConnectionLost if it is gone.
        """
        id = next(self._ids)
        frame = rpc.write_request(id, method, params)
        if self._reading.done():
            raise self._gone(method)
        answer = self._calls[id] = asyncio.get_running_loop().create_future()
        try:
            await self._writer.send(frame)
            message = await answer
        except ConnectionError as error:
            raise self._gone(method) from error
        finally:
            del self._calls[id]
        return rpc.read_result(message, method)

    async def notices(self) -> AsyncIterator[Notice]:
        """(method, parameters) of each notification after `call("subscribe", …)`; ends with the
        connection. One that this version cannot read comes as `resync`."""
        async for notice in self._notices:
            yield notice

    async def close(self) -> None:
        """Leave; the daemon goes on."""
        self._reading.cancel()
        await asyncio.wait([self._reading])
        await self._writer.close(FLUSH_S)

    async def _read(self) -> None:
        try:
            while (frame := await read_frame(self._reader)) is not None:
                self._take(rpc.read_message(frame))
        except (rpc.FrameTooLong, msgspec.DecodeError):
            log.exception("the daemon sent what is not its protocol")
        finally:
            self._notices.close()
            for answer in self._calls.values():
                if not answer.done():
                    answer.set_exception(ConnectionResetError("closed by the daemon"))

    def _take(self, message: rpc.Message) -> None:
        if message.method:
            self._notices.put(self._notice(message))
        elif message.id is None:
            log.error("the daemon could not read a request: %s", message.error)
        elif (answer := self._calls.get(message.id)) is not None and not answer.done():
            answer.set_result(message)

    def _notice(self, message: rpc.Message) -> Notice:
        self._seq = msgspec.json.decode(message.params, type=_OnlySeq).seq
        try:
            params = rpc.read_notice(message)
        except msgspec.ValidationError as error:
            log.warning("%s of a daemon of another version: %s", message.method, error)
            params = None
        return ("resync", Resync(seq=self._seq)) if params is None else (message.method, params)

    def _gone(self, method: str) -> ConnectionLost:
        return ConnectionLost(self._root, method)


async def _connect(
    root: Path, command: Sequence[str], spawn: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if (streams := await _try(root)) is not None:
        return streams
    for pause_s in start(root, command, time.monotonic) if spawn else ():
        await asyncio.sleep(pause_s)
        if (streams := await _try(root)) is not None:
            return streams
    raise NoDaemon(root)


async def _try(root: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    for path in sockets(root):
        try:
            reader, writer = await asyncio.open_unix_connection(path, limit=READ_LIMIT_BYTES)
        except (FileNotFoundError, ConnectionRefusedError):
            continue
        if not is_other_user(writer.get_extra_info("socket")):
            return reader, writer
        writer.transport.abort()
    return None

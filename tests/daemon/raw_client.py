"""A client that sends whatever bytes a test likes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from daemon import protocol
from daemon.protocol import MAX_FRAME_BYTES, Hello
from daemon.rpc import Message, read_message, write_request
from daemon.runtime_dir import socket_path


def make_hello(protocol_version: int = protocol.PROTOCOL) -> Hello:
    return Hello(protocol_version, "test", "0.1.0", "/usr/bin/python3", "/")


class Raw:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self) -> Message:
        return read_message(await self.reader.readuntil(b"\n"))

    async def ask(self, data: bytes) -> Message:
        await self.send(data)
        return await self.receive()

    async def greet(self) -> None:
        answer = await self.ask(write_request(0, "hello", make_hello()))
        assert answer.error is None

    async def is_closed(self) -> bool:
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            # How Linux says that the other end closed without reading all.
            return True

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


async def raw(root: Path) -> Raw:
    return Raw(*await asyncio.open_unix_connection(socket_path(root), limit=MAX_FRAME_BYTES * 2))

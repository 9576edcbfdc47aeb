"""Frames over asyncio streams, for both ends."""

from __future__ import annotations

import asyncio
import logging

from daemon.protocol import MAX_FRAME_BYTES
from daemon.rpc import FrameTooLong

log = logging.getLogger(__name__)

# StreamReader.readuntil allows as many bytes as its limit before the separator.
READ_LIMIT_BYTES = MAX_FRAME_BYTES - 1


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The next line, newline included; None once the other end is gone.

    A last line without its newline was cut off and is dropped. Raises FrameTooLong for a line of
    more than MAX_FRAME_BYTES; the stream cannot be read on after that.
    """
    try:
        return await reader.readuntil(b"\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except asyncio.LimitOverrunError as error:
        raise FrameTooLong(
            f"a message of more than {MAX_FRAME_BYTES} bytes; the connection is closed"
        ) from error


class FrameWriter:
    """Writes whole frames from several tasks; waits when the other end does not read."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._turn = asyncio.Lock()

    async def send(self, frame: bytes) -> None:
        """Raises ConnectionError once the other end is gone."""
        async with self._turn:
            self._writer.write(frame)
            await self._writer.drain()

    async def close(self, flush_s: float) -> None:
        """Close the connection; the other end has `flush_s` to take what was sent."""
        self._writer.close()
        try:
            async with asyncio.timeout(flush_s):
                await self._writer.wait_closed()
        except (TimeoutError, ConnectionError) as error:
            log.debug("the other end did not take all: %s", error)
        finally:
            # Also when cancelled here; nothing is left to abort if all went out.
            self._writer.transport.abort()

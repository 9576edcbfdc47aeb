"""Messages between the gate and a worker: four bytes of length, then that much JSON.

Both sides use this file, so it needs the standard library alone.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from typing import Any

MAX_FRAME_BYTES = 32 * 1024 * 1024
"""Arrays cross in files; the largest message is a build's intermediate code."""

_LENGTH = struct.Struct(">I")


class FrameTooLong(Exception):
    """A frame announced more bytes than MAX_FRAME_BYTES: the stream cannot be trusted."""


def encode(message: Mapping[str, object]) -> bytes:
    """The frame of a message. Raises ValueError for NaN, which JSON has no word for."""
    body = json.dumps(message, allow_nan=False).encode()
    if len(body) > MAX_FRAME_BYTES:
        raise FrameTooLong(f"message of {len(body)} bytes; the limit is {MAX_FRAME_BYTES}")
    return _LENGTH.pack(len(body)) + body


class Decoder:
    """Puts frames together from whatever pieces arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies completed by `data`. Raises FrameTooLong."""
        self._buffer += data
        bodies = []
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MAX_FRAME_BYTES:
                raise FrameTooLong(f"frame of {length} bytes; the limit is {MAX_FRAME_BYTES}")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                break
            bodies.append(bytes(self._buffer[_LENGTH.size : end]))
            del self._buffer[:end]
        return bodies


def read_message(fd: int) -> dict[str, Any] | None:
    """The next message, waiting for it; None once the other side has closed."""
    head = _read_exactly(fd, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    body = _read_exactly(fd, length)
    return None if body is None else json.loads(body)


def write_frame(fd: int, frame: bytes) -> None:
    """Send a frame, waiting until the other side has room for it."""
    rest = memoryview(frame)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _read_exactly(fd: int, count: int) -> bytes | None:
    pieces = []
    while count:
        piece = os.read(fd, count)
        if not piece:
            return None
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)

"""One request over a blocking socket, for the command line: no asyncio, which takes 30 ms to load."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from daemon import rpc
from daemon.errors import Unavailable
from daemon.handshake import hello
from daemon.peer import is_other_user
from daemon.protocol import MAX_FRAME_BYTES, HelloReply, Wire
from daemon.rendezvous import NoDaemon, sockets
from daemon.spawn import daemon_command, start
from daemon.worktree import log_path

_HELLO, _REQUEST = 1, 2


def call_once(
    root: Path,
    method: str,
    params: Wire,
    *,
    spawn: bool = True,
    command: Sequence[str] | None = None,
    warn: Callable[[str], None] = lambda line: None,
    timeout_s: float | None = None,
) -> Any:
    """The result of one method of `METHODS`, of its type, from the daemon of `root`.

    Starts the daemon if none runs and `spawn`; `command` is what starts it, by default the
    installed one. `warn` gets the warnings of the handshake, one line each. `timeout_s` bounds the
    wait for the answer; None waits as long as it takes, as a gate may. Raises the RpcError that
    was answered, or Unavailable if there is no daemon to ask.
    """
    command = command or daemon_command(root)
    try:
        return _ask(root, method, params, command, spawn, warn, timeout_s)
    except ConnectionLost as error:
        if error.method != "hello":
            raise
        # It was ending just then. It answers the hello first, so it has not done what was asked.
        return _ask(root, method, params, command, spawn, warn, timeout_s)


class ConnectionLost(Unavailable):
    """The daemon closed the connection instead of answering `method`."""

    def __init__(self, root: Path, method: str) -> None:
        super().__init__(
            f"the daemon for {root} closed the connection before it answered `{method}`; its log, "
            f"{log_path(root)}, may say why"
        )
        self.method = method


def _ask(
    root: Path,
    method: str,
    params: Wire,
    command: Sequence[str],
    spawn: bool,
    warn: Callable[[str], None],
    timeout_s: float | None,
) -> Any:
    unanswered = "hello"
    with _connect(root, command, spawn) as connected:
        connected.settimeout(timeout_s)
        # Both at once: one round trip less. A daemon that refuses the hello answers only that.
        frames = rpc.write_request(_HELLO, "hello", hello("klineage", root))
        frames += rpc.write_request(_REQUEST, method, params)
        try:
            connected.sendall(frames)
            for message in _messages(connected):
                if message.id == _HELLO:
                    for line in cast(HelloReply, rpc.read_result(message, "hello")).warnings:
                        warn(line)
                    unanswered = method
                elif message.id == _REQUEST or message.error is not None:
                    return rpc.read_result(message, method)
        except TimeoutError as error:
            raise Unavailable(
                f"the daemon for {root} did not answer `{method}` within {timeout_s} s; "
                "`klineage daemon status` tells what it does"
            ) from error
        except ConnectionError as error:
            raise ConnectionLost(root, unanswered) from error
    raise ConnectionLost(root, unanswered)


def _connect(root: Path, command: Sequence[str], spawn: bool) -> socket.socket:
    if (connected := _try(root)) is not None:
        return connected
    for pause_s in start(root, command, time.monotonic) if spawn else ():
        time.sleep(pause_s)
        if (connected := _try(root)) is not None:
            return connected
    raise NoDaemon(root)


def _try(root: Path) -> socket.socket | None:
    for path in sockets(root):
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connected.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            connected.close()
            continue
        if not is_other_user(connected):
            return connected
        connected.close()
    return None


def _messages(connected: socket.socket) -> Iterator[rpc.Message]:
    with connected.makefile("rb") as lines:
        while (line := lines.readline(MAX_FRAME_BYTES)).endswith(b"\n"):
            yield rpc.read_message(line)

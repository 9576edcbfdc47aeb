"""Connection: one client on the daemon's side, from its hello to its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from daemon import rpc
from daemon.errors import Busy, RpcError
from daemon.handshake import read_hello
from daemon.notices import Notices, Subscription
from daemon.protocol import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    METHODS,
    Hello,
    HelloReply,
    Subscribe,
    Wire,
)
from daemon.stream import FrameWriter, read_frame

log = logging.getLogger(__name__)

Handler = Callable[[Any], Awaitable[Wire]]
"""Answers one method: gets its parameters' type, gives its result's, raises RpcError to refuse."""

WAITING = frozenset({"gate", "suggest"})
"""Methods that only wait for the gate: given up when their client is gone. All others finish, since
an apply cut off in its middle would leave the client not knowing."""

MAX_IN_FLIGHT = 64
"""Requests one connection may have unanswered."""

FLUSH_S = 1.0
"""How long a connection that ends may take to send what it has."""


class Connection:
    """Reads requests, answers each in a task of its own, and sends notifications."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        handlers: Mapping[str, Handler],
        hello: Callable[[Hello], HelloReply],
        notices: Notices,
        presence: Callable[[], AbstractContextManager[None]],
        tasks: asyncio.TaskGroup,
        in_flight: set[asyncio.Task[None]],
    ) -> None:
        """Requests run in `tasks` and are in `in_flight` while they do, also after the client left."""
        self._reader = reader
        self._writer = FrameWriter(writer)
        self._handlers = handlers
        self._hello = hello
        self._notices = notices
        self._presence = presence
        self._tasks = tasks
        self._in_flight = in_flight
        self._subscription: Subscription | None = None
        self._pump: asyncio.Task[None] | None = None
        self._requests: dict[asyncio.Task[None], str] = {}

    async def serve(self) -> None:
        """Until the client leaves or breaks the framing, or this is cancelled."""
        with ExitStack() as present:
            try:
                if await self._greet(present):
                    while (frame := await read_frame(self._reader)) is not None:
                        await self._accept(frame)
            except rpc.FrameTooLong as error:
                await self._fail(None, rpc.failure_of(error))
            except ConnectionError as error:
                log.debug("client gone: %s", error)
            finally:
                self.abandon_waiting()
                await self._finish()

    def abandon_waiting(self) -> None:
        """Cancel requests that only wait."""
        for task, method in self._requests.items():
            if method in WAITING:
                task.cancel()

    async def _finish(self) -> None:
        """Send what there is to send and close, in FLUSH_S; a request still at work goes on."""
        if self._subscription is not None:
            self._subscription.close()
        unsent = {*self._requests, *({self._pump} if self._pump else ())}
        try:
            if unsent:
                await asyncio.wait(unsent, timeout=FLUSH_S)
        finally:
            self._stop_pump()
            await self._writer.close(FLUSH_S)

    async def _greet(self, present: ExitStack) -> bool:
        """Answer until a hello is accepted; False if the client left or cannot be talked to."""
        while (frame := await read_frame(self._reader)) is not None:
            try:
                request = rpc.read_request(frame)
            except rpc.BadFrame as error:
                await self._fail(error.id, error.failure)
                continue
            if request.method != "hello":
                failure = rpc.Failure(
                    INVALID_REQUEST, "the first request of a connection must be `hello`"
                )
                await self._fail(request.id, failure)
                continue
            try:
                answer = self._hello(read_hello(request.params))
            except RpcError as error:
                await self._fail(request.id, rpc.failure_of(error))
                return False
            present.enter_context(self._presence())
            await self._writer.send(rpc.write_result(request.id, answer))
            return True
        return False

    async def _accept(self, frame: bytes) -> None:
        try:
            request = rpc.read_request(frame)
        except rpc.BadFrame as error:
            await self._fail(error.id, error.failure)
            return
        if len(self._requests) >= MAX_IN_FLIGHT:
            # Answered here, and not by a task: a client that does not read its answers is then
            # not read from either.
            busy = Busy(f"{MAX_IN_FLIGHT} requests of this connection wait already; let some end")
            await self._fail(request.id, rpc.failure_of(busy))
            return
        task = self._tasks.create_task(self._answer(request), name=f"request {request.method}")
        self._requests[task] = request.method
        self._in_flight.add(task)
        task.add_done_callback(self._requests.pop)
        task.add_done_callback(self._in_flight.discard)

    async def _answer(self, request: rpc.Request) -> None:
        try:
            frame = rpc.write_result(request.id, await self._result(request))
        except RpcError as error:
            frame = rpc.write_failure(request.id, rpc.failure_of(error))
        except Exception as error:
            log.exception("%s failed", request.method)
            frame = rpc.write_failure(request.id, rpc.failure_of(error))
        try:
            await self._writer.send(frame)
        except ConnectionError as error:
            log.debug("nobody reads the answer to %s: %s", request.method, error)
        if request.method == "subscribe" and self._subscription is not None:
            # Only now, so that the answer comes before what it announces.
            self._stop_pump()
            self._pump = self._tasks.create_task(self._send_notices(self._subscription))

    async def _result(self, request: rpc.Request) -> Wire:
        if request.method == "hello":
            return self._hello(read_hello(request.params))
        handler = self._handlers.get(request.method)
        if request.method == "subscribe":
            handler = self._subscribe
        if handler is None:
            error = RpcError(f"no method `{request.method}`")
            error.code = METHOD_NOT_FOUND
            raise error
        return await handler(rpc.read_params(request.params, METHODS[request.method][0]))

    async def _subscribe(self, asked: Subscribe) -> Wire:
        if self._subscription is not None:
            self._subscription.close()
        answer, self._subscription = self._notices.subscribe(asked.since)
        return answer

    def _stop_pump(self) -> None:
        # Harmless at any point: a frame is handed to the transport whole.
        if self._pump is not None:
            self._pump.cancel()

    async def _send_notices(self, subscription: Subscription) -> None:
        try:
            async for frame in subscription:
                await self._writer.send(frame)
        except ConnectionError as error:
            log.debug("client gone: %s", error)
        finally:
            subscription.close()

    async def _fail(self, id: rpc.Id | None, failure: rpc.Failure) -> None:
        await self._writer.send(rpc.write_failure(id, failure))

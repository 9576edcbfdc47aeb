"""JSON-RPC 2.0 messages and their bytes: one JSON object a line, `MAX_FRAME_BYTES` at most.

Pure: nothing here reads or writes a socket. `daemon.stream` does that for asyncio, `daemon.call`
with a blocking socket.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec

from daemon.errors import BY_CODE, RpcError
from daemon.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_FRAME_BYTES,
    METHODS,
    NOTICES,
    PARSE_ERROR,
    Wire,
)

Id = int | str

Params = TypeVar("Params", bound=msgspec.Struct)


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a client sends."""

    jsonrpc: Literal["2.0"]
    id: Id
    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """JSON-RPC's error object."""

    code: int
    message: str
    data: Any = None


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a daemon sends: an answer (`id`, and `result` or `error`), or a notification."""

    jsonrpc: Literal["2.0"]
    id: Id | None = None
    result: msgspec.Raw = msgspec.Raw(b"")
    error: Failure | None = None
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"{}")


class _OnlyId(msgspec.Struct, frozen=True):
    id: Id | None = None


class _Reply(msgspec.Struct, frozen=True):
    jsonrpc: str
    id: Id | None
    result: Any


class _ErrorReply(msgspec.Struct, frozen=True):
    jsonrpc: str
    id: Id | None
    error: Failure


class _Notification(msgspec.Struct, frozen=True):
    jsonrpc: str
    method: str
    params: Any


class BadFrame(Exception):
    """A line that is not a request; `failure` is what to answer and `id` to whom, if known."""

    def __init__(self, code: int, message: str, id: Id | None = None) -> None:
        super().__init__(message)
        self.failure = Failure(code, message)
        self.id = id


class FrameTooLong(RpcError):
    """More bytes than MAX_FRAME_BYTES, going out or coming in."""

    code = INVALID_REQUEST


_encoder = msgspec.json.Encoder()
_requests = msgspec.json.Decoder(Request)
_messages = msgspec.json.Decoder(Message)


def read_request(frame: bytes) -> Request:
    """The request in a line. Raises BadFrame with what JSON-RPC says to answer."""
    try:
        return _requests.decode(frame)
    except msgspec.ValidationError as error:
        raise BadFrame(INVALID_REQUEST, f"not a request: {error}", _id_in(frame)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrame(PARSE_ERROR, f"not JSON: {error}") from error


def read_params(raw: msgspec.Raw, kind: type[Params]) -> Params:
    """The parameters of a request. Raises RpcError(INVALID_PARAMS) that names the field."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_params(str(error)) from error


def invalid_params(what: str) -> RpcError:
    """The error for parameters that are not what the method takes."""
    error = RpcError(f"invalid parameters: {what}")
    error.code = INVALID_PARAMS
    return error


def read_message(frame: bytes) -> Message:
    """The answer or notification in a line. Raises msgspec.DecodeError if it is neither."""
    return _messages.decode(frame)


def read_result(message: Message, method: str) -> Wire:
    """The typed result of an answer to `method`. Raises the error that the daemon answered."""
    if message.error is not None:
        raise error_of(message.error)
    return msgspec.json.decode(message.result, type=METHODS[method][1])


def read_notice(message: Message) -> Wire | None:
    """The typed parameters of a notification; None for one that this client does not know."""
    kind = NOTICES.get(message.method)
    return None if kind is None else msgspec.json.decode(message.params, type=kind)


def write_request(id: Id, method: str, params: Wire) -> bytes:
    """Raises FrameTooLong."""
    return _frame({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def write_result(id: Id, result: Wire) -> bytes:
    """Raises FrameTooLong."""
    return _frame(_Reply("2.0", id, result))


def write_failure(id: Id | None, failure: Failure) -> bytes:
    """The line that answers a request with an error; `id` None if it could not be read."""
    return _frame(_ErrorReply("2.0", id, failure))


def write_notice(method: str, params: Wire | msgspec.Raw) -> bytes:
    """`params` Raw: their JSON as it was kept. Raises FrameTooLong."""
    return _frame(_Notification("2.0", method, params))


def failure_of(error: BaseException) -> Failure:
    """What to answer for an error: an RpcError's own code, anything else in one line."""
    if isinstance(error, RpcError):
        return Failure(error.code, error.message, error.data)
    first = (str(error).splitlines() or ["no message"])[0]
    return Failure(
        INTERNAL_ERROR,
        f"{type(error).__name__}: {first}; this is a fault of klineage, daemon.log has the details",
    )


def error_of(failure: Failure) -> RpcError:
    """The error a client raises for what the daemon answered."""
    error = BY_CODE.get(failure.code, RpcError)(failure.message, failure.data)
    error.code = failure.code
    return error


def _frame(message: object) -> bytes:
    frame = _encoder.encode(message) + b"\n"
    if len(frame) > MAX_FRAME_BYTES:
        raise FrameTooLong(
            f"{len(frame)} bytes in one message, the limit is {MAX_FRAME_BYTES}; ask for less at once"
        )
    return frame


def _id_in(frame: bytes) -> Id | None:
    try:
        return msgspec.json.decode(frame, type=_OnlyId).id
    except msgspec.DecodeError:
        return None

"""Errors of the daemon, each with its JSON-RPC code.

RpcError                  anything a client is told about; has `code` and `data`
├── VersionMismatch       protocol majors differ
├── Untrusted             the worktree has not been trusted yet
├── Stale                 the file or closure changed since the suggestion was made
├── NotConfirmed          there is no `faster` at tier confirm for this closure
├── NotFound              no such suggestion, kernel, skill or history entry
├── Busy                  the device or the journal is held by another process
├── Unavailable           the environment lacks something; says the command that would fix it
├── IoFailed              the file system said no: disk full, permission, read-only
└── ConfigurationError    a klineage.toml is wrong; names the file, the key and the nearest valid one
"""

from __future__ import annotations

from daemon import protocol


class RpcError(Exception):
    """A failure a client is told about, in one line: what, where, what to try."""

    code: int = protocol.INTERNAL_ERROR

    def __init__(self, message: str, data: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class VersionMismatch(RpcError):
    code = protocol.VERSION_MISMATCH


class Untrusted(RpcError):
    code = protocol.UNTRUSTED


class Stale(RpcError):
    code = protocol.STALE


class NotConfirmed(RpcError):
    code = protocol.NOT_CONFIRMED


class NotFound(RpcError):
    code = protocol.NOT_FOUND


class Busy(RpcError):
    code = protocol.BUSY


class Unavailable(RpcError):
    code = protocol.UNAVAILABLE


class IoFailed(RpcError):
    code = protocol.IO_FAILED


class ConfigurationError(RpcError):
    code = protocol.INVALID_PARAMS


BY_CODE: dict[int, type[RpcError]] = {
    kind.code: kind
    for kind in (
        VersionMismatch,
        Untrusted,
        Stale,
        NotConfirmed,
        NotFound,
        Busy,
        Unavailable,
        IoFailed,
    )
}
"""Wire code → the class a client raises."""

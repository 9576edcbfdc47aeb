"""How a failure of a verb reaches a person or a program: one line, and an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from daemon import protocol
from daemon.errors import RpcError
from gate.errors import GateError
from library.errors import LibraryError

DONE = 0
NEGATIVE = 1
USAGE = 2
ENVIRONMENT = 3

STATUS_BY_CODE = {
    protocol.UNAVAILABLE: ENVIRONMENT,
    protocol.VERSION_MISMATCH: ENVIRONMENT,
    protocol.IO_FAILED: ENVIRONMENT,
    protocol.INTERNAL_ERROR: ENVIRONMENT,
    protocol.INVALID_PARAMS: USAGE,
    protocol.METHOD_NOT_FOUND: USAGE,
    protocol.UNTRUSTED: USAGE,
}
"""JSON-RPC code → exit status; every other refusal is a negative answer."""


@dataclass(slots=True)
class Outcome:
    """What the process will exit with."""

    status: int = DONE


@contextmanager
def exit_status(json_wanted: bool) -> Iterator[Outcome]:
    """Turn an expected failure inside the block into one line and its exit status."""
    outcome = Outcome()
    try:
        with _told(outcome, json_wanted):
            yield outcome
        # Here, and not when the interpreter ends, where a broken pipe is reported as a fault.
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output went away (`klineage history | head`); nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        outcome.status = 130


@contextmanager
def _told(outcome: Outcome, json_wanted: bool) -> Iterator[None]:
    try:
        yield
    except RpcError as error:
        outcome.status = STATUS_BY_CODE.get(error.code, NEGATIVE)
        _tell(error.message, type(error).__name__, json_wanted)
    except (GateError, LibraryError) as error:
        outcome.status = ENVIRONMENT
        _tell(str(error), type(error).__name__, json_wanted)


def _tell(message: str, kind: str, json_wanted: bool) -> None:
    if json_wanted:
        print(msgspec.json.encode({"error": {"kind": kind, "message": message}}).decode())
    else:
        print(f"klineage: {message}", file=sys.stderr)

"""A worker's loop: one request, one reply, whatever the code in between does.

Standard output and error are pipes of the parent's, so a kernel or workload may print what it
likes; requests and replies have pipes of their own.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from .framing import read_message, write_message
from .problems import kind_of

Handler = Callable[[dict[str, Any]], Mapping[str, object]]

ROLES = {"oracle": "oracle", "runner": "launcher", "probe": "probe"}
"""Role → the module whose `handlers()` gives its methods."""


def serve(role: str, language: str, requests: int, replies: int) -> None:
    """Answer until the request pipe closes. A language's runtime is imported ahead of need."""
    handlers: Mapping[str, Handler] = importlib.import_module(
        f".{ROLES[role]}", __package__
    ).handlers()
    if language:
        # One that is missing is reported by the first request that needs it.
        with contextlib.suppress(ImportError):
            importlib.import_module(f".languages.{language}", __package__)
    # Ours is imported; from here on what is imported is the user's, and their tree stays clean.
    sys.dont_write_bytecode = True
    pid = os.getpid()
    while (request := read_message(requests)) is not None:
        reply = answer(handlers[request["method"]], request["params"])
        if os.getpid() != pid:
            # User code forked and the child returned into this loop: it has no part in it.
            os._exit(0)
        write_message(replies, {"id": request["id"], **reply})


def answer(handler: Handler, params: dict[str, Any]) -> dict[str, object]:
    """`{"result": …}`, or `{"error": {kind, message, log}}` for anything that was raised.

    BaseException, since a kernel's host code may call sys.exit: the process boundary is here.
    """
    try:
        return {"result": dict(handler(params))}
    except BaseException as error:
        kind = kind_of(error)
        told = "".join(traceback.format_exception(error)) if kind == "raised" else str(error)
        return {"error": {"kind": kind, "message": one_line(error), "log": told[-16_384:]}}


def one_line(error: BaseException) -> str:
    """`TypeError: …` as one line of at most 500 characters; our own kinds without their name."""
    text = " ".join(str(error).split())
    named = text if kind_of(error) != "raised" else f"{type(error).__name__}: {text}"
    return named[:500]

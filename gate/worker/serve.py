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
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from .framing import FrameTooLong, encode, read_message, write_frame
from .problems import EnvironmentProblem, kind_of

Handler = Callable[[dict[str, Any]], Mapping[str, object]]

ROLES = {"oracle": "oracle", "runner": "launcher", "probe": "probe"}
"""Role → the module whose `handlers()` gives its methods."""


def serve(role: str, language: str, requests: int, replies: int) -> None:
    """Answer until the request pipe closes. A language's runtime is imported ahead of need."""
    handlers = handlers_of(role)
    if language:
        # One that is missing is reported by the first request that needs it.
        with contextlib.suppress(ImportError):
            importlib.import_module(f".languages.{language}", __package__)
    # Ours is imported; from here on what is imported is the user's, and their tree stays clean.
    sys.dont_write_bytecode = True
    pid = os.getpid()
    while (request := read_message(requests)) is not None:
        frame = reply_to(request, handlers)
        if os.getpid() != pid:
            # User code forked and the child returned into this loop: it has no part in it.
            os._exit(0)
        write_frame(replies, frame)


def handlers_of(role: str) -> Mapping[str, Handler]:
    """The methods of a role; each a complaint if numpy is not there to import."""
    try:
        module = importlib.import_module(f".{ROLES[role]}", __package__)
    except ImportError as error:
        complaint = _missing(str(error))
        return defaultdict(lambda: complaint)
    found: Mapping[str, Handler] = module.handlers()
    return found


def _missing(what: str) -> Handler:
    def complain(params: dict[str, Any]) -> Mapping[str, object]:
        raise EnvironmentProblem(f"{sys.executable}: {what}")

    return complain


def reply_to(request: Mapping[str, Any], handlers: Mapping[str, Handler]) -> bytes:
    """The frame that answers a request."""
    reply = answer(handlers[request["method"]], request["params"])
    try:
        return encode({"id": request["id"], **reply})
    except (TypeError, ValueError, FrameTooLong) as error:
        problem = {"kind": "raised", "message": f"the reply does not encode: {error}", "log": ""}
        return encode({"id": request["id"], "error": problem})


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

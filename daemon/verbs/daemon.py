"""klineage daemon start | stop | status: the daemon of this worktree."""

from __future__ import annotations

import argparse

from daemon.call import call_once
from daemon.errors import VersionMismatch
from daemon.instance import terminate
from daemon.protocol import Empty, Ok, Shutdown, StatusView, Wire
from daemon.rendezvous import NoDaemon
from daemon.verbs import shared_options, status
from daemon.verbs.connection import ask, root_of
from daemon.verbs.failure import DONE, NEGATIVE
from daemon.verbs.output import print_json
from daemon.worktree import lock_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Three verbs of its own."""
    verbs = parser.add_subparsers(metavar="WHAT", required=True)
    start = verbs.add_parser("start", help="start it if it is not", parents=[shared_options()])
    start.set_defaults(what=_start)
    stop = verbs.add_parser("stop", help="ask it to stop", parents=[shared_options()])
    stop.add_argument("--drain", action="store_true", help="after the running job")
    stop.set_defaults(what=_stop)
    show = verbs.add_parser("status", help="show it, start nothing", parents=[shared_options()])
    show.set_defaults(what=_status)


def run(options: argparse.Namespace) -> int:
    """Dispatch to the verb that was named."""
    answer: int = options.what(options)
    return answer


def _start(options: argparse.Namespace) -> int:
    found = ask(options, "status", Empty(), StatusView)
    if options.json:
        print_json(found)
    else:
        print(f"daemon {found.pid} watches {found.root}")
    return DONE


def _stop(options: argparse.Namespace) -> int:
    try:
        answer = _ask_running(options, "shutdown", Shutdown(options.drain))
    except VersionMismatch:
        # It cannot be asked in words it understands, and whoever says stop means stop.
        terminate(lock_path(root_of(options)))
        answer = Ok("ended a daemon of another version")
    told = answer or Ok("no daemon was running")
    if options.json:
        print_json(told)
    else:
        print(told.message)
    return DONE


def _status(options: argparse.Namespace) -> int:
    if _ask_running(options, "ping", Empty()) is None:
        if options.json:
            print_json({"running": False})
        else:
            print("no daemon is running here")
        return NEGATIVE
    return status.run(options)


def _ask_running(options: argparse.Namespace, method: str, params: Wire) -> Ok | None:
    """What a daemon that runs already answers; None if none does."""
    try:
        answer = call_once(root_of(options), method, params, spawn=False)
    except NoDaemon:
        return None
    assert isinstance(answer, Ok)
    return answer

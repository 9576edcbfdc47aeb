"""klineage undo [ENTRY]: take the newest change back, to identical bytes."""

from __future__ import annotations

import argparse

from daemon.protocol import Applied, Undo
from daemon.verbs.connection import ask
from daemon.verbs.failure import DONE
from daemon.verbs.output import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which history entry."""
    parser.add_argument(
        "entry", nargs="?", type=int, default=0, help="history entry (default: the newest applied)"
    )


def run(options: argparse.Namespace) -> int:
    """Act and print what changed; 1 if the files have changed since."""
    applied = ask(options, "undo", Undo(options.entry), Applied)
    if options.json:
        print_json(applied)
    else:
        print(applied.message)
    return DONE

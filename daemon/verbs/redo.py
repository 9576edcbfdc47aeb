"""klineage redo [ENTRY]: bring an undone change back."""

from __future__ import annotations

import argparse

from daemon.protocol import Applied, Redo
from daemon.verbs.connection import ask
from daemon.verbs.failure import DONE
from daemon.verbs.output import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which history entry."""
    parser.add_argument(
        "entry", nargs="?", type=int, default=0, help="history entry (default: the newest undone)"
    )


def run(options: argparse.Namespace) -> int:
    """Act and print what changed; 1 if the files have changed since."""
    applied = ask(options, "redo", Redo(options.entry), Applied)
    if options.json:
        print_json(applied)
    else:
        print(applied.message)
    return DONE

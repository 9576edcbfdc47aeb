"""klineage history: changes applied, undone and rejected, newest first."""

from __future__ import annotations

import argparse

from daemon.protocol import Entries, History
from daemon.verbs.connection import ask
from daemon.verbs.failure import DONE
from daemon.verbs.output import print_json, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How far back."""
    parser.add_argument("--limit", type=int, default=100, help="entries to print (default: 100)")


def run(options: argparse.Namespace) -> int:
    """Print the entries."""
    entries = ask(options, "history", History(options.limit), Entries).entries
    if options.json:
        print_json(entries)
    elif entries:
        rows = [
            (
                str(e.id),
                e.at,
                e.kind,
                e.gain or "-",
                e.skill,
                ", ".join(e.files) or e.kernel,
                e.note,
            )
            for e in entries
        ]
        print(table(rows))
    else:
        print("no history yet")
    return DONE

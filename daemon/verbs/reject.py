"""klineage reject ID --reason TEXT: say no to a suggestion; the reason is kept as evidence."""

from __future__ import annotations

import argparse

from daemon.protocol import Ok, Reject
from daemon.verbs.connection import ask
from daemon.verbs.failure import DONE
from daemon.verbs.output import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The suggestion and the reason."""
    parser.add_argument("suggestion", help="a suggestion id, as `klineage suggest` prints it")
    parser.add_argument("--reason", required=True, help="why, in a line; stored with the skill")


def run(options: argparse.Namespace) -> int:
    """Reject and say so."""
    answer = ask(options, "reject", Reject(options.suggestion, options.reason), Ok)
    if options.json:
        print_json(answer)
    else:
        print(answer.message)
    return DONE

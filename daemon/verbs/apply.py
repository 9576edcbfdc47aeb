"""klineage apply ID: apply a suggestion that is confirmed faster."""

from __future__ import annotations

import argparse
import uuid

from daemon.protocol import Applied, Apply
from daemon.verbs.connection import ask
from daemon.verbs.failure import DONE
from daemon.verbs.output import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The suggestion, and whether to confirm it first."""
    parser.add_argument("suggestion", help="a suggestion id, as `klineage suggest` prints it")
    parser.add_argument(
        "--confirm",
        action="store_true",
        help="if it is only screened, confirm it first and apply it if it is then faster",
    )


def run(options: argparse.Namespace) -> int:
    """Apply and print the history entry; 1 if the gate or a changed file says no."""
    request = Apply(options.suggestion, confirm=options.confirm, key=uuid.uuid4().hex)
    applied = ask(options, "apply", request, Applied)
    if options.json:
        print_json(applied)
    else:
        print(applied.message)
    return DONE

"""klineage gate WHAT: build, check and time a suggestion, or a kernel as it stands."""

from __future__ import annotations

import argparse

from daemon.protocol import Gate, Gated
from daemon.verbs.connection import ask
from daemon.verbs.detect import absolute
from daemon.verbs.failure import DONE, NEGATIVE
from daemon.verbs.output import print_json, verdict_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to gate, how thoroughly, and against what."""
    parser.add_argument("what", help="a suggestion id, FILE, or FILE::kernel")
    parser.add_argument("--tier", choices=("screen", "confirm", "admit"), default="confirm")
    parser.add_argument(
        "--since",
        type=int,
        default=0,
        metavar="ENTRY",
        help="time a kernel against what it was before this history entry",
    )


def run(options: argparse.Namespace) -> int:
    """Print the verdict; 0 for `faster`, and for a kernel gated alone if it is correct."""
    what = options.what
    if "/" in what or "." in what or "::" in what:
        file, separator, entry = what.partition("::")
        params = Gate(
            kernel=absolute(file) + separator + entry, tier=options.tier, since=options.since
        )
        good = {"faster"} if options.since else {"faster", "tie", "unmeasured"}
    else:
        params = Gate(suggestion=what, tier=options.tier)
        good = {"faster"}
    verdict = ask(options, "gate", params, Gated).verdict
    if options.json:
        print_json(verdict)
    else:
        print("\n".join(verdict_lines(verdict)))
    return DONE if verdict.status in good else NEGATIVE

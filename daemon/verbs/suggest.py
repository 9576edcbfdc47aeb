"""klineage suggest [FILE]: skills that apply, ranked, with what was measured."""

from __future__ import annotations

import argparse

from daemon.protocol import Suggest, Suggestions
from daemon.verbs.connection import ask
from daemon.verbs.detect import absolute
from daemon.verbs.failure import DONE, NEGATIVE
from daemon.verbs.output import condition_lines, gain, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, and whether to wait for the gate."""
    parser.add_argument("file", nargs="?", default="", help="a kernel file (default: all)")
    parser.add_argument("--wait", action="store_true", help="until everything is screened")
    parser.add_argument("--all", action="store_true", help="blocked ones too, with the reason")


def run(options: argparse.Namespace) -> int:
    """Print the suggestions; 1 if none applies."""
    path = absolute(options.file) if options.file else ""
    found = ask(options, "suggest", Suggest(path, options.wait), Suggestions).suggestions
    shown = [s for s in found if options.all or s.stage not in ("blocked", "rejected")]
    if options.json:
        print_json(shown)
        return DONE if shown else NEGATIVE
    kernel = None
    for suggestion in shown:
        if suggestion.kernel != kernel:
            kernel = suggestion.kernel
            print(kernel)
        print(
            f"  {suggestion.id}  {suggestion.stage:<10} {gain(suggestion):<44} {suggestion.skill}"
        )
        print(f"      line {suggestion.line}: {suggestion.intent}")
        if suggestion.reason:
            print(f"      {suggestion.reason}")
        if options.all:
            for line in condition_lines(suggestion.conditions):
                print(f"      {line}")
    if not shown:
        print("nothing applies; `klineage suggest --all` shows what is in the way")
    return DONE if shown else NEGATIVE

"""The command line: one file a verb, imported only when that verb is used.

Exit status: 0 done; 1 a negative answer (not faster, nothing applies, refused); 2 usage or
configuration; 3 the environment lacks something, with the command that would fix it.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

VERBS: dict[str, str] = {
    "doctor": "what is installed, what is missing and what that costs",
    "init": "write a commented klineage.toml",
    "detect": "kernels of a file, with their optimization state",
    "suggest": "skills that apply to a file, ranked, with what was measured",
    "gate": "build, check and time a kernel or a suggestion",
    "apply": "apply a suggestion that is confirmed faster",
    "reject": "say no to a suggestion, with the reason",
    "undo": "take the newest change back, to identical bytes",
    "redo": "bring an undone change back",
    "history": "changes applied, undone and rejected",
    "status": "what the daemon watches and does",
    "skills": "list, show, or explain why a skill is or is not offered",
    "daemon": "start, stop or show the daemon of this worktree",
    "demo": "play the whole loop on a scratch copy of the samples",
}
"""Verb → one-line help, in the order `klineage --help` shows."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the process's exit status."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    # Only the verb that was asked for is imported: a verb that talks to a running daemon starts
    # in a tenth of a second, and none of them pays for another's imports.
    named = next((word for word in argv if not word.startswith("-")), None)
    parser = _parser(named if named in VERBS else None)
    options = parser.parse_args(argv)
    if "run" not in options:
        parser.print_help()
        return 2
    from daemon.verbs.failure import exit_status

    with exit_status(json_wanted=options.json) as outcome:
        outcome.status = options.run(options)
    return outcome.status


def _parser(named: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="klineage",
        description="Proven optimizations for GPU kernels: when they apply, and what they gain.",
        epilog="Every verb takes --json, and --root to name another worktree than this one.",
    )
    parser.set_defaults(json=False, root=None)
    verbs = parser.add_subparsers(metavar="VERB", title="verbs")
    for verb, text in VERBS.items():
        child = verbs.add_parser(
            verb,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            parents=[shared_options()],
        )
        if verb == named:
            module = importlib.import_module(f"daemon.verbs.{verb}")
            module.add_arguments(child)
            child.set_defaults(run=module.run)
    return parser


def shared_options() -> argparse.ArgumentParser:
    """The options every verb takes, as a parent for its parser; unset ones stay the default."""
    options = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    options.add_argument("--json", action="store_true", help="print JSON for programs")
    options.add_argument("--root", help="worktree (default: the one that holds this folder)")
    return options


if __name__ == "__main__":
    sys.exit(main())

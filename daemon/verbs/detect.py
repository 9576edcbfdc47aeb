"""klineage detect FILE: its kernels with their optimization state. Runs nothing of the file."""

from __future__ import annotations

import argparse

from daemon.protocol import Detect, FileView
from daemon.verbs.connection import ask
from daemon.verbs.failure import DONE, NEGATIVE
from daemon.verbs.output import print_json, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file to look at."""
    parser.add_argument("file", help="a kernel source file inside the worktree")


def run(options: argparse.Namespace) -> int:
    """Print kernels and features; 1 if the file holds no kernel."""
    view = ask(options, "detect", Detect(absolute(options.file)), FileView)
    if options.json:
        print_json(view)
        return DONE if view.kernels else NEGATIVE
    for problem in view.problems:
        print(f"{view.path}: {problem}")
    for kernel in view.kernels:
        workload = kernel.workload or "no workload file: it can be shown, not gated"
        print(f"{kernel.path}:{kernel.line}  {kernel.entry}  ({kernel.language}; {workload})")
        rows = []
        for feature in kernel.features:
            place = f"line {feature.line}" if feature.line else ""
            rows.append(
                (
                    f"  {feature.id}",
                    feature.name,
                    feature.presence,
                    feature.layer,
                    place,
                    feature.detail,
                )
            )
        print(table(rows))
    if not view.kernels:
        print(f"{view.path}: no kernel found")
    return DONE if view.kernels else NEGATIVE


def absolute(path: str) -> str:
    """`path` resolved from the current folder, for a daemon whose folder is another."""
    from pathlib import Path

    return str(Path(path).resolve())

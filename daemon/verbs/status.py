"""klineage status: what the daemon watches and does."""

from __future__ import annotations

import argparse

from daemon.protocol import Empty, StatusView
from daemon.verbs.connection import ask, warn_person
from daemon.verbs.failure import DONE
from daemon.verbs.output import print_json, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def run(options: argparse.Namespace) -> int:
    """Print the status; starts the daemon if it is not running."""
    warnings: list[str] = []
    status = ask(options, "status", Empty(), StatusView, warn=warnings.append)
    unsaid = [warning for warning in warnings if warning not in status.warnings]
    if options.json:
        for warning in unsaid:
            warn_person(warning)
        print_json(status)
        return DONE
    print(
        table(
            [
                ("worktree", status.root),
                ("daemon", f"pid {status.pid}, {status.version}, up {status.uptime_s:.0f} s"),
                ("trusted", "yes" if status.trusted else "no: nothing of it is run"),
                ("watching", f"{status.watching}; {status.files} files, {status.kernels} kernels"),
                ("platform", f"{status.platform or 'not asked yet'}  {status.device}".rstrip()),
                ("skills", str(status.skills)),
                ("clients", str(status.clients)),
            ]
        )
    )
    for job in status.jobs:
        print(f"{job.state:<8}  {job.tier:<7}  {job.suggestion}  {job.step}")
    for warning in (*unsaid, *status.warnings):
        print(f"warning: {warning}")
    return DONE

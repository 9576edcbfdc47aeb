"""klineage doctor: what is installed, what is missing, and what that costs."""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from pathlib import Path

from daemon.configuration import load_configuration
from daemon.runtime_dir import socket_path
from daemon.verbs.connection import root_of
from daemon.verbs.failure import DONE, ENVIRONMENT
from daemon.verbs.output import print_json, table
from daemon.version import VERSION
from daemon.worktree import journal_path, user_configuration_path
from gate.evaluate import Gate
from gate.inspection import Inspection


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def run(options: argparse.Namespace) -> int:
    """Print the report; 3 if no kernel of any language could be gated here."""
    root = root_of(options)
    inspection = inspect(root)
    able = any(device.runtime in ("opencl", "cuda") for device in inspection.devices)
    if options.json:
        print_json(_plain(root, inspection, able))
        return DONE if able else ENVIRONMENT
    rows = [
        ("klineage", f"{VERSION}, Python {platform.python_version()} at {sys.executable}"),
        ("worktree", str(root)),
        ("socket", str(socket_path(root))),
        ("journal", str(journal_path(root))),
        ("your settings", str(user_configuration_path())),
        ("kernels run in", f"{inspection.interpreter} (Python {inspection.version})"),
    ]
    rows += [(name, version or "not installed") for name, version in inspection.packages.items()]
    rows += [(name, path or "not found") for name, path in inspection.tools.items()]
    rows += [(f"{d.runtime} device", f"{d.name} ({d.detail})") for d in inspection.devices]
    print(table(rows))
    for lack in inspection.lacks:
        fix = f"; to fix: {lack.fix}" if lack.fix else ""
        print(f"missing: {lack.what}: {lack.costs}{fix}")
    return DONE if able else ENVIRONMENT


def inspect(root: Path | None = None) -> Inspection:
    """What the kernels' interpreter has. Raises EnvironmentLacks, ConfigurationError."""
    settings = load_configuration(root or Path.cwd()).gate
    with tempfile.TemporaryDirectory(prefix="klineage-doctor-") as scratch:
        gate = Gate(root or Path.cwd(), settings, Path(scratch) / "gate")
        try:
            return gate.inspect()
        finally:
            gate.close()


def _plain(root: Path, inspection: Inspection, able: bool) -> dict[str, object]:
    return {
        "version": VERSION,
        "python": sys.executable,
        "root": str(root),
        "socket": str(socket_path(root)),
        "journal": str(journal_path(root)),
        "user_configuration": str(user_configuration_path()),
        "interpreter": inspection.interpreter,
        "interpreter_version": inspection.version,
        "packages": dict(inspection.packages),
        "tools": dict(inspection.tools),
        "devices": [
            {"runtime": d.runtime, "name": d.name, "detail": d.detail} for d in inspection.devices
        ],
        "lacks": [
            {"what": lack.what, "costs": lack.costs, "fix": lack.fix} for lack in inspection.lacks
        ],
        "can_gate": able,
    }

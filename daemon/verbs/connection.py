"""How a verb reaches the daemon of its worktree."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TypeVar

from daemon.call import call_once
from daemon.protocol import Wire
from daemon.worktree import find_root

Result = TypeVar("Result", bound=Wire)


def root_of(options: argparse.Namespace) -> Path:
    """The worktree a verb acts on: --root, or the one that holds the current folder."""
    return find_root(Path(options.root) if options.root else Path.cwd())


def ask(options: argparse.Namespace, method: str, params: Wire, result: type[Result]) -> Result:
    """One request to the daemon, started if it is not running. Raises RpcError as it answers."""
    answer = call_once(root_of(options), method, params, warn=_warn)
    assert isinstance(answer, result)
    return answer


def _warn(line: str) -> None:
    """To standard error, so that --json stays one document."""
    print(f"klineage: warning: {line}", file=sys.stderr)

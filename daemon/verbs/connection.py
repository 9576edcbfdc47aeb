"""How a verb reaches the daemon of its worktree."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from daemon.call import call_once
from daemon.errors import RpcError, Unavailable
from daemon.protocol import Wire
from daemon.worktree import find_root

Result = TypeVar("Result", bound=Wire)


def warn_person(line: str) -> None:
    """To standard error, so that --json stays one document."""
    print(f"klineage: warning: {line}", file=sys.stderr)


def root_of(options: argparse.Namespace) -> Path:
    """The worktree a verb acts on: --root, or the one that holds the current folder."""
    return find_root(Path(options.root) if options.root else Path.cwd())


def ask(
    options: argparse.Namespace,
    method: str,
    params: Wire,
    result: type[Result],
    warn: Callable[[str], None] = warn_person,
) -> Result:
    """One request to the daemon, started if it is not running.

    Raises RpcError as it answers, and ConfigurationError if that is why it does not start.
    """
    root = root_of(options)
    warnings: list[str] = []
    try:
        answer = call_once(root, method, params, warn=warnings.append)
    except RpcError as error:
        if isinstance(error, Unavailable):
            _blame_configuration(root)
        # What was the reason in the end need not be said twice.
        warnings = [warning for warning in warnings if error.message not in warning]
        raise
    finally:
        for warning in warnings:
            warn(warning)
    assert isinstance(answer, result)
    return answer


def _blame_configuration(root: Path) -> None:
    """Raise ConfigurationError if a wrong klineage.toml is why no daemon answers."""
    from daemon.configuration import load_configuration

    load_configuration(root)

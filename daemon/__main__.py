"""python -m daemon --root WORKTREE: be the daemon of a worktree. Clients start it; people need not."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from pathlib import Path

from daemon.configuration import load_configuration
from daemon.errors import Busy, ConfigurationError, RpcError
from daemon.instance import ALREADY_RUNNING_EXIT
from daemon.supervisor import configure_log, serve


def main() -> int:
    """Serve until stopped; the process's exit status."""
    parser = argparse.ArgumentParser(prog="python -m daemon", description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--poll", action="store_true", help="look for changes at intervals")
    options = parser.parse_args()
    root = options.root.resolve()
    try:
        configure_log(root, load_configuration(root).daemon.log_level)
        # The folder of whichever client came first means nothing to the others.
        os.chdir(root)
        asyncio.run(serve(root, poll=options.poll))
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    except Busy as error:
        print(error, file=sys.stderr)
        return ALREADY_RUNNING_EXIT
    except RpcError as error:
        logging.getLogger(__name__).error("%s", error)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())

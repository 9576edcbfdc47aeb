"""`klineage-tui [ROOT] [--poll] [--no-mouse]`: open the window on a worktree."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

from klineage_tui.session import Connect, Connection


def parser() -> argparse.ArgumentParser:
    described = argparse.ArgumentParser(
        prog="klineage-tui",
        description="Watch GPU kernels of a worktree: which optimizations apply, with measured gains.",
    )
    described.add_argument(
        "root", nargs="?", type=Path, default=Path(), help="worktree, or a path inside it"
    )
    described.add_argument(
        "--poll", action="store_true", help="if a daemon is started, let it poll for changes"
    )
    described.add_argument(
        "--no-mouse", action="store_true", help="leave the mouse to the terminal"
    )
    return described


def connector(root: Path, *, poll: bool) -> Connect:
    """Connects to the daemon of `root`."""

    async def connect(start: bool) -> Connection:
        # Imported here, so that the window is on the screen before it is needed.
        from daemon.client import Client
        from daemon.spawn import daemon_command

        command = [*daemon_command(root), *(["--poll"] if poll else [])]
        return await Client.connect(root, spawn=start, command=command)

    return connect


def main(arguments: list[str] | None = None) -> int:
    """Run until the person leaves; 0 then, 2 if there is no such folder."""
    options = parser().parse_args(arguments)
    if not options.root.exists():
        print(f"klineage-tui: no such folder: {options.root}", file=sys.stderr)
        return 2
    # Collecting while modules load finds nothing and costs a tenth of the time to the first picture;
    # the window turns it on again once that is drawn.
    gc.disable()
    from daemon.worktree import find_root
    from klineage_tui.app import Window

    root = find_root(options.root)
    window = Window(root, connector(root, poll=options.poll))
    window.run(mouse=not options.no_mouse)
    return window.return_code or 0


if __name__ == "__main__":
    sys.exit(main())

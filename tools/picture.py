"""Draw the window on a live daemon into an SVG, without a terminal.

    python tools/picture.py WORKTREE docs/pictures/queue.svg --until 'faster, confirmed'

Opens the real window at a size, presses `--keys` one by one, waits until `--until` is on the screen
and nothing moves, and writes what a terminal would show. The daemon is started if none runs; the
worktree must be trusted already, or `--keys y` answers the question.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from textual.pilot import Pilot

from daemon.worktree import find_root
from klineage_tui.__main__ import connector
from klineage_tui.app import Window
from klineage_tui.state import Link

QUIET_FRAMES = 5
"""Equal pictures in a row before it counts as still."""
FRAME_S = 0.1


def screen_text(window: Window) -> str:
    """What the window shows, as plain text."""
    strips = window.screen._compositor.render_strips(window.size)
    return "\n".join(strip.text for strip in strips)


async def still(window: Window, pilot: Pilot[None]) -> None:
    """Return when nothing has moved for QUIET_FRAMES frames."""
    before, equal = "", 0
    while equal < QUIET_FRAMES:
        await pilot.pause(FRAME_S)
        now = screen_text(window)
        equal = equal + 1 if now == before else 0
        before = now


async def shows(window: Window, pilot: Pilot[None], wanted: str) -> None:
    while wanted not in screen_text(window):
        await pilot.pause(FRAME_S)


async def picture(options: argparse.Namespace) -> str:
    """The SVG. Raises TimeoutError if `--until` never appears."""
    root = find_root(options.root)
    width, _, height = options.size.partition("x")
    # Looks of its own: a picture must not depend on, nor change, what the person chose.
    with tempfile.TemporaryDirectory() as folder:
        window = Window(root, connector(root, poll=False), looks=Path(folder) / "looks.json")
        window.theme = options.theme
        async with window.run_test(size=(int(width), int(height))) as pilot:
            async with asyncio.timeout(options.timeout_s):
                while window.view.queue.link is not Link.LIVE:
                    await pilot.pause(FRAME_S)
                for key in options.keys:
                    await still(window, pilot)
                    await pilot.press(key)
                await shows(window, pilot, options.until)
                await still(window, pilot)
            return window.export_screenshot(title=options.title)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path, help="worktree")
    parser.add_argument("output", type=Path, help="SVG to write")
    parser.add_argument("--size", default="120x36", help="columns x rows")
    parser.add_argument("--keys", nargs="*", default=[], help="keys to press, such as j enter")
    parser.add_argument("--until", default="daemon ok", help="text to wait for")
    parser.add_argument("--theme", default="klineage-dark")
    parser.add_argument("--title", default="klineage-tui")
    parser.add_argument("--timeout", dest="timeout_s", type=float, default=300.0, help="seconds")
    options = parser.parse_args()
    try:
        drawn = asyncio.run(picture(options))
    except TimeoutError:
        print(
            f"picture: {options.until!r} was not shown within {options.timeout_s:g} s",
            file=sys.stderr,
        )
        return 1
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(drawn)
    print(f"wrote {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Losing the daemon, finding it again, and closing and reopening the window."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from pilots import Opener
from scene import make_snapshot, make_suggestion
from scripted_daemon import ScriptedDaemon, scripted

from daemon.errors import Unavailable
from klineage_tui.session import Connection, Session
from klineage_tui.state import Link


async def test_a_daemon_that_comes_back_replays_what_was_missed(
    place: Path, open_window: Opener
) -> None:
    first = make_suggestion(stage="queued", verdict=None)
    async with open_window() as opened:
        async with scripted(place, make_snapshot(suggestions=(first,))):
            await opened.until_shown("queued", "daemon ok")
            known = opened.window.view.queue
        await opened.until_shown("The daemon is gone", "R starts it", "opencl.vectorize-columns")
        async with scripted(place, make_snapshot(suggestions=(first,))) as again:
            again.publish_suggestion(make_suggestion())
            await opened.until_shown("faster, confirmed", "daemon ok")
            assert opened.window.view.queue.seq > known.seq


async def test_a_notice_published_while_the_window_was_away_arrives_by_replay_alone(
    place: Path, open_window: Opener
) -> None:
    async with open_window() as opened:
        async with scripted(place):
            await opened.until_shown("daemon ok")
        await opened.until_shown("The daemon is gone")
        async with scripted(place) as again:
            before = again.notices.publish("message", level="info", text="read the manual")
            await opened.until_shown("daemon ok", "read the manual")
            assert "snapshot" not in again.methods
            assert opened.window.view.queue.seq >= before


async def test_a_window_that_opens_first_waits_for_the_daemon(
    place: Path, open_window: Opener
) -> None:
    async with open_window() as opened:
        await opened.until_shown("The daemon is gone")
        async with scripted(place):
            await opened.until_shown("faster, confirmed", "daemon ok")


async def test_closing_and_reopening_shows_the_same(place: Path, open_window: Opener) -> None:
    async with scripted(place):
        screens = []
        for _ in range(2):
            async with open_window() as opened:
                await opened.until_shown("faster, confirmed", "float8 acc")
                screens.append(await opened.settled())
        assert screens[0] == screens[1]


async def test_two_windows_see_each_others_changes(place: Path, open_window: Opener) -> None:
    async with scripted(place), open_window() as one, open_window((80, 24)) as other:
        await one.until_shown("faster, confirmed")
        await other.until_shown("faster, confirmed")
        await one.press("a")
        await other.until_shown(" applied ")


async def test_looks_are_remembered(place: Path, open_window: Opener) -> None:
    async with scripted(place):
        async with open_window() as opened:
            await opened.until_shown("unified")
            await opened.press("v")
            await opened.until_shown("split")
            opened.window.theme = "klineage-light"
            await opened.until(lambda: b"light" in open_window.looks.read_bytes())
        async with open_window() as again:
            await again.until_shown("2 hunks  split")
            assert again.window.theme == "klineage-light"


async def test_only_waking_starts_a_daemon_again(place: Path) -> None:
    starts: list[bool] = []
    tried = asyncio.Event()

    async def connect(start: bool) -> Connection:
        starts.append(start)
        tried.set()
        raise Unavailable("the daemon ended at its start: no device")

    session = Session(str(place), connect, lambda _: None, retry_s=0.001)
    running = asyncio.create_task(session.run())
    while len(starts) < 4:
        await tried.wait()
        tried.clear()
    assert starts[0]
    assert not any(starts[1:4])
    assert session.state.link is Link.GONE
    assert "no device" in session.state.link_detail
    session.wake()
    while starts.count(True) < 2:
        await tried.wait()
        tried.clear()
    running.cancel()


async def test_a_resync_reads_the_whole_state_again(place: Path, open_window: Opener) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        await opened.until_shown("daemon ok", "opencl.vectorize-columns")
        daemon.change(suggestions=(make_suggestion(skill="opencl.new-one"),))
        daemon.notices.publish("resync")
        await opened.until_shown("opencl.new-one")
        assert daemon.methods.count("snapshot") == 2


async def test_a_flood_of_notices_ends_in_the_newest_state(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        await opened.until_shown("daemon ok")
        _flood(daemon, 3000)
        await opened.until_shown("opencl.last")


def _flood(daemon: ScriptedDaemon, number: int) -> None:
    one = make_suggestion()
    for index in range(number):
        skill = "opencl.last" if index == number - 1 else f"opencl.step-{index}"
        daemon.publish_suggestion(msgspec.structs.replace(one, skill=skill))

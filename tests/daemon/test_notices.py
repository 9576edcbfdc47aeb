"""Notifications: numbering, replay, overflow; over the real journal and real sockets."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from raw_client import raw
from stub_daemon import make_status, serving

from daemon.client import Client
from daemon.errors import IoFailed
from daemon.journal import Journal
from daemon.notices import Notices
from daemon.protocol import JobView, Message, Resync, Subscribe, Subscribed, Wire
from daemon.rpc import read_message, read_notice, write_request


def tell(notices: Notices, text: str) -> int:
    return notices.publish("message", level="info", text=text)


def progress(notices: Notices) -> int:
    return notices.publish(
        "job.progress", job=JobView("job-1", "0123456789ab", "screen", "running")
    )


async def take(client: Client, count: int) -> list[Wire]:
    taken = []
    async for _, notice in client.notices():
        taken.append(notice)
        if len(taken) == count:
            break
    return taken


def texts(notices: list[Wire]) -> list[str]:
    return [
        notice.text if isinstance(notice, Message) else type(notice).__name__ for notice in notices
    ]


async def sent(notices: Notices, since: int) -> tuple[Subscribed, list[Wire]]:
    """What a client that subscribes now is sent at once."""
    answer, subscription = notices.subscribe(since)
    subscription.close()
    frames = [read_notice(read_message(frame)) async for frame in subscription]
    return answer, [notice for notice in frames if notice is not None]


async def test_two_clients_get_every_notification_in_order(place: Path) -> None:
    async with serving(place) as stub:
        clients = [await Client.connect(place, spawn=False) for _ in range(2)]
        for client in clients:
            await client.call("subscribe", Subscribe())
        tell(stub.notices, "one")
        tell(stub.notices, "two")
        for client in clients:
            assert texts(await take(client, 2)) == ["one", "two"]
            await client.close()


async def test_a_client_that_returns_gets_what_it_missed_over_a_restart(place: Path) -> None:
    async with serving(place) as stub:
        seen = tell(stub.notices, "seen")
        tell(stub.notices, "missed")
        progress(stub.notices)
    async with serving(place) as stub:
        tell(stub.notices, "after the restart")
        client = await Client.connect(place, spawn=False)
        answer = await client.call("subscribe", Subscribe(since=seen))
        assert not answer.resync
        assert texts(await take(client, 2)) == ["missed", "after the restart"]
        await client.close()


async def test_numbers_grow_over_a_restart_also_after_unkept_notifications(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    notices = Notices(journal.events)
    kept, unkept = tell(notices, "kept"), progress(notices)
    assert unkept == kept + 1
    journal.close()
    journal = Journal(tmp_path / "journal.db")
    notices = Notices(journal.events)
    later = tell(notices, "later")
    assert later > unkept
    assert texts((await sent(notices, unkept))[1]) == ["later"]
    journal.close()


async def test_since_zero_asks_for_new_ones_only(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    notices = Notices(journal.events)
    newest = tell(notices, "old")
    assert await sent(notices, 0) == (Subscribed(newest, resync=False), [])
    journal.close()


async def test_a_number_never_given_out_asks_for_a_resync(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    answer, notices = await sent(Notices(journal.events), 5)
    assert answer.resync
    assert notices == []
    journal.close()


async def test_more_than_the_queue_holds_asks_for_a_resync(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    notices = Notices(journal.events, queue_limit=3)
    first = tell(notices, "0")
    for number in range(1, 5):
        tell(notices, str(number))
    assert (await sent(notices, first))[0].resync
    assert texts((await sent(notices, first + 1))[1]) == ["2", "3", "4"]
    journal.close()


async def test_pruned_events_ask_for_a_resync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daemon.journal_events.KEPT", 2)
    journal = Journal(tmp_path / "journal.db")
    notices = Notices(journal.events)
    first, second = tell(notices, "1"), tell(notices, "2")
    tell(notices, "3")
    tell(notices, "4")
    journal.events.prune()
    journal.close()
    journal = Journal(tmp_path / "journal.db")
    notices = Notices(journal.events)
    assert (await sent(notices, first))[0].resync
    assert texts((await sent(notices, second))[1]) == ["3", "4"]
    journal.close()


async def test_kept_events_are_bounded_in_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daemon.journal_events.KEPT_BYTES", 5000)
    journal = Journal(tmp_path / "journal.db")
    notices = Notices(journal.events)
    numbers = [tell(notices, "x" * 1000) for _ in range(10)]
    journal.events.prune()
    assert journal.events.since(numbers[0], 100) is None
    kept = journal.events.since(numbers[-5], 100)
    assert kept is not None
    assert len(kept) == 4
    journal.close()


async def test_a_client_that_does_not_read_is_told_to_resync(place: Path) -> None:
    async with serving(place, queue_limit=20) as stub:
        slow = await Client.connect(place, spawn=False)
        await slow.call("subscribe", Subscribe())
        # Published without giving the loop a turn: nothing can be sent in between.
        for number in range(50):
            tell(stub.notices, str(number))
        notices = await take(slow, 10)
        assert isinstance(notices[0], Resync)
        assert texts(notices[1:]) == [str(number) for number in range(41, 50)]
        await slow.close()


async def test_a_stuck_client_does_not_delay_another(place: Path) -> None:
    async with serving(place, queue_limit=20) as stub:
        stuck = await raw(place)
        await stuck.greet()
        await stuck.ask(write_request(1, "subscribe", Subscribe()))
        stuck.writer.transport.pause_reading()
        reading = await Client.connect(place, spawn=False)
        await reading.call("subscribe", Subscribe())
        for number in range(100):
            tell(stub.notices, f"{number} " + "x" * 100_000)
            (notice,) = await take(reading, 1)
            assert isinstance(notice, Message)
            assert notice.text.startswith(f"{number} ")
        await reading.close()
        stuck.writer.transport.abort()


async def test_a_notification_too_long_for_a_frame_becomes_a_resync(place: Path) -> None:
    async with serving(place) as stub:
        client = await Client.connect(place, spawn=False)
        await client.call("subscribe", Subscribe())
        before = tell(stub.notices, "before")
        tell(stub.notices, "x" * (9 << 20))
        tell(stub.notices, "after")
        assert texts(await take(client, 3)) == ["before", "Resync", "after"]
        assert (await client.call("subscribe", Subscribe(since=before))).resync
        await client.close()


async def test_status_is_sent_and_not_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    notices = Notices(journal.events)
    first = tell(notices, "first")
    notices.publish("status.changed", status=make_status(tmp_path))
    assert await sent(notices, first) == (Subscribed(first + 1, resync=False), [])
    journal.close()


async def test_a_full_disk_is_told_once_and_later_clients_resync(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    notices = Notices(journal.events)
    first = tell(notices, "first")
    _, subscription = notices.subscribe(0)
    limit_pages(journal.connection)
    tell(notices, "x" * 1_000_000)
    tell(notices, "y" * 1_000_000)
    subscription.close()
    got = [read_notice(read_message(frame)) async for frame in subscription]
    messages = [notice.text for notice in got if isinstance(notice, Message)]
    assert [text[:1] for text in messages if len(text) == 1_000_000] == ["x", "y"]
    assert sum("the disk is full" in text for text in messages) == 1
    assert (await sent(notices, first))[0].resync
    journal.close()


def limit_pages(connection: sqlite3.Connection) -> None:
    """As on a disk with 40 kB left."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={pages + 10}")


def test_a_full_disk_names_what_was_tried_where_and_what_to_do(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    limit_pages(journal.connection)
    with pytest.raises(
        IoFailed, match=r"cannot record answer in .*journal\.db: the disk is full; free"
    ):
        journal.kv.put("answer", "x" * 1_000_000)
    journal.kv.put("answer", "short")
    assert journal.kv.get("answer") == "short"
    journal.close()

"""The daemon killed at random moments of save, suggest, apply and undo: what was told stays true.

The moment is drawn from a seed: an event of the loop, and a delay after it. `-s` shows the seed;
KLINEAGE_CRASH_SEED repeats one.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import shutil
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from person import ONE_SKILL, QUICK, Person, living, processes_under, wait_for_end

from daemon.client import Client, ConnectionLost
from daemon.errors import NotConfirmed
from daemon.protocol import (
    Applied,
    Apply,
    Diff,
    EntryView,
    History,
    JobProgress,
    Subscribe,
    Suggest,
    SuggestionView,
    Undo,
)

pytestmark = pytest.mark.serial

KERNEL = "gemm/gemm_naive.cl"

MOMENTS = {
    "saved": 3.0,
    "asked": 3.0,
    "screened": 0.1,
    "applying": 4.0,
    "confirmed": 0.06,
    "applied": 0.06,
    "undoing": 0.06,
    "undone": 0.3,
}
"""What a delay counts from, and the longest, seconds: the whole of a gating, or of a transaction.

`confirmed` is the notice that the confirmation is done; writing the files follows at once.
"""

WORKERS_END_S = 10.0
"""By when no process of a killed daemon may be left."""


@dataclass
class Told:
    """What the daemon has answered, and what it was asked last, over all its lives."""

    entries: list[EntryView] = field(default_factory=list)
    unanswered: Apply | Undo | None = None
    versions: dict[str, set[bytes]] = field(default_factory=dict)
    """Relative path → the bytes it may have."""
    kills: list[str] = field(default_factory=list)


class Victim:
    """One life of the daemon, with the moment of its death."""

    def __init__(self, client: Client, moment: str, delay_s: float) -> None:
        self.client = client
        self._moment = moment
        self._delay_s = delay_s
        self._dead = False

    def reached(self, moment: str) -> None:
        """An event of the loop; the kill is timed from the one that was drawn."""
        if moment == self._moment:
            asyncio.get_running_loop().call_later(self._delay_s, self.kill)

    def kill(self) -> None:
        """SIGKILL, once."""
        if not self._dead:
            self._dead = True
            os.kill(self.client.hello.pid, signal.SIGKILL)

    async def listen(self) -> None:
        """Turn the end of a confirmation into its event."""
        async for _, notice in self.client.notices():
            if (
                isinstance(notice, JobProgress)
                and notice.job.tier == "confirm"
                and notice.job.state == "done"
            ):
                self.reached("confirmed")


async def turn(person: Person, victim: Victim, told: Told, number: int) -> None:
    """Save a new version of the kernel, have it gated, apply the best, and take it back."""
    client = victim.client
    source = f"// version {number}\n".encode() + pristine(person).replace(
        b"acc", f"acc{number}".encode()
    )
    told.versions = {path: {data} for path, data in person.sources().items()}
    told.versions[KERNEL] = {person.kernel.read_bytes(), source}
    person.kernel.write_bytes(source)
    told.versions[KERNEL] = {source}
    victim.reached("saved")
    asking = asyncio.create_task(client.call("suggest", Suggest(KERNEL, wait=True)))
    victim.reached("asked")
    best: SuggestionView = (await asking).suggestions[0]
    for file in (await client.call("diff", Diff(best.id))).files:
        told.versions[file.path].add(file.after.encode())
    victim.reached("screened")
    try:
        await change(client, told, Apply(best.id, confirm=True, key=f"key-{number}"), victim)
    except NotConfirmed:
        return  # a noisy moment of the machine; the next version gets another
    victim.reached("applied")
    await change(client, told, Undo(), victim)
    victim.reached("undone")


async def turns(person: Person, victim: Victim, told: Told, number: int) -> None:
    """One after the other, until the daemon dies."""
    for version in itertools.count(number * 100):
        await turn(person, victim, told, version)


async def change(client: Client, told: Told, request: Apply | Undo, victim: Victim | None) -> None:
    """Ask for a change; it is told once it is answered."""
    told.unanswered = request
    method = "apply" if isinstance(request, Apply) else "undo"
    asking = asyncio.create_task(client.call(method, request))
    if victim is not None:
        victim.reached("applying" if method == "apply" else "undoing")
    try:
        answer: Applied = await asking
    except NotConfirmed:
        told.unanswered = None
        raise
    told.unanswered = None
    # A repeated request is answered with the entry of the first.
    if all(entry.id != answer.entry.id for entry in told.entries):
        told.entries.append(answer.entry)


def pristine(person: Person) -> bytes:
    """The kernel as it came."""
    return (person.home / "pristine.cl").read_bytes()


async def crash_once(person: Person, told: Told, chance: random.Random, number: int) -> None:
    """One life: turns until the drawn moment comes; then what is left, and the next life's view."""
    moment = chance.choice(list(MOMENTS))
    delay_s = chance.uniform(0.0, MOMENTS[moment])
    told.kills.append(f"{delay_s * 1e3:.0f} ms after `{moment}`")
    async with connected(person) as client:
        victim = Victim(client, moment, delay_s)
        await client.call("subscribe", Subscribe())
        listening = asyncio.create_task(victim.listen())
        with pytest.raises(ConnectionLost):
            await turns(person, victim, told, number)
        await listening  # ends with the connection
    bury(client.hello.pid)
    assert_each_old_or_new(person, told)
    wait_for_end(processes_under(person.home), WORKERS_END_S)
    await check_next_life(person, told, client.hello.pid)


@asynccontextmanager
async def connected(person: Person) -> AsyncIterator[Client]:
    """A client of their daemon, which is started if it does not run."""
    client = await Client.connect(person.root)
    try:
        yield client
    finally:
        await client.close()


def bury(pid: int) -> None:
    """Collect a daemon that this process started, so that nobody takes it for alive."""
    os.waitpid(pid, 0)


def assert_each_old_or_new(person: Person, told: Told) -> None:
    found = person.sources()
    for path, allowed in told.versions.items():
        assert found[path] in allowed, f"{path} is neither old nor new:\n{found[path]!r}"


async def check_next_life(person: Person, told: Told, dead: int) -> None:
    """A new daemon knows all that was told, finishes what was not, and leaves nothing behind."""
    async with connected(person) as client:
        history = await entries(client)
        ids = [entry.id for entry in history]
        assert sorted(ids) == sorted(set(ids))
        for entry in told.entries:
            assert entry.id in ids, f"entry {entry} was told and is lost"
        assert_each_old_or_new(person, told)
        assert person.sources().keys() == told.versions.keys()
        unknown = [entry for entry in history if entry.id not in {e.id for e in told.entries}]
        assert len(unknown) <= (told.unanswered is not None), f"never told: {unknown}"
        assert journal_is_sound(person)
        assert len(list((person.home / "tmp").glob("klineage-gate-*"))) == 1
        assert not exchange_folders(dead)
        if isinstance(told.unanswered, Apply):
            await repeat(client, told, told.unanswered)
        told.entries = list(reversed(await entries(client)))
        told.unanswered = None
        if told.entries and told.entries[-1].undoable:
            await change(client, told, Undo(), None)


async def repeat(client: Client, told: Told, request: Apply) -> None:
    """What a client does that got no answer: the same request under the same key."""
    await client.call("suggest", Suggest(KERNEL, wait=True))
    try:
        await change(client, told, request, None)
    except NotConfirmed:
        return
    made = [
        entry
        for entry in await entries(client)
        if entry.suggestion == request.suggestion and entry.kind == "applied"
    ]
    assert len(made) == 1, f"applied more than once under one key: {made}"


async def entries(client: Client) -> list[EntryView]:
    found: tuple[EntryView, ...] = (await client.call("history", History(limit=10_000))).entries
    return list(found)


def exchange_folders(pid: int) -> list[Path]:
    """What a daemon has, or had, in shared memory for arrays between workers."""
    return list(Path("/dev/shm").glob(f"klineage-{os.getuid()}-{pid}-*"))


def journal_is_sound(person: Person) -> bool:
    (path,) = (person.home / "state").glob("klineage/*/journal.db")
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


def crash(rounds: int) -> None:
    seed = int(os.environ.get("KLINEAGE_CRASH_SEED", random.randrange(1_000_000)))
    print(f"KLINEAGE_CRASH_SEED={seed}")
    chance = random.Random(seed)
    told = Told()
    with living(QUICK + ONE_SKILL) as person, person.at_home():
        shutil.copy(person.kernel, person.home / "pristine.cl")
        person.trust()
        for number in range(rounds):
            try:
                asyncio.run(crash_once(person, told, chance, number + 1))
            except BaseException:
                print(f"seed {seed}, kills so far: {told.kills}\n{person.log()[-4000:]}")
                raise
        print("\n".join(told.kills))
        assert "Traceback" not in person.log()


async def killed_during_a_launch(person: Person) -> list[int]:
    """The workers that were there when the daemon was killed, a second into tracing a launch."""
    workers: list[int] = []
    async with connected(person) as client:

        def kill() -> None:
            workers.extend(person.workers())
            os.kill(client.hello.pid, signal.SIGKILL)

        await client.call("subscribe", Subscribe())
        async for _, notice in client.notices():  # until the connection ends
            if isinstance(notice, JobProgress) and notice.job.step.startswith("tracing"):
                asyncio.get_running_loop().call_later(1.0, kill)
    return workers


def test_a_kernel_that_never_returns_dies_with_its_daemon(person: Person) -> None:
    person.kernel.write_text(person.kernel.read_text().replace("++k", "k += (K < 0)"))
    person.trust()
    with person.at_home():
        workers = asyncio.run(killed_during_a_launch(person))
    assert workers
    wait_for_end(workers, WORKERS_END_S)


async def sent_twice(person: Person) -> tuple[Applied, Applied]:
    """The answers to one request to apply, repeated on another connection while it is confirmed."""
    async with connected(person) as first, connected(person) as second:
        (best,) = (await first.call("suggest", Suggest(KERNEL, wait=True))).suggestions
        request = Apply(best.id, confirm=True, key="the same")
        asking = first.call("apply", request), second.call("apply", request)
        one, other = await asyncio.gather(*asking)
        return one, other


def test_a_request_that_is_sent_twice_is_done_once(person: Person) -> None:
    person.trust()
    with person.at_home():
        one, other = asyncio.run(sent_twice(person))
    assert one.entry.id == other.entry.id
    assert [entry["kind"] for entry in person.json("history")] == ["applied"]


@pytest.mark.timeout(240)
def test_six_kills_lose_nothing_that_was_told() -> None:
    crash(rounds=6)


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_fifty_kills_lose_nothing_that_was_told() -> None:
    crash(rounds=50)

"""A daemon as a process: started by its first client, outliving it, killed, started again."""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import handshake
from daemon.call import call_once
from daemon.client import Client
from daemon.errors import Busy, IoFailed, Unavailable, VersionMismatch
from daemon.instance import holder, terminate
from daemon.journal import Journal
from daemon.protocol import Empty, Hello, Message, Ok, Shutdown, StatusView, Subscribe
from daemon.rendezvous import NoDaemon
from daemon.runtime_dir import socket_path
from daemon.server import bind
from daemon.spawn import LOG_BYTES, daemon_command
from daemon.worktree import journal_path, lock_path, log_path


def end(pid: int, sent: signal.Signals) -> int:
    """Signal a daemon this process started and wait for its end; its exit status."""
    os.kill(pid, sent)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


@pytest.fixture(autouse=True)
def no_daemon_stays(place: Path) -> Iterator[None]:
    """Whatever a test leaves running ends with it."""
    yield
    found = holder(lock_path(place))
    if found is not None:
        end(found.pid, signal.SIGKILL)


def running_pid(root: Path) -> int | None:
    found = holder(lock_path(root))
    return found and found.pid


def status_of(root: Path, command: list[str]) -> StatusView:
    status = call_once(root, "status", Empty(), command=command)
    assert isinstance(status, StatusView)
    return status


async def test_the_first_client_starts_a_daemon_that_outlives_it(
    place: Path, stub_command: list[str]
) -> None:
    first = await Client.connect(place, command=stub_command)
    pid = first.hello.pid
    assert pid != os.getpid()
    await first.close()
    second = await Client.connect(place, spawn=False)
    assert second.hello.pid == pid
    await second.close()


def test_a_blocking_call_starts_one_too(place: Path, stub_command: list[str]) -> None:
    pid = status_of(place, stub_command).pid
    assert status_of(place, stub_command).pid == pid == running_pid(place)


def test_a_daemon_is_in_a_session_of_its_own(place: Path, stub_command: list[str]) -> None:
    pid = status_of(place, stub_command).pid
    assert os.getsid(pid) == pid


def test_a_login_with_another_runtime_folder_finds_the_same_daemon(
    place: Path, stub_command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pid = status_of(place, stub_command).pid
    other = socket_path(place)
    # As over ssh or in a container, where nobody set it.
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("platformdirs.user_runtime_dir", lambda: str(tmp_path / "r"))
    assert socket_path(place) != other
    assert status_of(place, stub_command).pid == pid


async def test_clients_that_start_at_once_get_one_daemon(
    place: Path, stub_command: list[str]
) -> None:
    clients = await asyncio.gather(*(Client.connect(place, command=stub_command) for _ in range(4)))
    assert len({client.hello.pid for client in clients}) == 1
    for client in clients:
        await client.close()


def test_sigterm_ends_it_cleanly(place: Path, stub_command: list[str]) -> None:
    pid = status_of(place, stub_command).pid
    assert end(pid, signal.SIGTERM) == 0
    assert not socket_path(place).exists()
    assert holder(lock_path(place)) is None


def test_one_that_cannot_be_reached_can_be_ended(place: Path, stub_command: list[str]) -> None:
    pid = status_of(place, stub_command).pid
    socket_path(place).unlink()
    with pytest.raises(NoDaemon):
        call_once(place, "ping", Empty(), spawn=False)
    ended = terminate(lock_path(place))
    assert ended is not None
    assert ended.pid == pid
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert terminate(lock_path(place)) is None


def test_one_that_does_not_end_is_named(place: Path, stub_command: list[str]) -> None:
    pid = status_of(place, stub_command).pid
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(Busy, match=rf"`kill -9 {pid}` loses nothing"):
        terminate(lock_path(place), within_s=0.05)
    os.kill(pid, signal.SIGCONT)
    os.waitpid(pid, 0)


def test_shutdown_is_answered_before_it_ends(place: Path, stub_command: list[str]) -> None:
    pid = status_of(place, stub_command).pid
    assert call_once(place, "shutdown", Shutdown(), spawn=False) == Ok("stopping")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


async def test_after_sigkill_the_next_start_recovers(place: Path, stub_command: list[str]) -> None:
    client = await Client.connect(place, command=[*stub_command, "--leave-running"])
    seq = client.hello.seq
    end(client.hello.pid, signal.SIGKILL)
    assert socket_path(place).is_socket()
    with pytest.raises(Unavailable, match="closed the connection"):
        await client.call("ping", Empty())
    assert [notice async for notice in client.notices()] == []
    await client.close()

    client = await Client.connect(place, command=stub_command)
    await client.call("subscribe", Subscribe(since=seq))
    async for _, notice in client.notices():
        assert isinstance(notice, Message)
        assert notice.text.startswith("interrupted: screen of 0123456789ab")
        break
    await client.close()


async def test_a_daemon_that_ends_as_a_client_comes_is_replaced_by_a_new_one(
    place: Path, stub_command: list[str]
) -> None:
    """Two clients were let in by the kernel and never by the daemon, which is gone then."""

    def connect_to_one_that_ends() -> socket.socket:
        ending = bind(socket_path(place))
        ending.listen()
        return ending

    ending = connect_to_one_that_ends()
    connecting = asyncio.create_task(Client.connect(place, command=stub_command))
    let_in, _ = await asyncio.to_thread(ending.accept)
    ending.close()
    socket_path(place).unlink()
    let_in.close()
    client = await connecting
    assert client.hello.pid == running_pid(place)
    await client.close()
    end(client.hello.pid, signal.SIGTERM)

    ending = connect_to_one_that_ends()
    calling = asyncio.create_task(asyncio.to_thread(status_of, place, stub_command))
    let_in, _ = await asyncio.to_thread(ending.accept)
    ending.close()
    socket_path(place).unlink()
    let_in.close()
    assert (await calling).pid == running_pid(place)


@pytest.mark.parametrize("seed", range(5))
async def test_what_a_client_was_told_is_in_the_journal_after_sigkill(
    place: Path, stub_command: list[str], seed: int
) -> None:
    client = await Client.connect(place, command=[*stub_command, "--chatter"])
    await client.call("subscribe", Subscribe())
    told: list[int] = []
    enough = random.Random(seed).randrange(1, 400)
    async for _, notice in client.notices():
        # One that fell behind is told to resync in between; what it was told is kept all the same.
        if isinstance(notice, Message):
            told.append(notice.seq)
            if len(told) == enough:
                end(client.hello.pid, signal.SIGKILL)
    await client.close()
    journal = Journal(journal_path(place))
    kept = {seq for (seq,) in journal.connection.execute("SELECT seq FROM events")}
    assert len(told) >= enough
    assert set(told) <= kept
    assert journal.events.next_seq() > max(told)
    journal.close()


def test_without_a_daemon_and_without_leave_to_start_one_it_says_how(place: Path) -> None:
    with pytest.raises(Unavailable, match="`klineage daemon start` starts one"):
        call_once(place, "status", Empty(), spawn=False)


def test_a_daemon_that_dies_at_its_start_gives_its_last_words(
    place: Path, stub_command: list[str]
) -> None:
    log_path(place).parent.mkdir(parents=True)
    log_path(place).write_text("of an earlier daemon\n")
    with pytest.raises(Unavailable) as raised:
        status_of(place, [*stub_command, "--fail"])
    message = raised.value.message
    assert "ended at its start (exit status 1)" in message
    assert message.endswith(f"the end of {log_path(place)}:\n  no device: /dev/nothing")


async def test_the_window_gets_them_too(place: Path, stub_command: list[str]) -> None:
    with pytest.raises(Unavailable, match="no device: /dev/nothing"):
        await Client.connect(place, command=[*stub_command, "--fail"])


def test_a_program_that_is_not_there_is_said(place: Path) -> None:
    with pytest.raises(IoFailed, match="cannot start the daemon"):
        status_of(place, ["/nowhere/python"])


def test_its_log_is_private_and_a_long_one_is_set_aside(
    place: Path, stub_command: list[str]
) -> None:
    log = log_path(place)
    log.parent.mkdir(parents=True)
    log.write_bytes(b"x" * (LOG_BYTES + 1))
    status_of(place, stub_command)
    assert log.with_name("daemon.log.1").stat().st_size == LOG_BYTES + 1
    assert log.stat().st_size == 0
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_the_installed_daemon_cannot_be_shadowed_by_the_worktree(place: Path) -> None:
    assert daemon_command(place)[1:] == ["-P", "-m", "daemon", "--root", str(place)]


async def test_another_protocol_is_told_with_both_versions(
    place: Path, stub_command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status_of(place, stub_command)
    monkeypatch.setattr(handshake, "PROTOCOL", 99)
    with pytest.raises(VersionMismatch, match=r"speaks protocol 99.*daemon .*protocol 1; run"):
        await Client.connect(place, spawn=False)
    with pytest.raises(VersionMismatch, match="klineage daemon stop"):
        call_once(place, "status", Empty(), spawn=False)


def test_warnings_of_the_handshake_reach_a_blocking_caller(
    place: Path, stub_command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status_of(place, stub_command)
    lines: list[str] = []
    call_once(place, "ping", Empty(), spawn=False, warn=lines.append)
    assert lines == []
    monkeypatch.setattr(handshake, "VERSION", "9.9")
    call_once(place, "ping", Empty(), spawn=False, warn=lines.append)
    assert len(lines) == 1
    assert "this client 9.9" in lines[0]


def test_an_answer_that_does_not_come_in_time_is_unavailable(
    place: Path, stub_command: list[str]
) -> None:
    pid = status_of(place, stub_command).pid
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(Unavailable, match=r"did not answer `status` within 0\.05 s"):
        call_once(place, "status", Empty(), timeout_s=0.05)
    os.kill(pid, signal.SIGCONT)


def test_what_differs_between_client_and_daemon_is_said() -> None:
    said = Hello(1, "klineage", "0.2.0", "/venv/bin/python", "/elsewhere")
    found = handshake.differences(said, Path("/repo"), "/usr/bin/python3", "0.1.0")
    assert len(found) == 3
    assert found[0].startswith("the daemon is version 0.1.0, this client 0.2.0; ")
    assert found[1] == "the daemon runs under /usr/bin/python3, this client under /venv/bin/python"
    assert found[2] == "the daemon serves /repo, you mean /elsewhere"
    same = Hello(1, "klineage", "0.1.0", "/usr/bin/python3", "/repo/kernels")
    assert handshake.differences(same, Path("/repo"), "/usr/bin/python3", "0.1.0") == ()


def test_two_names_of_one_interpreter_are_no_difference(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    for name in ("one/python", "one/python3", "two/python"):
        (tmp_path / name).symlink_to(sys.executable)

    def found(name: str) -> tuple[str, ...]:
        said = Hello(1, "klineage", "0.1.0", str(tmp_path / name), "/repo")
        return handshake.differences(said, Path("/repo"), str(tmp_path / "one/python"), "0.1.0")

    assert found("one/python3") == ()
    assert len(found("two/python")) == 1


def test_a_daemon_holds_on_without_its_starter(place: Path, stub_command: list[str]) -> None:
    """The starter is a process that ends; the daemon is then nobody's child, and answers."""
    starter = os.fork()
    if starter == 0:
        status_of(place, stub_command)
        os._exit(0)
    assert os.waitpid(starter, 0)[1] == 0
    pid = call_once(place, "status", Empty(), spawn=False).pid
    watched = os.pidfd_open(pid)
    call_once(place, "shutdown", Shutdown(), spawn=False)
    assert select.select([watched], [], [], 10)[0] == [watched]
    os.close(watched)

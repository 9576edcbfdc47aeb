"""The server over real sockets, with stub handlers."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_client import Raw, raw
from stub_daemon import serving

from daemon import protocol
from daemon.client import Client
from daemon.errors import RpcError, Stale, Unavailable
from daemon.peer import is_other_user, peer_uid
from daemon.protocol import (
    MAX_FRAME_BYTES,
    Apply,
    Diff,
    Diffed,
    Empty,
    Gate,
    Ok,
    StatusView,
    Subscribe,
    Undo,
)
from daemon.rpc import write_request
from daemon.runtime_dir import socket_path
from daemon.server import bind

DEEP = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 100_000 + b"\n"


async def test_two_clients_are_answered_and_counted(place: Path) -> None:
    async with serving(place):
        first = await Client.connect(place, spawn=False)
        second = await Client.connect(place, spawn=False)
        status: StatusView = await second.call("status", Empty())
        assert status.clients == 2
        assert first.hello.root == str(place)
        await first.close()
        await second.close()


async def test_status_is_answered_while_a_gate_runs(place: Path) -> None:
    async with serving(place) as stub:
        client = await Client.connect(place, spawn=False)
        gate = asyncio.create_task(client.call("gate", Gate(suggestion="0123456789ab")))
        await stub.gate_began.wait()
        assert isinstance(await client.call("status", Empty()), StatusView)
        await client.close()
        with pytest.raises(Unavailable, match="closed the connection"):
            await gate


async def test_a_waiting_request_is_cancelled_when_its_client_leaves(place: Path) -> None:
    async with serving(place) as stub:
        leaving = await raw(place)
        await leaving.greet()
        await leaving.send(write_request(1, "gate", Gate(suggestion="0123456789ab")))
        await stub.gate_began.wait()
        await leaving.close()
        await stub.gate_cancelled.wait()


async def test_an_apply_goes_on_when_its_client_leaves(place: Path) -> None:
    async with serving(place) as stub:
        leaving = await raw(place)
        await leaving.greet()
        await leaving.send(write_request(1, "apply", Apply("0123456789ab")))
        await stub.apply_began.wait()
        await leaving.close()
        stub.apply_may_end.set()
        await stub.apply_ended.wait()


async def test_an_error_keeps_its_code_message_and_data(place: Path) -> None:
    async with serving(place) as stub:
        stub.apply_may_end.set()
        client = await Client.connect(place, spawn=False)
        with pytest.raises(Stale, match=r"gemm\.cl changed since") as raised:
            await client.call("apply", Apply("0123456789ab"))
        assert raised.value.data == {"path": "gemm.cl"}
        await client.close()


async def test_a_fault_of_a_handler_is_one_line_and_the_daemon_lives(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(place):
        peer = await raw(place)
        await peer.greet()
        answer = await peer.ask(write_request(1, "undo", Undo()))
        assert answer.error is not None
        assert answer.error.code == protocol.INTERNAL_ERROR
        assert answer.error.message.startswith("ZeroDivisionError: a fault; ")
        assert "Traceback" in caplog.text
        assert (await peer.ask(write_request(2, "ping", Empty()))).error is None
        await peer.close()


async def code_of(peer: Raw, line: bytes) -> tuple[int, str]:
    answer = await peer.ask(line)
    assert answer.error is not None
    return answer.error.code, answer.error.message


async def test_bad_requests_get_the_standard_codes_and_name_the_field(place: Path) -> None:
    async with serving(place):
        peer = await raw(place)
        assert (await code_of(peer, b"{nope\n"))[0] == protocol.PARSE_ERROR
        assert (await code_of(peer, b"\xff\xfe\n"))[0] == protocol.PARSE_ERROR
        assert (await code_of(peer, DEEP))[0] == protocol.PARSE_ERROR
        code, message = await code_of(peer, b'{"jsonrpc":"2.0","id":1}\n')
        assert (code, "`method`" in message) == (protocol.INVALID_REQUEST, True)
        assert (await code_of(peer, b'{"jsonrpc":"2.0","method":"ping"}\n'))[0] == (
            protocol.INVALID_REQUEST
        )
        await peer.greet()
        code, message = await code_of(peer, b'{"jsonrpc":"2.0","id":1,"method":"pong"}\n')
        assert (code, "`pong`" in message) == (protocol.METHOD_NOT_FOUND, True)
        line = b'{"jsonrpc":"2.0","id":1,"method":"gate","params":{"suggestion":7}}\n'
        code, message = await code_of(peer, line)
        assert (code, "`$.suggestion`" in message) == (protocol.INVALID_PARAMS, True)
        line = b'{"jsonrpc":"2.0","id":1,"method":"gate","params":{"tear":"screen"}}\n'
        code, message = await code_of(peer, line)
        assert (code, "`tear`" in message) == (protocol.INVALID_PARAMS, True)
        await peer.close()


async def test_a_request_that_cannot_be_read_is_answered_under_its_id(place: Path) -> None:
    async with serving(place):
        peer = await raw(place)
        answer = await peer.ask(b'{"jsonrpc":"1.0","id":41,"method":"ping"}\n')
        assert answer.id == 41
        await peer.close()


async def test_presence_is_held_from_hello_until_the_client_is_gone(place: Path) -> None:
    events: list[str] = []

    @contextmanager
    def presence() -> Iterator[None]:
        events.append("came")
        try:
            yield
        finally:
            events.append("left")

    async with serving(place, presence=presence):
        peer = await raw(place)
        await peer.ask(b"{}\n")
        assert events == []
        await peer.greet()
        assert events == ["came"]
        await peer.close()
    assert events == ["came", "left"]


async def test_hello_must_come_first(place: Path) -> None:
    async with serving(place):
        peer = await raw(place)
        code, message = await code_of(peer, write_request(1, "status", Empty()))
        assert (code, "`hello`" in message) == (protocol.INVALID_REQUEST, True)
        await peer.greet()
        assert (await peer.ask(write_request(2, "status", Empty()))).error is None
        await peer.close()


async def test_another_protocol_is_refused_with_both_versions_and_what_to_do(place: Path) -> None:
    async with serving(place):
        peer = await raw(place)
        line = b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":9,"version":"3.1","new":0}}\n'
        code, message = await code_of(peer, line)
        assert code == protocol.VERSION_MISMATCH
        assert "protocol 9" in message
        assert f"protocol {protocol.PROTOCOL}" in message
        assert "klineage daemon stop" in message
        assert await peer.is_closed()
        await peer.close()


async def test_an_oversized_request_is_refused_and_others_are_served(place: Path) -> None:
    async with serving(place):
        peer = await raw(place)
        await peer.greet()
        # Refused when the limit is passed, before the line ends.
        peer.writer.write(b"x" * (2 * MAX_FRAME_BYTES))
        answer = await peer.receive()
        assert answer.error is not None
        assert answer.error.code == protocol.INVALID_REQUEST
        assert str(MAX_FRAME_BYTES) in answer.error.message
        assert await peer.is_closed()
        peer.writer.transport.abort()
        other = await Client.connect(place, spawn=False)
        assert await other.call("ping", Empty()) == Ok("pong")
        await other.close()


async def test_an_oversized_result_is_an_error_and_the_connection_lives(place: Path) -> None:
    async with serving(place):
        client = await Client.connect(place, spawn=False)
        large: Diffed = await client.call("diff", Diff("7"))
        assert len(large.files[0].after) == 7 << 20
        with pytest.raises(RpcError, match="the limit is"):
            await client.call("diff", Diff("9"))
        assert await client.call("ping", Empty()) == Ok("pong")
        await client.close()


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lines=st.lists(st.binary(max_size=200), max_size=5))
def test_garbage_never_stops_the_daemon(place: Path, lines: list[bytes]) -> None:
    async def scenario() -> None:
        async with serving(place):
            for greeted in (False, True):
                peer = await raw(place)
                if greeted:
                    await peer.greet()
                await peer.send(b"\n".join(lines) + b"\n")
                peer.writer.write_eof()
                answers = (await peer.reader.read()).splitlines()
                assert all(msgspec.json.decode(answer)["error"] for answer in answers)
                await peer.close()
            client = await Client.connect(place, spawn=False)
            assert await client.call("ping", Empty()) == Ok("pong")
            await client.close()

    asyncio.run(scenario())


async def test_too_many_unanswered_requests_are_refused_as_busy(place: Path) -> None:
    async with serving(place):
        peer = await raw(place)
        await peer.greet()
        for id in range(1, 66):
            await peer.send(write_request(id, "gate", Gate(suggestion="0123456789ab")))
        answer = await peer.receive()
        assert answer.id == 65
        assert answer.error is not None
        assert answer.error.code == protocol.BUSY
        await peer.close()


async def test_a_process_of_another_user_is_refused(place: Path) -> None:
    async with serving(place, owner=os.getuid() + 1):
        with pytest.raises(Unavailable, match="closed the connection"):
            await Client.connect(place, spawn=False)


def test_the_other_end_is_known_by_its_user_id() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert peer_uid(one) == os.getuid()
        assert not is_other_user(one)
        assert is_other_user(one, owner=os.getuid() + 1)


async def test_the_socket_is_its_owners_alone_and_gone_after(place: Path) -> None:
    async with serving(place):
        assert stat.S_IMODE(socket_path(place).stat().st_mode) == 0o600
    assert not socket_path(place).exists()


async def test_a_socket_left_by_a_dead_daemon_is_replaced(place: Path) -> None:
    bind(socket_path(place)).close()
    assert socket_path(place).is_socket()
    with pytest.raises(Unavailable, match="klineage daemon start"):
        await Client.connect(place, spawn=False)
    async with serving(place):
        client = await Client.connect(place, spawn=False)
        await client.close()


async def test_stopping_finishes_an_apply_and_gives_up_a_gate(place: Path) -> None:
    async with serving(place) as stub:
        client = await Client.connect(place, spawn=False)
        gate = asyncio.create_task(client.call("gate", Gate(suggestion="0123456789ab")))
        apply = asyncio.create_task(client.call("apply", Apply("0123456789ab")))
        await stub.gate_began.wait()
        await stub.apply_began.wait()
        stub.stop.set()
        await stub.gate_cancelled.wait()
        stub.apply_may_end.set()
        with pytest.raises(Stale):
            await apply
        with pytest.raises(Unavailable):
            await gate
        await client.close()


async def test_shutdown_is_answered_and_announced(place: Path) -> None:
    async with serving(place):
        client = await Client.connect(place, spawn=False)
        await client.call("subscribe", Subscribe())
        assert await client.call("shutdown", protocol.Shutdown()) == Ok("stopping")
        seen = [method async for method, _ in client.notices()]
        assert seen == ["closing"]
        await client.close()

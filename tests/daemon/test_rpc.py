"""Messages and their bytes."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.errors import BY_CODE, RpcError
from daemon.protocol import INTERNAL_ERROR, Diff, FileDiff, Message, Ok
from daemon.rpc import (
    BadFrame,
    error_of,
    failure_of,
    read_message,
    read_notice,
    read_params,
    read_request,
    read_result,
    write_failure,
    write_notice,
    write_request,
    write_result,
)

TEXT = st.text(max_size=50)


@given(text=TEXT, id=st.integers(0, 2**53) | TEXT)
def test_a_request_is_one_line_and_reads_back(text: str, id: int | str) -> None:
    frame = write_request(id, "diff", Diff(text))
    assert frame.index(b"\n") == len(frame) - 1
    request = read_request(frame)
    assert (request.id, request.method) == (id, "diff")
    assert read_params(request.params, Diff) == Diff(text)


@given(text=TEXT)
def test_answers_and_notifications_read_back(text: str) -> None:
    assert read_result(read_message(write_result(1, Ok(text))), "ping") == Ok(text)
    message = read_message(write_notice("message", Message(7, "info", text)))
    assert read_notice(message) == Message(7, "info", text)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_a_bad_frame(data: bytes) -> None:
    with suppress(BadFrame):
        assert read_request(data).jsonrpc == "2.0"


@pytest.mark.parametrize("kind", BY_CODE.values())
def test_every_error_is_raised_again_as_itself(kind: type[RpcError]) -> None:
    frame = write_failure(1, failure_of(kind("what, where, what to try", {"path": "gemm.cl"})))
    with pytest.raises(kind, match="what, where, what to try") as raised:
        read_result(read_message(frame), "ping")
    assert type(raised.value) is kind
    assert (raised.value.code, raised.value.data) == (kind.code, {"path": "gemm.cl"})


def test_an_unknown_code_is_kept() -> None:
    failure = msgspec.structs.replace(failure_of(RpcError("from the future")), code=-32050)
    assert error_of(failure).code == -32050


def test_a_fault_of_ours_is_one_line_with_its_type() -> None:
    failure = failure_of(ValueError("first\nsecond"))
    assert failure.code == INTERNAL_ERROR
    assert failure.message.startswith("ValueError: first; this is a fault of klineage")
    assert failure_of(ValueError()).message.startswith("ValueError: no message; ")


def test_a_notification_of_a_newer_daemon_is_unknown() -> None:
    frame = write_notice("weather.changed", FileDiff("", "", ""))
    assert read_notice(read_message(frame)) is None

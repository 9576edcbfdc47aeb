"""Failures become one line and an exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from daemon.errors import (
    BY_CODE,
    Busy,
    ConfigurationError,
    IoFailed,
    NotConfirmed,
    NotFound,
    RpcError,
    Stale,
    Unavailable,
    Untrusted,
    VersionMismatch,
)
from daemon.verbs.failure import DONE, ENVIRONMENT, NEGATIVE, USAGE, exit_status
from gate.errors import EnvironmentLacks, GateError
from library.errors import LibraryError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotConfirmed("only screened"), NEGATIVE),
        (Stale("changed"), NEGATIVE),
        (NotFound("no such thing"), NEGATIVE),
        (Busy("another daemon"), NEGATIVE),
        (Untrusted("not trusted"), USAGE),
        (ConfigurationError("no key"), USAGE),
        (Unavailable("no device"), ENVIRONMENT),
        (VersionMismatch("protocol 2"), ENVIRONMENT),
        (IoFailed("disk full"), ENVIRONMENT),
        (RpcError("a fault"), ENVIRONMENT),
        (EnvironmentLacks("no interpreter", "set gate.python"), ENVIRONMENT),
        (GateError("the worker died"), ENVIRONMENT),
        (LibraryError("broken card"), ENVIRONMENT),
    ],
)
def test_each_failure_has_its_exit_status_and_its_line(
    error: Exception, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with exit_status(json_wanted=False) as outcome:
        raise error
    assert outcome.status == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"klineage: {error}\n"


def test_every_error_a_daemon_may_answer_has_a_status() -> None:
    for kind in BY_CODE.values():
        with exit_status(json_wanted=True) as outcome:
            raise kind("why")
        assert outcome.status in (NEGATIVE, USAGE, ENVIRONMENT)


def test_a_failure_is_json_where_json_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with exit_status(json_wanted=True):
        raise Stale("gemm.cl changed")
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"error": {"kind": "Stale", "message": "gemm.cl changed"}}
    assert printed.err == ""


def test_success_is_0_and_an_interrupt_is_what_a_shell_expects() -> None:
    with exit_status(json_wanted=False) as outcome:
        pass
    assert outcome.status == DONE
    with exit_status(json_wanted=False) as outcome:
        raise KeyboardInterrupt
    assert outcome.status == 130


def test_a_fault_of_ours_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), exit_status(json_wanted=False):
        raise ZeroDivisionError


@pytest.mark.parametrize("words", [1, 100_000])
def test_a_reader_that_leaves_ends_the_verb_quietly(words: int) -> None:
    code = (
        "import sys\n"
        "from daemon.verbs.failure import exit_status\n"
        "sys.stdin.readline()\n"
        "with exit_status(json_wanted=False) as outcome:\n"
        f"    print('word ' * {words})\n"
        "sys.exit(outcome.status)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        text=True,
    ) as verb:
        assert verb.stdin is not None
        assert verb.stdout is not None
        assert verb.stderr is not None
        verb.stdout.close()
        verb.stdin.write("\n")
        verb.stdin.close()
        assert verb.stderr.read() == ""
        assert verb.wait() == 0

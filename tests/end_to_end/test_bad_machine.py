"""Settings, rights, disks and sockets that are not as they should be: one clear line, nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from person import (
    ENVIRONMENT,
    IMPATIENT,
    NEGATIVE,
    ONE_SKILL,
    QUICK,
    USAGE,
    Person,
    living,
    told,
    wait_for_end,
)

pytestmark = [pytest.mark.serial, pytest.mark.timeout(120)]


# ---- configuration -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "repository", "says"),
    [
        ("[gate\n", "", ["config/klineage/klineage.toml is not TOML", "line 1"]),
        ("", "[watch]\npoll\n", ["work/klineage.toml is not TOML", "line 2"]),
        ("[gate]\npyton = 'x'\n", "", ["[gate] has no key pyton", "did you mean python?"]),
        ("", "[wotch]\n", ["work/klineage.toml: no table [wotch]", "did you mean watch?"]),
        ("[gate]\nminimum_gain = 'a lot'\n", "", ["[gate] minimum_gain: expected `float`"]),
        ("", "[gate]\npython = 'evil'\n", ["[gate] python may not be set by a repository"]),
    ],
)
def test_a_wrong_setting_is_named_with_its_file_and_the_nearest_valid_one(
    user: str, repository: str, says: list[str]
) -> None:
    with living(user or QUICK) as person:
        (person.root / "klineage.toml").write_text(repository)
        line = told(person.run("status", expect=USAGE))
        assert all(words in line for words in says), line
        error = person.json("suggest", expect=USAGE)["error"]
        assert error == {"kind": "ConfigurationError", "message": line.removeprefix("klineage: ")}
        person.settings.write_text(QUICK)
        (person.root / "klineage.toml").unlink()
        person.run("status")


def test_an_interpreter_that_is_not_there_is_named_with_the_key_that_sets_it() -> None:
    lacking = IMPATIENT.replace("[gate]", '[gate]\npython = "/no/such/python"', 1)
    with living(lacking) as person:
        person.trust()
        line = told(person.run("gate", "gemm/gemm_naive.cl", expect=ENVIRONMENT))
        assert "cannot run /no/such/python: No such file or directory" in line
        assert "set python in [gate]" in line
        assert line == told(person.run("doctor", expect=ENVIRONMENT))
        status = person.json("status")
        assert len(status["warnings"]) == 1
        assert status["kernels"] == 1
        (suggestion, *_) = person.json("suggest", "gemm/gemm_naive.cl", "--wait")
        assert suggestion["reason"].startswith("not gated: cannot run /no/such/python")


# ---- files, disks and sockets ------------------------------------------------------------------


def test_a_socket_that_a_dead_daemon_left_is_replaced(person: Person) -> None:
    first = person.json("status")["pid"]
    (socket,) = (person.home / "run" / "klineage").glob("*.sock")
    os.kill(first, signal.SIGKILL)
    wait_for_end([first], 10)
    assert socket.is_socket()
    assert person.json("daemon", "status", expect=NEGATIVE) == {"running": False}
    assert person.json("status")["pid"] != first


@pytest.fixture(scope="module")
def confirmed() -> Iterator[tuple[Person, str]]:
    """A person with a suggestion that one key would apply."""
    with living(QUICK + ONE_SKILL) as someone:
        someone.trust()
        (suggestion,) = someone.json("suggest", "gemm/gemm_naive.cl", "--wait")
        verdict = someone.json("gate", suggestion["id"])
        assert verdict["status"] == "faster"
        yield someone, suggestion["id"]
        assert "Traceback" not in someone.log()


def test_a_worktree_whose_name_has_spaces_and_accents_is_like_any_other() -> None:
    with living(QUICK + ONE_SKILL, name="Schöne Kernel, α β") as person:
        person.trust()
        (suggestion,) = person.json("suggest", "gemm/gemm_naive.cl", "--wait")
        before = person.sources()
        done = person.json("apply", suggestion["id"], "--confirm")
        assert done["entry"]["kind"] == "applied"
        assert person.sources() != before
        assert person.json("undo")["entry"]["kind"] == "undone"
        assert person.sources() == before
        assert person.json("status")["root"] == str(person.root)


@pytest.mark.parametrize(
    ("what", "mode", "says"),
    [
        ("gemm/gemm_naive.cl", 0o444, "gemm/gemm_naive.cl is read-only (mode 0444); try chmod u+w"),
        ("gemm", 0o555, "gemm/gemm_naive.cl is in a read-only folder (mode 0555); try chmod u+w"),
    ],
)
def test_what_may_not_be_written_is_not_written(
    what: str, mode: int, says: str, confirmed: tuple[Person, str]
) -> None:
    person, suggestion = confirmed
    before, history = person.sources(), person.json("history")
    path = person.root / what
    usual = path.stat().st_mode
    path.chmod(mode)
    try:
        line = told(person.run("apply", suggestion, expect=ENVIRONMENT))
    finally:
        path.chmod(usual)
    assert says in line
    assert "nothing was changed" in line
    assert person.sources() == before
    assert person.json("history") == history


FULL_DISK_MIB = 8

IN_A_SMALL_SPACE = f"""
set -e
mkdir -p "$1"
mount -t tmpfs -o size={FULL_DISK_MIB}m none "$1"
shift
exec "$@"
"""


def test_a_full_disk_under_the_journal_changes_no_file_and_says_so() -> None:
    # A mount namespace of the daemon's own, so nothing of this machine is touched.
    space = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*space, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    with living(QUICK + ONE_SKILL) as person:
        state = person.home / "state"
        start = person.argv("daemon", "start", "--json", "--root", str(person.root))
        subprocess.run(
            [*space, "sh", "-c", IN_A_SMALL_SPACE, "sh", str(state), *start],
            check=True,
            env=person.environment,
            capture_output=True,
        )
        person.trust()
        (suggestion,) = person.json("suggest", "gemm/gemm_naive.cl", "--wait")
        assert person.json("gate", suggestion["id"])["status"] == "faster"
        before = person.sources()

        filler = Path(f"/proc/{person.json('status')['pid']}/root{state}/filler")
        fill(filler)
        line = told(person.run("apply", suggestion["id"], expect=ENVIRONMENT))
        assert "full" in line or "No space left" in line
        assert "nothing was changed" in line
        assert person.sources() == before
        assert person.json("history") == []
        assert person.json("status")["kernels"] == 1

        filler.unlink()
        person.json("apply", suggestion["id"])
        assert person.sources() != before
        person.json("undo")
        assert person.sources() == before


def fill(file: Path) -> None:
    """Write until the file system has no room for one byte more."""
    with file.open("wb", buffering=0) as out:
        for size in (1 << 16, 1 << 10, 1):
            with suppress(OSError):
                while True:
                    out.write(b"\0" * size)

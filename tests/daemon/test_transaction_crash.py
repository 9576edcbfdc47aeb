"""What a kill, a full disk or a failing one leaves behind."""

from __future__ import annotations

import errno
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from daemon.errors import IoFailed, Stale
from daemon.journal import Journal
from daemon.transaction import ChangeLog, ChangeMeta, Kind
from daemon.transaction.disk import Disk
from gate.values.candidate import FileEdit
from gate.values.kernel import digest

REPOSITORY = Path(__file__).parents[2]
OLD = {"gemm.cl": b"old kernel\n", "host/launch.py": b"old launch\r\n"}
NEW = {"gemm.cl": b"new kernel, longer\n", "host/launch.py": b"new launch\r\n"}
META = ChangeMeta("s", "opencl.stage", "gemm.cl::gemm")


class Killed(BaseException):
    """Stands for SIGKILL: nothing of ours runs after it."""


class FaultyDisk(Disk):
    """Does what `fault` says before every call that changes something; counts them."""

    def __init__(self, fault: Callable[[int, str], None] = lambda step, call: None) -> None:
        self.calls = 0
        self._fault = fault

    def _step(self, call: str) -> None:
        self.calls += 1
        self._fault(self.calls, call)

    def create(self, temporary: Path) -> int:
        self._step("create")
        return super().create(temporary)

    def write(self, descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[: len(data) // 2])
        self._step("write")
        super().write(descriptor, data[len(data) // 2 :])

    def imitate(self, descriptor: int, original: Path) -> None:
        self._step("imitate")
        super().imitate(descriptor, original)

    def sync(self, descriptor: int) -> None:
        self._step("sync")
        super().sync(descriptor)

    def rename(self, temporary: Path, location: Path) -> None:
        self._step("rename")
        super().rename(temporary, location)

    def sync_folder(self, folder: Path) -> None:
        self._step("sync_folder")
        super().sync_folder(folder)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "worktree"
    (folder / "host").mkdir(parents=True)
    put(folder, OLD)
    return folder


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "state" / "journal.db")
    yield journal
    journal.close()


def put(root: Path, contents: dict[str, bytes]) -> None:
    for path, data in contents.items():
        (root / path).write_bytes(data)


def contents(root: Path) -> dict[str, bytes]:
    return {path: (root / path).read_bytes() for path in OLD}


def edits() -> list[FileEdit]:
    return [FileEdit(path, digest(OLD[path]), NEW[path]) for path in OLD]


def leftovers(root: Path) -> list[Path]:
    return list(root.rglob(".klineage-*"))


def kill_at(step: int) -> Callable[[int, str], None]:
    def fault(at: int, call: str) -> None:
        if at == step:
            raise Killed(call)

    return fault


def refuse(step: int, code: int) -> Callable[[int, str], None]:
    def fault(at: int, call: str) -> None:
        if at == step:
            raise OSError(code, os.strerror(code), call)

    return fault


STEPS = 12
"""Calls that one change of two files makes: create, write, imitate, sync, rename, sync_folder."""


def test_the_steps_below_are_all_there_are(root: Path, journal: Journal) -> None:
    disk = FaultyDisk()
    ChangeLog(journal, root, disk=disk).apply(edits(), META)
    assert disk.calls == STEPS


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_a_kill_during_apply_leaves_all_old_or_all_new(
    step: int, root: Path, journal: Journal
) -> None:
    with pytest.raises(Killed):
        ChangeLog(journal, root, disk=FaultyDisk(kill_at(step))).apply(edits(), META)
    for path, data in contents(root).items():
        assert data in (OLD[path], NEW[path])
    history = ChangeLog(journal, root)
    (message,) = history.recover()
    assert contents(root) in (OLD, NEW)
    assert leftovers(root) == []
    done = contents(root) == NEW
    assert bool(history.entries()) == done
    assert ("all of it was done" if done else "its files are as before") in message
    assert history.recover() == []


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_a_kill_during_undo_leaves_all_old_or_all_new(
    step: int, root: Path, journal: Journal
) -> None:
    ChangeLog(journal, root).apply(edits(), META)
    with pytest.raises(Killed):
        ChangeLog(journal, root, disk=FaultyDisk(kill_at(step))).undo()
    history = ChangeLog(journal, root)
    history.recover()
    assert contents(root) in (OLD, NEW)
    assert leftovers(root) == []
    assert history.entries()[0].undoable == (contents(root) == NEW)


@pytest.mark.parametrize("step", range(1, 9))
def test_a_kill_during_recovery_is_recovered_too(step: int, root: Path, journal: Journal) -> None:
    renamed_one = kill_at(10)
    with pytest.raises(Killed):
        ChangeLog(journal, root, disk=FaultyDisk(renamed_one)).apply(edits(), META)
    assert contents(root) not in (OLD, NEW)
    try:
        ChangeLog(journal, root, disk=FaultyDisk(kill_at(step))).recover()
    except Killed:
        ChangeLog(journal, root).recover()
    assert contents(root) == OLD
    assert leftovers(root) == []


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_a_full_disk_at_any_step_changes_nothing_and_says_so(
    step: int, root: Path, journal: Journal
) -> None:
    full = FaultyDisk(refuse(step, errno.ENOSPC))
    with pytest.raises(IoFailed, match=r"No space left .* nothing was changed; free some space"):
        ChangeLog(journal, root, disk=full).apply(edits(), META)
    assert contents(root) == OLD
    assert leftovers(root) == []
    history = ChangeLog(journal, root)
    assert history.entries() == ()
    assert history.recover() == []
    history.apply(edits(), META)
    assert contents(root) == NEW


def test_a_disk_that_fails_for_good_half_way_is_settled_at_the_next_start(
    root: Path, journal: Journal
) -> None:
    def fault(at: int, call: str) -> None:
        if at >= 10:  # the first file is renamed, the second not, and nothing works any more
            raise OSError(errno.EIO, os.strerror(errno.EIO), call)

    with pytest.raises(IoFailed, match=r"could not be put back .* when the daemon starts again"):
        ChangeLog(journal, root, disk=FaultyDisk(fault)).apply(edits(), META)
    assert contents(root) not in (OLD, NEW)
    (message,) = ChangeLog(journal, root).recover()
    assert "its files are as before" in message
    assert contents(root) == OLD


def test_a_journal_that_is_full_at_the_end_puts_the_files_back(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable = journal.durable

    def full(what: str) -> AbstractContextManager[sqlite3.Connection]:
        if what == "record that the change was made":
            raise IoFailed(f"cannot {what}: the disk is full; nothing was changed")
        return durable(what)

    monkeypatch.setattr(journal, "durable", full)
    with pytest.raises(IoFailed, match="the disk is full; nothing was changed"):
        ChangeLog(journal, root).apply(edits(), META)
    assert contents(root) == OLD
    monkeypatch.undo()
    ChangeLog(journal, root).apply(edits(), META)
    assert contents(root) == NEW


def test_a_file_edited_after_the_kill_is_left_alone_and_the_others_go_back(
    root: Path, journal: Journal
) -> None:
    with pytest.raises(Killed):
        ChangeLog(journal, root, disk=FaultyDisk(kill_at(11))).apply(edits(), META)
    (root / "host/launch.py").write_bytes(b"mine\n")
    (message,) = ChangeLog(journal, root).recover()
    assert contents(root) == {"gemm.cl": OLD["gemm.cl"], "host/launch.py": b"mine\n"}
    assert "host/launch.py was edited since and left as it is" in message


def test_a_file_replaced_by_a_link_after_the_kill_is_not_written_through(
    root: Path, tmp_path: Path, journal: Journal
) -> None:
    with pytest.raises(Killed):
        ChangeLog(journal, root, disk=FaultyDisk(kill_at(10))).apply(edits(), META)
    outside = tmp_path / "outside.cl"
    outside.write_bytes(NEW["gemm.cl"])
    (root / "gemm.cl").unlink()
    (root / "gemm.cl").symlink_to(outside)
    ChangeLog(journal, root).recover()
    assert outside.read_bytes() == NEW["gemm.cl"]


def test_an_editor_that_saves_during_staging_wins(root: Path, journal: Journal) -> None:
    def save(at: int, call: str) -> None:
        if at == 8:
            (root / "gemm.cl").write_bytes(b"saved just now\n")

    with pytest.raises(Stale, match=r"gemm\.cl changed just now"):
        ChangeLog(journal, root, disk=FaultyDisk(save)).apply(edits(), META)
    assert contents(root) == {**OLD, "gemm.cl": b"saved just now\n"}
    assert leftovers(root) == []


def test_an_interrupted_request_can_be_repeated_under_its_key(root: Path, journal: Journal) -> None:
    keyed = ChangeMeta("s", "opencl.stage", "gemm.cl::gemm", key="k1")
    with pytest.raises(Killed):
        ChangeLog(journal, root, disk=FaultyDisk(kill_at(3))).apply(edits(), keyed)
    change = ChangeLog(journal, root).apply(edits(), keyed)
    assert change.kind is Kind.APPLIED
    assert contents(root) == NEW


def test_a_request_finished_by_recovery_is_answered_under_its_key(
    root: Path, journal: Journal
) -> None:
    keyed = ChangeMeta("s", "opencl.stage", "gemm.cl::gemm", key="k1")
    with pytest.raises(Killed):
        ChangeLog(journal, root, disk=FaultyDisk(kill_at(STEPS))).apply(edits(), keyed)
    history = ChangeLog(journal, root)
    change = history.apply(edits(), keyed)
    assert [entry.id for entry in history.entries()] == [change.id]
    assert contents(root) == NEW


def crash_rounds(folder: Path, rounds: int) -> None:
    seed = random.randrange(1_000_000)
    program = [sys.executable, str(Path(__file__).with_name("crash_rounds.py"))]
    run = subprocess.run(
        [*program, str(folder), str(rounds), str(seed)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=False,
    )
    assert run.returncode == 0, f"seed {seed}\n{run.stdout[-3000:]}{run.stderr[-3000:]}"


def test_fifty_kills_leave_old_or_new_bytes_and_lose_no_answered_change(tmp_path: Path) -> None:
    crash_rounds(tmp_path, rounds=50)


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_a_thousand_kills_leave_old_or_new_bytes_and_lose_no_answered_change(
    tmp_path: Path,
) -> None:
    crash_rounds(tmp_path, rounds=1000)


TINY_DISK = """
set -e
mount -t tmpfs -o size=64k none "$1"
head -c 30000 /dev/zero > "$1/gemm.cl"
shift
exec "$@"
"""

FILL = """
import sys
from pathlib import Path
from daemon.errors import IoFailed
from daemon.journal import Journal
from daemon.transaction import ChangeLog, ChangeMeta
from gate.values.candidate import FileEdit
from gate.values.kernel import digest
root = Path(sys.argv[1])
old = (root / "gemm.cl").read_bytes()
history = ChangeLog(Journal(Path(sys.argv[2])), root)
try:
    history.apply([FileEdit("gemm.cl", digest(old), b"x" * 60000)], ChangeMeta("s", "skill", "k"))
except IoFailed as error:
    print(error)
assert (root / "gemm.cl").read_bytes() == old
assert [path.name for path in root.iterdir()] == ["gemm.cl"]
"""


def test_a_disk_that_is_really_full_changes_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "tiny"
    disk.mkdir()
    # A mount namespace of its own, so nothing of this machine is touched.
    space = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*space, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no unprivileged mount namespaces here")
    program = [sys.executable, "-c", FILL, str(disk), str(tmp_path / "journal.db")]
    run = subprocess.run(
        [*space, "sh", "-c", TINY_DISK, "sh", str(disk), *program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "cannot write gemm.cl: No space left on device; nothing was changed" in run.stdout

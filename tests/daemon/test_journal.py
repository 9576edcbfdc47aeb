"""The journal over real SQLite files."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from daemon.errors import Busy, IoFailed, Unavailable
from daemon.journal import Journal
from gate.values.artifact import BuildArtifact
from gate.values.trace import ArgumentTrace, LaunchTrace
from gate.values.verdict import Check, Outcome, Status, Tier, Timing, Verdict


def make_verdict(status: Status = Status.FASTER, tier: Tier = Tier.CONFIRM) -> Verdict:
    return Verdict(
        status=status,
        tier=tier,
        closure="closure",
        candidate="candidate",
        workload="workload",
        platform="pocl-cpu",
        device="cpu",
        message="2.0x",
        checks=(Check("correctness", Outcome.PASSED, "max error 0"),),
        timings=(Timing({"N": 256}, 20.0, 10.0, 2.0, 1.9, 2.1, 0.97, "ABBA"),),
        candidate_artifact=BuildArtifact("digest", {"ptx": "text"}, {"registers": None}),
        toolchain={"pocl": "6.0"},
    )


KEY = ("closure", "candidate", "workload", "pocl-cpu")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal.db"


def test_a_verdict_comes_back_without_the_text_of_its_binaries(path: Path) -> None:
    journal = Journal(path, now=lambda: "2026-01-01T00:00:00.000+00:00")
    journal.verdicts.put(make_verdict())
    journal.close()
    journal = Journal(path)
    found = journal.verdicts.newest(*KEY, Tier.CONFIRM)
    assert found is not None
    at, verdict = found
    assert at == "2026-01-01T00:00:00.000+00:00"
    assert verdict.candidate_artifact == BuildArtifact("digest", {}, {"registers": None})
    assert verdict.timings == make_verdict().timings
    assert verdict.checks == make_verdict().checks
    journal.close()


def test_the_newest_verdict_of_a_tier_is_found(path: Path) -> None:
    journal = Journal(path)
    journal.verdicts.put(make_verdict(Status.FASTER))
    journal.verdicts.put(make_verdict(Status.TIE))
    journal.verdicts.put(make_verdict(Status.NOISY, Tier.SCREEN))
    found = journal.verdicts.newest(*KEY, Tier.CONFIRM)
    assert found is not None
    assert found[1].status is Status.TIE
    assert journal.verdicts.newest("other", *KEY[1:], Tier.CONFIRM) is None
    journal.close()


def test_a_verdict_of_another_version_is_measured_anew(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(path)
    journal.verdicts.put(make_verdict())
    journal.connection.execute("""UPDATE verdicts SET payload = '{"status": "splendid"}'""")
    assert journal.verdicts.newest(*KEY, Tier.CONFIRM) is None
    assert "cannot be read" in caplog.text
    journal.close()


def test_a_trace_replaces_the_one_before(path: Path) -> None:
    journal = Journal(path)
    traces = tuple(
        LaunchTrace(
            axes={"N": n},
            kernel="gemm",
            grid=(n, n),
            block=(16, 16),
            options={"num_warps": 4, "build": "-cl-mad-enable"},
            arguments={
                "a": ArgumentTrace("pointer", "float32", alignment_bytes=256, overlaps=("b",)),
                "n": ArgumentTrace("scalar", "int32", value=n),
                "eps": ArgumentTrace("scalar", "float32", value=0.5),
                "fast": ArgumentTrace("constexpr", "bool", value=True),
            },
        )
        for n in (128, 256)
    )
    journal.traces.put("closure", "workload", "pocl-cpu", traces[:1])
    journal.traces.put("closure", "workload", "pocl-cpu", traces)
    assert journal.traces.get("closure", "workload", "pocl-cpu") == traces
    assert journal.traces.get("other", "workload", "pocl-cpu") is None
    journal.close()


def test_a_rejection_is_remembered_until_it_is_forgotten(path: Path) -> None:
    journal = Journal(path)
    journal.rejections.put("0123456789ab", "opencl.stage", "gemm.cl::gemm", "slow on my machine")
    found = journal.rejections.get("0123456789ab")
    assert found is not None
    assert found.reason == "slow on my machine"
    journal.rejections.forget("0123456789ab")
    assert journal.rejections.get("0123456789ab") is None
    journal.close()


def test_a_job_that_was_running_is_interrupted_by_recovery_once(path: Path) -> None:
    journal = Journal(path)
    journal.jobs.end(journal.jobs.begin("done", "closure", "screen"), "done")
    journal.jobs.begin("cut off", "closure", "confirm")
    journal.close()
    journal = Journal(path)
    assert journal.recover() == (
        "interrupted: confirm of cut off was running when the daemon ended",
    )
    assert [job.state for job in journal.jobs.newest(10)] == ["interrupted", "done"]
    assert journal.recover() == ()
    journal.close()


def test_old_ended_jobs_go_and_running_ones_stay(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daemon.journal_jobs.KEPT", 2)
    journal = Journal(path)
    running = journal.jobs.begin("running", "closure", "screen")
    for _ in range(5):
        journal.jobs.end(journal.jobs.begin("short", "closure", "screen"), "done")
    assert len(journal.jobs.newest(100)) == 3
    assert journal.jobs.newest(100)[-1].id == running
    journal.close()


def test_the_files_are_their_owners_alone(path: Path) -> None:
    path.parent.mkdir(mode=0o755)
    journal = Journal(path)
    journal.kv.put("key", "value")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    journal.close()


@pytest.mark.parametrize("damage", ["head", "middle"])
def test_a_damaged_file_is_moved_aside_and_said(path: Path, damage: str) -> None:
    journal = Journal(path)
    for number in range(200):
        journal.kv.put(f"key {number}", "x" * 500)
    journal.close()
    content = bytearray(path.read_bytes())
    if damage == "head":
        content[:16] = b"not a database.."
    else:
        content[8192:40960] = os.urandom(32768)
    path.write_bytes(content)
    journal = Journal(path)
    assert journal.kv.get("key 1") is None
    (message,) = journal.recover()
    (aside,) = path.parent.glob("journal.db.damaged-*Z")
    assert str(aside) in message
    assert aside.read_bytes() == content
    journal.close()


def test_a_newer_versions_file_is_refused_and_left_alone(path: Path) -> None:
    journal = Journal(path)
    journal.connection.execute("PRAGMA user_version=99")
    journal.close()
    with pytest.raises(Unavailable, match=r"newer klineage \(schema 99"):
        Journal(path)
    assert path.exists()


def test_a_failed_write_leaves_nothing_behind(path: Path) -> None:
    def half_done() -> None:
        with journal.durable("test") as connection:
            connection.execute("INSERT INTO kv VALUES ('half', 'done')")
            raise ZeroDivisionError

    journal = Journal(path)
    with pytest.raises(ZeroDivisionError):
        half_done()
    assert journal.kv.get("half") is None
    journal.kv.put("next", "works")
    journal.close()


def test_durable_writes_wait_for_the_disk_and_others_do_not(path: Path) -> None:
    def level() -> int:
        return int(journal.connection.execute("PRAGMA synchronous").fetchone()[0])

    journal = Journal(path)
    assert level() == 1
    with journal.durable("test"):
        assert level() == 2
    assert level() == 1
    journal.close()


def test_a_file_held_by_another_process_is_busy(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daemon.journal_database.BUSY_TIMEOUT_MS", 10)
    journal = Journal(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy, match="another process holds"):
        journal.kv.put("key", "value")
    other.execute("ROLLBACK")
    other.close()
    journal.kv.put("key", "value")
    journal.close()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IoFailed, match="set XDG_STATE_HOME"):
        Journal(tmp_path / "file" / "journal.db")


def test_a_network_mount_is_refused_with_what_to_set(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(f"36 35 0:30 / {tmp_path} rw - nfs4 server:/home rw\n")
    monkeypatch.setattr("daemon.mounts.MOUNTINFO", table)
    with pytest.raises(Unavailable, match=r"nfs4 mount .* set XDG_STATE_HOME"):
        Journal(path)


def test_a_file_that_turned_read_only_says_so(path: Path) -> None:
    journal = Journal(path)
    journal.connection.execute("PRAGMA query_only=ON")
    with pytest.raises(IoFailed, match="it is read-only; check its owner and mode"):
        journal.kv.put("key", "value")
    journal.close()


def test_a_mistake_of_ours_is_not_taken_for_the_disks(path: Path) -> None:
    def mistaken() -> None:
        with journal.durable("test") as connection:
            connection.execute("SELECT * FROM elsewhere")

    journal = Journal(path)
    with pytest.raises(sqlite3.OperationalError, match="no such table: elsewhere"):
        mistaken()
    journal.close()


def test_what_was_put_survives_sigkill(path: Path) -> None:
    script = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from daemon.journal import Journal
        journal = Journal(Path(sys.argv[1]))
        for number in range(1, 301):
            journal.events.append(journal.events.next_seq(), "message", b"{}")
        journal.jobs.begin("cut off", "closure", "screen")
        print(journal.events.newest, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    killed = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, check=False
    )
    assert killed.returncode == -9
    journal = Journal(path)
    assert len(journal.events.since(1, 1000) or ()) == int(killed.stdout) - 1
    assert journal.events.next_seq() > int(killed.stdout)
    assert len(journal.recover()) == 1
    journal.close()

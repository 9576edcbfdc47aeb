"""Kernels and workloads that are not what they should be: one clear line or verdict, nothing lost."""

from __future__ import annotations

import asyncio
import itertools
import signal
import subprocess
from collections.abc import Callable, Iterator
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
)

from daemon.client import Client
from daemon.protocol import JobProgress, Subscribe

pytestmark = [pytest.mark.serial, pytest.mark.timeout(120)]

NO_SKILLS = """
[library]
disabled = ["*"]
"""
FOLDERS = itertools.count(1)
REFERENCE = 'return {"C": A @ B}'


@pytest.fixture(scope="module")
def shared() -> Iterator[Person]:
    """A person whose daemon lives through all of it; no skill applies, so only asking gates."""
    with living(IMPATIENT + NO_SKILLS) as someone:
        someone.trust()
        yield someone


@pytest.fixture
def folder(shared: Person) -> Iterator[Path]:
    """A folder of the shared worktree with a good kernel and workload, for this test alone.

    Afterwards the daemon must be the same as before, answer, and have logged no failure of ours.
    """
    serving = shared.json("status")["pid"]
    path = shared.root / f"case{next(FOLDERS)}"
    path.mkdir()
    for name in ("gemm_naive.cl", "workload.py"):
        (path / name).write_bytes((shared.root / "gemm" / name).read_bytes())
    yield path
    for file in path.iterdir():
        file.unlink()
    path.rmdir()
    assert shared.json("status")["pid"] == serving
    assert shared.json("history") == []
    assert "Traceback" not in shared.log()


# ---- kernel files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (lambda good: good.replace(b"float acc", b"float acc ("), "syntax error near"),
        (lambda good: b"", ""),
        (lambda good: good + b"// filler\n" * 5_300_000, "larger than 4 MiB; exclude it under"),
        (lambda good: bytes(range(256)) * 64, "not a text file"),
        (lambda good: good.replace(b"float acc", b"float \xff"), "not UTF-8 at byte"),
    ],
    ids=["syntax error", "empty", "50 MB", "binary", "not UTF-8"],
)
def test_a_file_without_a_readable_kernel_says_why(
    content: Callable[[bytes], bytes], problem: str, shared: Person, folder: Path
) -> None:
    file = folder / "gemm_naive.cl"
    file.write_bytes(content(file.read_bytes()))
    name = str(file.relative_to(shared.root))
    view = shared.json("detect", name, expect=NEGATIVE)
    assert view["kernels"] == []
    if problem:
        assert any(problem in each for each in view["problems"]), view
    else:
        assert view["problems"] == []
    for verb in ("gate", "suggest"):
        line = told(shared.run(verb, name, expect=NEGATIVE))
        assert f"no kernel in {name}" in line
        assert problem in line


def test_a_kernel_that_does_not_build_is_a_verdict_with_its_place(
    shared: Person, folder: Path
) -> None:
    file = folder / "gemm_naive.cl"
    file.write_text(file.read_text().replace("acc += A", "acc += missing * A"))
    name = str(file.relative_to(shared.root))
    verdict = shared.json("gate", name, "--tier", "screen", expect=NEGATIVE)
    assert verdict["status"] == "compile_error"
    assert f"{name}:12:" in verdict["message"]
    assert "undeclared identifier 'missing'" in verdict["message"]


def test_a_kernel_that_never_returns_is_ended_at_its_deadline(shared: Person, folder: Path) -> None:
    file = folder / "gemm_naive.cl"
    file.write_text(file.read_text().replace("++k", "k += (K < 0)"))
    name = str(file.relative_to(shared.root))
    verdict = shared.json("gate", name, "--tier", "screen", expect=NEGATIVE)
    assert verdict["status"] == "timeout"
    assert "took longer than 5 s" in verdict["message"]


# ---- workloads ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "status", "says"),
    [
        (lambda text: text + "\nraise RuntimeError('no data')\n", "ungateable", "no data"),
        (lambda text: text.replace(REFERENCE, "raise ValueError('boom')"), "ungateable", "boom"),
        (
            lambda text: text.replace(REFERENCE, 'return {"C": (A @ B)[:3]}'),
            "wrong",
            "the kernel wrote after buffer C",
        ),
        (
            lambda text: text.replace(REFERENCE, "\n    while True: pass"),
            "timeout",
            "took longer than 3 s",
        ),
    ],
    ids=["raises at import", "raises", "wrong shape", "hangs"],
)
def test_a_workload_that_fails_is_a_verdict_that_says_how(
    edit: Callable[[str], str], status: str, says: str, shared: Person, folder: Path
) -> None:
    workload = folder / "workload.py"
    workload.write_text(edit(workload.read_text()))
    name = str((folder / "gemm_naive.cl").relative_to(shared.root))
    verdict = shared.json("gate", name, "--tier", "screen", expect=NEGATIVE)
    assert verdict["status"] == status, verdict
    assert says in verdict["message"]


@pytest.mark.parametrize(
    "extra",
    ["print('x' * 5_000_000)", "if os.fork() == 0: signal.pause()"],
    ids=["prints megabytes", "leaves a child that holds its pipes"],
)
def test_a_workload_that_is_merely_untidy_is_gated_all_the_same(
    extra: str, shared: Person, folder: Path
) -> None:
    workload = folder / "workload.py"
    text = workload.read_text().replace("import numpy", "import os, signal\nimport numpy", 1)
    workload.write_text(text.replace(REFERENCE, f"{extra}\n    {REFERENCE}"))
    name = str((folder / "gemm_naive.cl").relative_to(shared.root))
    assert shared.json("gate", name, "--tier", "screen")["status"] == "tie"


def test_a_workload_saved_a_moment_ago_is_the_one_that_judges(shared: Person, folder: Path) -> None:
    workload = folder / "workload.py"
    name = str((folder / "gemm_naive.cl").relative_to(shared.root))
    good = workload.read_text()
    for text, status in ((good + "\nraise RuntimeError\n", "ungateable"), (good, "tie")):
        workload.write_text(text)
        verdict = shared.json("gate", name, "--tier", "screen", expect=None)
        assert verdict["status"] == status, verdict


def test_a_workload_that_does_not_parse_is_named_instead_of_missed(
    shared: Person, folder: Path
) -> None:
    (folder / "workload.py").write_text("def make_inputs(:\n")
    name = str((folder / "gemm_naive.cl").relative_to(shared.root))
    line = told(shared.run("gate", name, expect=ENVIRONMENT))
    assert f"{folder.name}/workload.py" in line
    assert "line 1" in line


def test_a_kernel_without_a_workload_is_shown_and_not_gated(shared: Person, folder: Path) -> None:
    (folder / "workload.py").unlink()
    name = str((folder / "gemm_naive.cl").relative_to(shared.root))
    assert shared.json("detect", name)["kernels"][0]["workload"] is None
    line = told(shared.run("gate", name, expect=ENVIRONMENT))
    assert "has no workload that says how to call it; see docs/workloads.md" in line


def test_a_file_that_is_not_there_or_outside_is_refused_by_name(shared: Person) -> None:
    line = told(shared.run("detect", "gemm/none.cl", expect=NEGATIVE))
    assert "there is no file gemm/none.cl" in line
    line = told(shared.run("gate", "/etc/hosts.cl", expect=USAGE))
    assert "/etc/hosts.cl is outside the worktree" in line
    assert "--root" in line


# ---- while the gate works ----------------------------------------------------------------------


def begun(person: Person, kernel: str) -> subprocess.Popen[str]:
    """`klineage gate kernel`, at the moment its launches are being checked."""
    with person.at_home():
        return asyncio.run(_begun(person, kernel))


async def _begun(person: Person, kernel: str) -> subprocess.Popen[str]:
    client = await Client.connect(person.root)
    await client.call("subscribe", Subscribe())
    gating = person.start("gate", kernel)
    async with asyncio.timeout(60):
        async for _, notice in client.notices():
            if (
                isinstance(notice, JobProgress)
                and notice.job.suggestion.startswith(kernel)
                and notice.job.step.startswith("correctness")
            ):
                break
    await client.close()
    return gating


def test_a_kernel_that_is_deleted_while_it_is_gated_ends_its_gating(
    shared: Person, folder: Path
) -> None:
    file = folder / "gemm_naive.cl"
    # No other kernel of the worktree may be the same: a verdict on that one would hold for this.
    file.write_text(file.read_text().replace("acc", "gone"))
    name = str(file.relative_to(shared.root))
    gating = begun(shared, name)
    file.unlink()
    out, err = gating.communicate()
    assert (gating.returncode, out) == (NEGATIVE, "")
    assert f"{name}::gemm_naive was not gated" in err
    assert shared.json("status")["jobs"] == []
    assert "there is no file" in told(shared.run("gate", name, expect=NEGATIVE))


def test_a_checkout_while_the_gate_works_leaves_what_the_branch_has() -> None:
    with living(QUICK + ONE_SKILL) as person:
        name = "gemm/gemm_naive.cl"
        original = person.kernel.read_bytes()
        git(person, "add", "-A")
        git(person, "commit", "-q", "-m", "one")
        git(person, "checkout", "-q", "-b", "other")
        person.kernel.write_bytes(original.replace(b"acc", b"total"))
        git(person, "commit", "-q", "-a", "-m", "two")
        git(person, "checkout", "-q", "main")
        person.trust()
        gating = begun(person, name)
        git(person, "checkout", "-q", "other")
        out, err = gating.communicate()
        assert (gating.returncode, out) == (NEGATIVE, "")
        assert "was not gated" in err

        (there,) = person.json("suggest", name, "--wait")
        git(person, "checkout", "-q", "main")
        (here,) = person.json("suggest", name, "--wait")
        assert here["id"] != there["id"]
        assert here["verdict"]["status"] == there["verdict"]["status"] == "faster"
        assert git(person, "status", "--porcelain") == ""
        assert person.kernel.read_bytes() == original
        assert "Traceback" not in person.log()


def git(person: Person, *arguments: str) -> str:
    """What `git …` prints in their worktree."""
    identity = ["-c", "user.name=person", "-c", "user.email=person@invalid"]
    return subprocess.run(
        ["git", "-C", str(person.root), *identity, *arguments],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_a_client_that_is_interrupted_leaves_the_daemon_at_work(shared: Person) -> None:
    serving = shared.json("status")["pid"]
    asking = begun(shared, "gemm/gemm_naive.cl")
    asking.send_signal(signal.SIGINT)
    out, err = asking.communicate()
    assert (asking.returncode, out, err) == (128 + signal.SIGINT, "", "")
    assert shared.json("status")["pid"] == serving

"""The watcher while git rewrites the tree: real repositories, real checkouts."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path

import pytest
from watching import told, watching

from daemon.watcher import Timing

KERNELS = 2000


def git(folder: Path, *arguments: str) -> None:
    settings = ["-c", "user.name=n", "-c", "user.email=e", "-c", "core.fsync=none"]
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


async def checkout(folder: Path, branch: str) -> None:
    running = await asyncio.create_subprocess_exec(
        "git", "checkout", "-q", branch, cwd=folder, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await running.communicate()
    assert running.returncode == 0, errors


def kernels(version: str) -> dict[str, bytes]:
    return {
        f"op{number % 50}/k{number}.cl": f"__kernel void k{number}() {{ {version} }}\n".encode()
        for number in range(KERNELS)
    }


def put(root: Path, contents: dict[str, bytes]) -> None:
    for path, data in contents.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


@pytest.fixture(scope="module")
def two_branches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 kernels that all differ between `main` and `other`; `other` lacks one and has one."""
    root = tmp_path_factory.mktemp("repository")
    git(root, "init", "-q", "-b", "main")
    put(root, {**kernels("main"), "only_main.cl": b"main\n"})
    git(root, "add", ".")
    git(root, "commit", "-qm", "main")
    git(root, "checkout", "-qb", "other")
    put(root, {**kernels("other"), "only_other.cl": b"other\n"})
    (root / "only_main.cl").unlink()
    git(root, "add", ".")
    git(root, "commit", "-qm", "other")
    git(root, "checkout", "-q", "main")
    return root


async def test_a_checkout_of_2000_kernels_tells_each_once_within_3_s(two_branches: Path) -> None:
    expected = {**kernels("other"), "only_other.cl": b"other\n", "only_main.cl": None}
    async with watching(two_branches) as running:
        assert len(running.first.changes) == KERNELS + 1
        await checkout(two_branches, "other")
        done_at = time.monotonic()
        changes = []
        while len(changes) < len(expected):
            batch = await running.batch()
            changes += batch.changes
        assert time.monotonic() - done_at < 3.0
        assert told(changes) == expected
        assert await running.until_quiet() == []
        await checkout(two_branches, "main")
        assert len(told(await running.until_quiet())) >= KERNELS


async def test_nothing_is_told_while_git_holds_its_lock(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    lock = tmp_path / ".git/index.lock"
    async with watching(tmp_path) as running:
        lock.touch()
        (tmp_path / "a.cl").write_bytes(b"half")

        def finish() -> None:
            (tmp_path / "a.cl").write_bytes(b"whole")
            (tmp_path / "b.cl").write_bytes(b"whole")
            lock.unlink()

        asyncio.get_running_loop().call_later(0.7, finish)
        batch = await running.batch()
        assert told(batch.changes) == {"a.cl": b"whole", "b.cl": b"whole"}
        assert batch.rescan


async def test_a_lock_that_is_never_released_delays_but_does_not_blind(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/index.lock").touch()
    async with watching(tmp_path, timing=Timing(git_patience_s=0.3)) as running:
        (tmp_path / "a.cl").write_bytes(b"saved while `git commit -a` waits for its message")
        assert (await running.change()).path == "a.cl"


async def test_a_checkout_in_a_linked_worktree_is_told_once(two_branches: Path) -> None:
    linked = two_branches.parent / "linked"
    git(two_branches, "worktree", "add", "-q", "--detach", str(linked), "main")
    try:
        async with watching(linked) as running:
            git(linked, "checkout", "-q", "--detach", "other")
            changes = await running.until_quiet()
            gone = [] if any(change.gone for change in changes) else (await running.batch()).changes
            assert len(told([*changes, *gone])) == KERNELS + 2
    finally:
        git(two_branches, "worktree", "remove", "--force", str(linked))

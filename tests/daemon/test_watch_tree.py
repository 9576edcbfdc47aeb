"""What the watcher finds on a real disk: files, links, problems, git's lock."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon.mounts import Mount
from daemon.watcher.git_lock import GitLocks, enclosing_git_dir
from daemon.watcher.hints import Hints
from daemon.watcher.patterns import PathFilter
from daemon.watcher.reading import MAX_BYTES, Stamp, read_file
from daemon.watcher.sensor import Sensor
from daemon.watcher.timing import Timing
from daemon.watcher.tree import Tree

NOBODY = 65534


def tree(root: Path) -> Tree:
    return Tree(root, PathFilter(["**/*.cl"]))


def put(root: Path, *paths: str, data: bytes = b"kernel") -> None:
    for path in paths:
        location = root / path
        location.parent.mkdir(parents=True, exist_ok=True)
        location.write_bytes(data)


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may read everything; become somebody who may not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_root() -> Iterator[Path]:
    """A root that other users can reach, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_walk_finds_wanted_files_and_skips_ignored_folders(tmp_path: Path) -> None:
    put(tmp_path, "a.cl", "k/b.cl", "k/notes.md", ".git/c.cl", "build/d.cl")
    assert set(tree(tmp_path).walk().files) == {"a.cl", "k/b.cl"}


@pytest.mark.parametrize("marker", ["pyvenv.cfg", "CACHEDIR.TAG"])
def test_environments_and_caches_are_known_by_their_marker(marker: str, tmp_path: Path) -> None:
    put(tmp_path, "env/lib/a.cl", f"env/{marker}", "k/b.cl")
    assert set(tree(tmp_path).walk().files) == {"k/b.cl"}
    assert set(tree(tmp_path).walk("env/lib").files) == set()


def test_walk_of_a_vanished_folder_is_empty_but_not_of_the_root(tmp_path: Path) -> None:
    assert tree(tmp_path).walk("nowhere").files == {}
    with pytest.raises(FileNotFoundError):
        tree(tmp_path / "nowhere").walk()


def test_reading_gives_bytes_and_digest(tmp_path: Path) -> None:
    put(tmp_path, "a.cl", data=b"\xef\xbb\xbfx\r\n")
    reading = tree(tmp_path).read("a.cl")
    assert reading.data == b"\xef\xbb\xbfx\r\n"
    assert reading.digest == hashlib.sha256(reading.data).hexdigest()


def test_known_content_is_not_kept_again(tmp_path: Path) -> None:
    put(tmp_path, "a.cl")
    known = tree(tmp_path).read("a.cl").digest
    assert tree(tmp_path).read("a.cl", known).data is None


def test_a_fresh_file_has_no_stamp_that_proves_anything(tmp_path: Path) -> None:
    put(tmp_path, "a.cl")
    assert tree(tmp_path).read("a.cl").stamp is None
    settled = Stamp.of((tmp_path / "a.cl").stat())._replace(ctime_ns=0)
    assert settled.settled


def test_a_file_over_four_mebibytes_is_a_problem_and_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.cl").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    reading = tree(tmp_path).read("a.cl")
    assert reading.problem == "over 4 MiB; exclude it or split it"
    assert reading.data is None


def test_a_binary_file_is_a_problem(tmp_path: Path) -> None:
    put(tmp_path, "a.cl", data=b"\x7fELF\0\0")
    assert tree(tmp_path).read("a.cl").problem == "not text: it holds a NUL byte"


def test_a_fifo_is_a_problem_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.cl")
    assert tree(tmp_path).read("a.cl").problem == "not a regular file"


def test_a_folder_named_like_a_kernel_is_no_file(tmp_path: Path) -> None:
    put(tmp_path, "a.cl/b.cl")
    assert set(tree(tmp_path).walk().files) == {"a.cl/b.cl"}
    assert tree(tmp_path).read("a.cl").missing


def test_a_file_that_may_not_be_read_is_a_problem(open_root: Path) -> None:
    put(open_root, "a.cl")
    (open_root / "a.cl").chmod(0)
    with unprivileged():
        reading = tree(open_root).read("a.cl")
    assert reading.problem == "permission denied; try chmod u+r"


def test_a_folder_that_may_not_be_listed_is_one_problem(open_root: Path) -> None:
    put(open_root, "a.cl", "secret/b.cl")
    (open_root / "secret").chmod(0)
    with unprivileged():
        walk = tree(open_root).walk()
    (open_root / "secret").chmod(0o755)
    assert set(walk.files) == {"a.cl"}
    assert [(r.path, r.problem) for r in walk.refused] == [
        ("secret", "folder cannot be listed: permission denied; try chmod u+rx")
    ]


def test_a_name_that_is_not_utf8_is_a_problem(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.cl")).write_bytes(b"kernel")
    (refused,) = tree(tmp_path).walk().refused
    assert (refused.path, refused.problem) == ("caf\\xe9.cl", "file name is not UTF-8; rename it")


def test_a_link_to_a_watched_file_is_the_same_file(tmp_path: Path) -> None:
    put(tmp_path, "v2/gemm.cl")
    (tmp_path / "gemm.cl").symlink_to("v2/gemm.cl")
    assert tree(tmp_path).read("gemm.cl").missing
    assert tree(tmp_path).read("v2/gemm.cl").data == b"kernel"


def test_a_link_to_an_unwatched_file_is_read_under_its_own_name(tmp_path: Path) -> None:
    put(tmp_path, "build/generated.cl")
    (tmp_path / "gemm.cl").symlink_to("build/generated.cl")
    reading = tree(tmp_path).read("gemm.cl")
    assert (reading.path, reading.data) == ("gemm.cl", b"kernel")
    assert reading.target == "build/generated.cl"


def test_a_link_out_of_the_worktree_is_a_problem_and_not_read(tmp_path: Path) -> None:
    put(tmp_path, "outside.cl", "root/a.cl")
    (tmp_path / "root/gemm.cl").symlink_to(tmp_path / "outside.cl")
    reading = tree(tmp_path / "root").read("gemm.cl")
    assert reading.problem == "links outside the worktree; it is not followed"
    assert reading.data is None


def test_folder_links_are_not_followed(tmp_path: Path) -> None:
    put(tmp_path, "k/a.cl")
    (tmp_path / "again").symlink_to("k")
    (tmp_path / "k/loop").symlink_to("..")
    assert set(tree(tmp_path).walk().files) == {"k/a.cl"}


@pytest.mark.parametrize("target", ["nowhere.txt", "gemm.cl"], ids=["dangling", "loop"])
def test_a_link_that_leads_nowhere_yields_no_content(target: str, tmp_path: Path) -> None:
    (tmp_path / "gemm.cl").symlink_to(target)
    assert tree(tmp_path).read("gemm.cl").data is None


def test_locks_are_found_for_a_clone_a_linked_worktree_and_a_submodule(tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for repository in (inner, outer):
        put(repository, "a.cl")
        git(repository, "init", "-q")
        git(repository, "add", ".")
        git(repository, "commit", "-qm", "first")
    git(outer, "submodule", "add", "-q", str(inner), "sub")
    git(outer, "worktree", "add", "-q", str(tmp_path / "linked"))

    def held(root: Path) -> bool:
        locks = GitLocks(root)
        locks.refresh(tree(root).walk().repositories)
        return locks.held()

    for root, lock in (
        (outer, outer / ".git/index.lock"),
        (outer / "sub", outer / ".git/modules/sub/index.lock"),
        (outer, outer / ".git/modules/sub/index.lock"),
        (tmp_path / "linked", outer / ".git/worktrees/linked/index.lock"),
    ):
        assert not held(root)
        lock.touch()
        assert held(root)
        lock.unlink()


def test_a_root_inside_a_repository_follows_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "kernels").mkdir()
    assert enclosing_git_dir(tmp_path / "kernels") == tmp_path / ".git"


@pytest.mark.parametrize(
    ("first_at", "last_at", "due_at"),
    [(0.0, 0.0, 0.1), (0.0, 0.05, 0.15), (0.0, 5.0, 1.0)],
    ids=["one event", "a burst", "a burst without end"],
)
def test_a_burst_is_due_when_quiet_or_at_the_cap(
    first_at: float, last_at: float, due_at: float
) -> None:
    assert Timing().due_at(first_at, last_at) == pytest.approx(due_at)


def test_polling_pauses_twenty_times_what_a_poll_costs() -> None:
    assert Timing().poll_pause_s(interval_s=2.0, scan_s=0.01) == 2.0
    assert Timing().poll_pause_s(interval_s=2.0, scan_s=0.5) == 10.0


class RemoteTree(Tree):
    """A tree as it is when its root is on a network mount."""

    def mounts(self) -> list[Mount]:
        return [Mount("/home", "nfs4")]


@pytest.mark.parametrize(
    ("poll", "mode"),
    [
        ("auto", "polling every 2 s (nfs4)"),
        (True, "polling every 2 s"),
        (False, "inotify"),
    ],
)
async def test_a_network_mount_is_polled_unless_polling_is_off(
    poll: bool, mode: str, tmp_path: Path
) -> None:
    clock = iter(range(1000)).__next__
    remote = RemoteTree(tmp_path, PathFilter(["**/*.cl"]))
    sensor = Sensor(remote, Hints(clock, lambda: None), poll, 2.0)
    await sensor.start()
    assert sensor.mode == mode
    sensor.stop()


def test_a_file_that_vanishes_is_missing(tmp_path: Path) -> None:
    assert read_file(str(tmp_path / "a.cl"), "a.cl").missing

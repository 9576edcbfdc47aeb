"""Where things are: worktree roots, mounts, the runtime folder, the lock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.errors import Busy, IoFailed, Unavailable
from daemon.instance import Holder, Instance, holder, last_holder
from daemon.mounts import Mount, mount_in, mount_of
from daemon.rendezvous import sockets
from daemon.runtime_dir import runtime_dir, socket_path
from daemon.worktree import find_root, lock_path, state_dir, worktree_id


@pytest.mark.parametrize("mark", [".git", "klineage.toml"])
def test_the_nearest_marked_ancestor_is_the_root(tmp_path: Path, mark: str) -> None:
    inner = tmp_path / "outer" / "inner"
    (inner / "a" / "b").mkdir(parents=True)
    (tmp_path / "outer" / ".git").mkdir()
    (inner / mark).write_text("a file, as in a linked worktree")
    assert find_root(inner / "a" / "b") == inner
    (inner / "a" / "kernel.cl").write_text("")
    assert find_root(inner / "a" / "kernel.cl") == inner
    assert find_root(tmp_path / "outer") == tmp_path / "outer"


def test_a_folder_without_a_mark_is_its_own_root(tmp_path: Path) -> None:
    assert find_root(tmp_path) == tmp_path


def test_a_worktree_has_one_id_however_it_is_reached(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert worktree_id(tmp_path / "link") == worktree_id(tmp_path / "real")
    assert len(worktree_id(tmp_path)) == 12


def test_a_relative_xdg_folder_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    assert state_dir(tmp_path).parent == tmp_path / ".local" / "state" / "klineage"


TABLE = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /home rw,nosuid shared:9 - nfs4 server:/home rw,vers=4.2
31 30 0:26 / /home/me/local\\040disk rw - xfs /dev/sdb1 rw
32 22 0:27 / /mnt rw master:3 propagate_from:2 - fuse.sshfs host:/ rw
33 32 0:28 / /mnt rw - ext4 /dev/sdc1 rw
"""


@pytest.mark.parametrize(
    ("path", "type", "local"),
    [
        ("/tmp/x", "ext4", True),
        ("/home", "nfs4", False),
        ("/homes/me", "ext4", True),
        ("/home/me/x", "nfs4", False),
        ("/home/me/local disk/x", "xfs", True),
        ("/mnt/x", "ext4", True),
    ],
)
def test_the_mount_of_a_path_is_the_deepest_and_last(path: str, type: str, local: bool) -> None:
    found = mount_in(TABLE, path)
    assert found is not None
    assert (found.type, found.is_local) == (type, local)


def test_fuse_is_a_networks_unless_known_to_lie_over_a_disk() -> None:
    assert not Mount("/", "fuse.sshfs").is_local
    assert Mount("/", "fuse.fuse-overlayfs").is_local
    assert Mount("/", "fuseblk").is_local


def test_the_present_mount_table_can_be_read() -> None:
    assert mount_of(Path("/")) is not None


def test_the_runtime_folder_is_made_private(place: Path) -> None:
    assert runtime_dir().stat().st_mode & 0o777 == 0o700
    assert socket_path(place).parent == runtime_dir()


@pytest.fixture
def no_fallback(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The platform's runtime folder is a file; what is left is XDG_RUNTIME_DIR, returned."""
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    monkeypatch.setattr("platformdirs.user_runtime_dir", lambda: str(blocked))
    return Path(os.environ["XDG_RUNTIME_DIR"])


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o500])
def test_a_runtime_folder_of_another_mode_is_refused(no_fallback: Path, mode: int) -> None:
    (no_fallback / "klineage").mkdir(mode=0o700)
    (no_fallback / "klineage").chmod(mode)
    with pytest.raises(Unavailable, match=f"has mode {mode:04o}, not 0700; `chmod 700` it"):
        runtime_dir()


def test_a_set_group_id_bit_that_was_inherited_is_allowed(no_fallback: Path) -> None:
    (no_fallback / "klineage").mkdir(mode=0o700)
    (no_fallback / "klineage").chmod(0o2700)
    assert runtime_dir() == no_fallback / "klineage"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_runtime_folder_of_another_user_is_refused(no_fallback: Path) -> None:
    (no_fallback / "klineage").mkdir(mode=0o700)
    os.chown(no_fallback / "klineage", 12345, -1)
    with pytest.raises(Unavailable, match="belongs to user 12345"):
        runtime_dir()


def test_a_runtime_folder_that_is_a_link_is_refused(no_fallback: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (no_fallback / "klineage").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="is not a folder"):
        runtime_dir()


def test_a_runtime_folder_on_a_network_mount_is_refused(
    no_fallback: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text("36 35 0:30 / / rw - 9p C:\\134 rw\n")
    monkeypatch.setattr("daemon.mounts.MOUNTINFO", table)
    with pytest.raises(Unavailable, match="is on a 9p mount"):
        runtime_dir()


def test_the_platforms_folder_is_used_where_xdgs_is_not_ours(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_runtime_dir", lambda: str(tmp_path / "run"))
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert runtime_dir() == tmp_path / "run" / "klineage"


def test_a_path_too_long_for_a_socket_is_said(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("x" * 100)))
    with pytest.raises(Unavailable, match="is too long for a socket"):
        socket_path(place)


def test_one_daemon_holds_the_lock(place: Path) -> None:
    lock, socket = lock_path(place), socket_path(place)
    assert holder(lock) is None
    held = Instance(lock, socket)
    assert holder(lock) == Holder(os.getpid(), socket)
    with pytest.raises(Busy, match=rf"pid {os.getpid()}, at {socket}\) serves this worktree"):
        Instance(lock, socket)
    held.release()
    assert holder(lock) is None
    assert last_holder(lock) == Holder(os.getpid(), socket)
    Instance(lock, socket).release()


def test_a_lock_dies_with_its_holder(place: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from daemon.instance import Instance;"
        "held = Instance(Path(sys.argv[1]), Path('socket'));"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    lock = lock_path(place)
    killed = subprocess.run([sys.executable, "-c", script, lock], check=False)
    assert killed.returncode == -9
    assert holder(lock) is None
    Instance(lock, socket_path(place)).release()


def test_a_lock_that_is_just_being_taken_names_nobody(place: Path) -> None:
    lock = lock_path(place)
    lock.parent.mkdir(parents=True)
    lock.write_text("")
    assert last_holder(lock) is None
    assert list(sockets(place)) == [socket_path(place)]


def test_a_lock_that_cannot_be_made_says_what_to_set(place: Path) -> None:
    state_dir(place).parent.parent.mkdir(parents=True)
    state_dir(place).parent.write_text("a file in the way")
    with pytest.raises(IoFailed, match="set XDG_STATE_HOME"):
        Instance(lock_path(place), socket_path(place))

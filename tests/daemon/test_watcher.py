"""The running watcher: real files, real inotify, real editors."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from watching import told, watching

from daemon.settings import WatchSettings
from daemon.watcher import Batch, Timing, Watcher

UNHURRIED = Timing(quiet_s=0.3)
"""For saves of several steps: a busy machine may take more than 0.1 s between two."""

OLD, NEW = b"__kernel void old() {}\n", b"__kernel void newer() {}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "worktree"
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels/gemm.cl").write_bytes(OLD)
    return folder


# ---- saves ------------------------------------------------------------------------------------


def in_place(kernel: Path) -> None:
    kernel.write_bytes(NEW)


def in_pieces(kernel: Path) -> None:
    with kernel.open("wb", buffering=0) as file:
        for byte in NEW:
            file.write(bytes([byte]))


def replaced_from_the_same_folder(kernel: Path) -> None:
    beside = kernel.with_name("gemm.cl___jb_tmp___")
    beside.write_bytes(NEW)
    beside.rename(kernel)


def replaced_from_outside(kernel: Path) -> None:
    outside = kernel.parents[2] / "outside"
    outside.write_bytes(NEW)
    outside.rename(kernel)


def moved_to_a_backup_and_rewritten(kernel: Path) -> None:
    backup = kernel.with_name("gemm.cl~")
    kernel.rename(backup)
    kernel.write_bytes(NEW)
    backup.unlink()


def deleted_and_rewritten(kernel: Path) -> None:
    kernel.unlink()
    kernel.write_bytes(NEW)


def move(folder: Path, to: Path) -> None:
    folder.rename(to)


SAVES = [
    in_place,
    in_pieces,
    replaced_from_the_same_folder,
    replaced_from_outside,
    moved_to_a_backup_and_rewritten,
    deleted_and_rewritten,
]


@pytest.mark.parametrize("save", SAVES, ids=lambda save: save.__name__)
async def test_every_way_to_save_is_told_once(save: Callable[[Path], None], root: Path) -> None:
    async with watching(root, timing=UNHURRIED) as running:
        save(root / "kernels/gemm.cl")
        assert told((await running.batch()).changes) == {"kernels/gemm.cl": NEW}
        assert await running.until_quiet() == []


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed")
@pytest.mark.parametrize(
    "settings",
    ["", "set nowritebackup", "set backup backupcopy=yes", "set backup backupcopy=no",
     "set backup backupcopy=no backupdir=OUTSIDE"],
    ids=["default", "no backup", "backup by copy", "backup by rename", "backup outside"],
)  # fmt: skip
async def test_a_save_from_vim_is_told_once(settings: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    settings = settings.replace("OUTSIDE", str(tmp_path / "backups"))
    async with watching(root, timing=UNHURRIED) as running:
        vim = await asyncio.create_subprocess_exec(
            "vim", "-u", "NONE", "-N", "-es", "-c", settings or "set writebackup",
            "-c", "%s/old/newer/", "-c", "wq", str(root / "kernels/gemm.cl"),
        )  # fmt: skip
        assert await vim.wait() == 0
        assert told((await running.batch()).changes) == {"kernels/gemm.cl": NEW}
        assert await running.until_quiet() == []


async def test_a_burst_that_never_ends_is_told_at_the_cap(root: Path) -> None:
    kernel = root / "kernels/gemm.cl"
    async with watching(root, timing=Timing(quiet_s=0.2, cap_s=0.3)) as running:
        while running.batches.empty():
            kernel.write_bytes(NEW + str(time.monotonic_ns()).encode())
            await asyncio.sleep(0)
        assert (await running.change()).path == "kernels/gemm.cl"


# ---- what is not told -------------------------------------------------------------------------


async def test_reading_a_kernel_tells_nothing(root: Path) -> None:
    async with watching(root) as running:
        (root / "kernels/gemm.cl").read_bytes()
        assert await running.until_quiet() == []


async def test_saving_the_same_content_tells_nothing(root: Path) -> None:
    async with watching(root) as running:
        (root / "kernels/gemm.cl").write_bytes(OLD)
        (root / "kernels/gemm.cl").touch()
        assert await running.until_quiet() == []


async def test_a_change_taken_back_within_a_burst_tells_nothing(root: Path) -> None:
    async with watching(root) as running:
        in_place(root / "kernels/gemm.cl")
        (root / "kernels/gemm.cl").write_bytes(OLD)
        assert await running.until_quiet() == []


async def test_unwatched_names_and_ignored_folders_tell_nothing(root: Path) -> None:
    async with watching(root, WatchSettings(exclude=("old/",))) as running:
        for path in ("kernels/a.txt", "kernels/.klineage-12-0", "build/a.cl", ".git/a.cl",
                     "kernels/__pycache__/a.py", "old/a.cl"):  # fmt: skip
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_bytes(NEW)
        assert await running.until_quiet() == []


async def test_an_announced_write_tells_nothing(root: Path) -> None:
    async with watching(root) as running:
        running.watcher.expect("kernels/gemm.cl", hashlib.sha256(NEW).hexdigest())
        replaced_from_the_same_folder(root / "kernels/gemm.cl")
        assert await running.until_quiet() == []
        (root / "kernels/gemm.cl").write_bytes(OLD)
        assert told((await running.batch()).changes) == {"kernels/gemm.cl": OLD}


async def test_other_content_than_announced_is_told(root: Path) -> None:
    async with watching(root) as running:
        running.watcher.expect("kernels/gemm.cl", hashlib.sha256(b"else").hexdigest())
        in_place(root / "kernels/gemm.cl")
        assert told((await running.batch()).changes) == {"kernels/gemm.cl": NEW}


# ---- files and folders that come and go ---------------------------------------------------------


async def test_the_first_batch_holds_every_watched_file(root: Path) -> None:
    (root / "host.py").write_bytes(b"import torch\n")
    async with watching(root) as running:
        assert told(running.first.changes) == {"host.py": b"import torch\n", "kernels/gemm.cl": OLD}
        assert running.first.rescan
        assert running.watcher.mode == "inotify"
        assert running.modes == ["inotify"]


async def test_the_first_batch_of_an_empty_tree_is_empty(tmp_path: Path) -> None:
    async with watching(tmp_path) as running:
        assert running.first == Batch((), rescan=True)


async def test_a_deleted_kernel_is_gone(root: Path) -> None:
    async with watching(root) as running:
        (root / "kernels/gemm.cl").unlink()
        change = await running.change()
        assert (change.path, change.gone, change.data) == ("kernels/gemm.cl", True, None)


async def test_a_kernel_missing_for_a_moment_is_not_gone(root: Path) -> None:
    kernel = root / "kernels/gemm.cl"
    async with watching(root, timing=Timing(missing_s=2.0)) as running:
        kernel.unlink()
        assert await running.until_quiet() == []
        kernel.write_bytes(OLD)
        assert await running.until_quiet() == []


async def test_a_renamed_kernel_is_new_under_one_name_and_gone_under_the_other(root: Path) -> None:
    async with watching(root) as running:
        (root / "kernels/gemm.cl").rename(root / "kernels/gemm2.cl")
        changes = [*(await running.batch()).changes, *(await running.batch()).changes]
        assert told(changes) == {"kernels/gemm2.cl": OLD, "kernels/gemm.cl": None}


async def test_files_of_new_folders_are_told_once_however_fast_they_come(root: Path) -> None:
    async with watching(root) as running:
        wanted = {}
        for number in range(20):
            path = f"new{number}/deep/er/k.cl"
            (root / path).parent.mkdir(parents=True)
            (root / path).write_bytes(NEW)
            wanted[path] = NEW
        assert told(await running.until_quiet()) == wanted
        in_place(root / "kernels/gemm.cl")
        (root / "new7/deep/er/k.cl").write_bytes(OLD)
        assert told(await running.until_quiet()) == {
            "kernels/gemm.cl": NEW,
            "new7/deep/er/k.cl": OLD,
        }


async def test_a_folder_moved_in_is_told_and_watched(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep/k.cl").write_bytes(OLD)
    async with watching(root) as running:
        outside.rename(root / "kernels/moved")
        assert told((await running.batch()).changes) == {"kernels/moved/deep/k.cl": OLD}
        (root / "kernels/moved/deep/k.cl").write_bytes(NEW)
        assert told((await running.batch()).changes) == {"kernels/moved/deep/k.cl": NEW}


async def test_kernels_of_a_folder_moved_away_are_gone(root: Path, tmp_path: Path) -> None:
    async with watching(root) as running:
        (root / "kernels").rename(tmp_path / "elsewhere")
        assert (await running.change()).gone


async def test_more_folders_than_have_their_own_watch_are_watched_too(root: Path) -> None:
    for number in range(40):
        (root / f"op{number}").mkdir()
    async with watching(root) as running:
        (root / "op33/k.cl").write_bytes(NEW)
        assert told((await running.batch()).changes) == {"op33/k.cl": NEW}


async def test_the_target_of_a_link_is_watched_for_it(root: Path) -> None:
    (root / "kernels/generated.txt").write_bytes(OLD)
    (root / "softmax.cl").symlink_to("kernels/generated.txt")
    async with watching(root) as running:
        assert told(running.first.changes)["softmax.cl"] == OLD
        (root / "kernels/generated.txt").write_bytes(NEW)
        assert told((await running.batch()).changes) == {"softmax.cl": NEW}


async def test_a_problem_is_told_once_and_its_end_too(root: Path) -> None:
    kernel = root / "kernels/gemm.cl"
    async with watching(root) as running:
        kernel.write_bytes(b"\0binary")
        assert (await running.change()).problem == "not text: it holds a NUL byte"
        kernel.write_bytes(b"\0binary, again")
        assert await running.until_quiet() == []
        kernel.write_bytes(NEW)
        assert told((await running.batch()).changes) == {"kernels/gemm.cl": NEW}


async def test_a_root_that_vanishes_keeps_what_was_told_and_comes_back(
    root: Path, tmp_path: Path
) -> None:
    async with watching(root, WatchSettings(poll_interval_s=0.05)) as running:
        move(root, tmp_path / "away")
        running.watcher.rescan()
        assert "is missing" in await running.until_mode("degraded")
        (tmp_path / "away/kernels/gemm.cl").write_bytes(NEW)
        move(tmp_path / "away", root)
        assert await running.until_mode("inotify")
        assert told((await running.batch()).changes) == {"kernels/gemm.cl": NEW}
        (root / "kernels/gemm.cl").write_bytes(OLD)
        assert told((await running.batch()).changes) == {"kernels/gemm.cl": OLD}


# ---- rescans, polling, pausing ----------------------------------------------------------------


async def test_a_change_without_an_event_is_found_by_the_periodic_rescan(
    root: Path, tmp_path: Path
) -> None:
    # Written through a second name outside the tree: inotify tells only about the name used.
    (tmp_path / "second_name").hardlink_to(root / "kernels/gemm.cl")
    async with watching(root, timing=Timing(rescan_s=0.2)) as running:
        (tmp_path / "second_name").write_bytes(NEW)
        batch = await running.batch()
        assert told(batch.changes) == {"kernels/gemm.cl": NEW}
        assert batch.rescan


async def test_an_overflow_leads_to_a_rescan(root: Path, tmp_path: Path) -> None:
    (tmp_path / "second_name").hardlink_to(root / "kernels/gemm.cl")
    async with watching(root) as running:
        (tmp_path / "second_name").write_bytes(NEW)
        logging.getLogger("watchdog.observers.inotify_c").warning(
            "Inotify queue overflowed; filesystem events were lost"
        )
        batch = await running.batch()
        assert told(batch.changes) == {"kernels/gemm.cl": NEW}
        assert batch.rescan


async def test_a_requested_rescan_reads_every_file(root: Path, tmp_path: Path) -> None:
    (tmp_path / "second_name").hardlink_to(root / "kernels/gemm.cl")
    async with watching(root) as running:
        (tmp_path / "second_name").write_bytes(NEW)
        running.watcher.rescan()
        assert told((await running.batch()).changes) == {"kernels/gemm.cl": NEW}


async def test_polling_finds_saves_new_files_and_deletions(root: Path) -> None:
    async with watching(root, WatchSettings(poll=True, poll_interval_s=0.05)) as running:
        assert running.watcher.mode == "polling every 0.05 s"
        in_place(root / "kernels/gemm.cl")
        assert told((await running.batch()).changes) == {"kernels/gemm.cl": NEW}
        (root / "new").mkdir()
        (root / "new/k.cl").write_bytes(OLD)
        assert told((await running.batch()).changes) == {"new/k.cl": OLD}
        (root / "new/k.cl").unlink()
        assert (await running.change()).gone


async def test_nothing_is_told_while_paused_and_everything_after(root: Path) -> None:
    async with watching(root) as running:
        running.watcher.pause()
        assert running.watcher.mode == "paused"
        in_place(root / "kernels/gemm.cl")
        (root / "kernels/more.cl").write_bytes(OLD)
        running.watcher.rescan()
        running.watcher.resume()
        assert told((await running.batch()).changes) == {
            "kernels/gemm.cl": NEW,
            "kernels/more.cl": OLD,
        }
        assert running.modes == ["inotify", "paused", "inotify"]


async def test_a_huge_tree_is_told_in_portions(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daemon.watcher.watcher.PORTION_BYTES", 100)
    for number in range(50):
        (root / f"k{number:02}.cl").write_bytes(NEW)
    async with watching(root) as running:
        batches = [running.first]
        while batches[-1].more:
            batches.append(await running.batch())
        assert len(batches) > 5
        assert len(told([change for batch in batches for change in batch.changes])) == 51


async def test_a_failing_consumer_ends_the_run(root: Path) -> None:
    async def deliver(batch: Batch) -> None:
        raise ValueError(f"{len(batch.changes)} too many")

    with pytest.raises(ValueError, match="1 too many"):
        await Watcher(root, WatchSettings()).run(deliver)


@pytest.mark.serial
async def test_the_watcher_rests_when_nothing_happens(root: Path) -> None:
    for number in range(500):
        (root / f"kernels/k{number}.cl").write_bytes(NEW)
    async with watching(root) as running:
        before_s = time.process_time()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.batches.get(), 4.0)
        assert time.process_time() - before_s < 0.005 * 4.0

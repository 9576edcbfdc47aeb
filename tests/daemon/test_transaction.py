"""Apply, undo and redo on real files with a real journal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.errors import IoFailed, NotFound, Stale
from daemon.journal import Journal
from daemon.transaction import Change, ChangeLog, ChangeMeta, Kind
from gate.values.candidate import FileEdit
from gate.values.kernel import digest

OLD = b"__kernel void gemm() { }\n"
NEW = b"__kernel void gemm() { barrier(CLK_LOCAL_MEM_FENCE); }\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "worktree"
    folder.mkdir()
    return folder


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "state" / "journal.db")
    yield journal
    journal.close()


@pytest.fixture
def history(journal: Journal, root: Path) -> ChangeLog:
    return ChangeLog(journal, root)


def meta(skill: str = "opencl.stage", key: str = "") -> ChangeMeta:
    return ChangeMeta("0123456789ab", skill, "gemm.cl::gemm", "2.1x", "c" * 64, key)


def kernel(root: Path, path: str = "gemm.cl", data: bytes = OLD) -> Path:
    location = root / path
    location.parent.mkdir(parents=True, exist_ok=True)
    location.write_bytes(data)
    return location


def edit(location: Path, after: bytes = NEW, path: str | None = None) -> FileEdit:
    return FileEdit(path or location.name, digest(location.read_bytes()), after)


def leftovers(root: Path) -> list[Path]:
    return list(root.rglob(".klineage-*"))


def test_apply_writes_the_new_bytes_and_undo_the_old(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    applied = history.apply([edit(location)], meta())
    assert location.read_bytes() == NEW
    undone = history.undo()
    assert location.read_bytes() == OLD
    assert (applied.kind, undone.kind, undone.origin) == (Kind.APPLIED, Kind.UNDONE, applied.id)
    assert leftovers(root) == []


def test_redo_brings_the_new_bytes_back(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    history.apply([edit(location)], meta())
    history.undo()
    assert history.redo().kind is Kind.REDONE
    assert location.read_bytes() == NEW


def test_all_files_of_a_candidate_change_together(root: Path, history: ChangeLog) -> None:
    first, second = kernel(root, "gemm.cl"), kernel(root, "host/launch.py", b"grid = 1\n")
    change = history.apply([edit(first), edit(second, b"grid = 2\n", "host/launch.py")], meta())
    assert change.files == ("gemm.cl", "host/launch.py")
    assert (first.read_bytes(), second.read_bytes()) == (NEW, b"grid = 2\n")
    history.undo()
    assert (first.read_bytes(), second.read_bytes()) == (OLD, b"grid = 1\n")


def test_a_file_that_changed_since_is_refused_and_the_others_stay(
    root: Path, history: ChangeLog
) -> None:
    first, second = kernel(root, "gemm.cl"), kernel(root, "launch.py", b"grid = 1\n")
    edits = [edit(first), edit(second, b"grid = 2\n")]
    second.write_bytes(b"grid = 3\n")
    with pytest.raises(Stale, match=r"launch\.py changed since this suggestion was made"):
        history.apply(edits, meta())
    assert (first.read_bytes(), second.read_bytes()) == (OLD, b"grid = 3\n")
    assert history.entries() == ()


def test_a_file_that_is_gone_is_refused(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    edits = [edit(location)]
    location.unlink()
    with pytest.raises(Stale, match=r"gemm\.cl is gone"):
        history.apply(edits, meta())


def test_a_candidate_that_changes_nothing_is_refused(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    with pytest.raises(Stale, match="would change nothing"):
        history.apply([edit(location, OLD)], meta())


def test_the_same_key_applies_once(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    edits = [edit(location)]
    first = history.apply(edits, meta(key="k1"))
    again = history.apply(edits, meta(key="k1"))
    assert again.id == first.id
    assert [change.id for change in history.entries()] == [first.id]


def test_a_refused_request_may_be_repeated_under_its_key(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    location.chmod(0o444)
    edits = [edit(location)]
    with pytest.raises(IoFailed):
        history.apply(edits, meta(key="k1"))
    location.chmod(0o644)
    assert history.apply(edits, meta(key="k1")).kind is Kind.APPLIED


def test_undo_refuses_what_was_edited_since_and_says_so(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    change = history.apply([edit(location)], meta())
    location.write_bytes(NEW + b"// mine\n")
    with pytest.raises(Stale, match=rf"gemm\.cl was edited after #{change.id}"):
        history.undo()
    assert location.read_bytes() == NEW + b"// mine\n"


def test_undo_of_an_older_change_names_the_newer_one_in_its_way(
    root: Path, history: ChangeLog
) -> None:
    location = kernel(root)
    older = history.apply([edit(location)], meta("opencl.stage"))
    newer = history.apply([edit(location, b"third\n")], meta("opencl.vectorize"))
    with pytest.raises(Stale, match=rf"#{newer.id} \(opencl\.vectorize\); undo #{newer.id} first"):
        history.undo(older.id)
    history.undo(newer.id)
    history.undo(older.id)
    assert location.read_bytes() == OLD


def test_undo_takes_the_newest_first_and_redo_the_last_undone(
    root: Path, history: ChangeLog
) -> None:
    location = kernel(root)
    history.apply([edit(location)], meta())
    history.apply([edit(location, b"third\n")], meta())
    seen = []
    for step in (history.undo, history.undo, history.redo, history.redo):
        step()
        seen.append(location.read_bytes())
    assert seen == [NEW, OLD, NEW, b"third\n"]


def test_an_older_change_of_another_file_is_undone_on_its_own(
    root: Path, history: ChangeLog
) -> None:
    first, second = kernel(root, "a.cl"), kernel(root, "b.cl")
    older = history.apply([edit(first)], meta())
    history.apply([edit(second)], meta())
    history.undo(older.id)
    assert (first.read_bytes(), second.read_bytes()) == (OLD, NEW)


def test_undoing_by_hand_counts_as_undone(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    history.apply([edit(location)], meta())
    location.write_bytes(OLD)
    undone = history.undo()
    assert undone.note == "the files had these bytes already"
    assert location.read_bytes() == OLD


def test_what_is_undone_cannot_be_undone_again(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    change = history.apply([edit(location)], meta())
    history.undo()
    with pytest.raises(Stale, match="is undone already"):
        history.undo(change.id)
    with pytest.raises(NotFound, match="nothing to undo"):
        history.undo()


def test_with_nothing_applied_there_is_nothing_to_undo_or_redo(history: ChangeLog) -> None:
    with pytest.raises(NotFound, match="nothing to undo"):
        history.undo()
    with pytest.raises(NotFound, match="nothing to redo"):
        history.redo()
    with pytest.raises(NotFound, match="no change #7"):
        history.undo(7)


def test_entries_are_newest_first_and_say_what_can_be_undone(
    root: Path, history: ChangeLog
) -> None:
    location = kernel(root)
    history.apply([edit(location)], meta())
    history.undo()
    history.record_rejection(meta("opencl.unroll"), "too hard to read")
    history.redo()
    shown = [(c.kind, c.undoable, c.note) for c in history.entries()]
    assert shown == [
        (Kind.REDONE, True, ""),
        (Kind.REJECTED, False, "too hard to read"),
        (Kind.UNDONE, False, ""),
        (Kind.APPLIED, False, ""),
    ]
    assert len(history.entries(limit=2)) == 2


def test_a_rejection_cannot_be_undone(history: ChangeLog) -> None:
    rejected = history.record_rejection(meta(), "no")
    with pytest.raises(NotFound, match="is a rejection"):
        history.undo(rejected.id)


def test_history_outlives_the_daemon(root: Path, journal: Journal, history: ChangeLog) -> None:
    location = kernel(root)
    history.apply([edit(location)], meta())
    ChangeLog(journal, root).undo()
    assert location.read_bytes() == OLD


@settings(max_examples=25, deadline=None)
@given(before=st.binary(max_size=400), after=st.binary(max_size=400))
def test_any_bytes_come_back_exactly(
    before: bytes, after: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if before == after:
        return
    folder = tmp_path_factory.mktemp("bytes")
    location = kernel(folder, "worktree/gemm.cl", before)
    journal = Journal(folder / "journal.db")
    history = ChangeLog(journal, folder / "worktree")
    history.apply([edit(location, after)], meta())
    assert location.read_bytes() == after
    history.undo()
    assert location.read_bytes() == before
    journal.close()


@pytest.mark.parametrize(
    "data",
    [b"a\r\nb\r\n", b"\xef\xbb\xbfa\n", b"no newline at the end", b"", b"mixed\r\nends\n\r"],
    ids=["CRLF", "BOM", "no final newline", "empty", "mixed"],
)
def test_line_ends_and_marks_survive_apply_and_undo(
    data: bytes, root: Path, history: ChangeLog
) -> None:
    location = kernel(root, data=data)
    history.apply([edit(location, data + b"\r\nx")], meta())
    assert location.read_bytes() == data + b"\r\nx"
    history.undo()
    assert location.read_bytes() == data


def test_mode_is_kept(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    location.chmod(0o764)
    history.apply([edit(location)], meta())
    assert location.stat().st_mode & 0o7777 == 0o764


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
def test_owner_and_group_are_kept(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    os.chown(location, 1234, 2345)
    history.apply([edit(location)], meta())
    assert (location.stat().st_uid, location.stat().st_gid) == (1234, 2345)


def test_extended_attributes_are_kept(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    try:
        os.setxattr(location, "user.note", b"tuned by hand")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    history.apply([edit(location)], meta())
    assert os.getxattr(location, "user.note") == b"tuned by hand"


def test_a_symbolic_link_is_written_through(root: Path, history: ChangeLog) -> None:
    target = kernel(root, "versions/gemm_v2.cl")
    link = root / "gemm.cl"
    link.symlink_to("versions/gemm_v2.cl")
    history.apply([edit(link)], meta())
    assert link.is_symlink()
    assert target.read_bytes() == NEW
    history.undo()
    assert target.read_bytes() == OLD


def test_a_link_that_leads_elsewhere_now_is_not_undone(root: Path, history: ChangeLog) -> None:
    kernel(root, "v1.cl")
    other = kernel(root, "v2.cl", NEW)
    link = root / "gemm.cl"
    link.symlink_to("v1.cl")
    history.apply([edit(link)], meta())
    link.unlink()
    link.symlink_to("v2.cl")
    with pytest.raises(Stale, match=r"led to v1\.cl .* leads to v2\.cl now"):
        history.undo()
    assert other.read_bytes() == NEW


def test_a_link_out_of_the_worktree_is_refused(
    root: Path, tmp_path: Path, history: ChangeLog
) -> None:
    outside = kernel(tmp_path, "outside.cl")
    (root / "gemm.cl").symlink_to(outside)
    with pytest.raises(IoFailed, match="outside the worktree"):
        history.apply([edit(root / "gemm.cl")], meta())
    assert outside.read_bytes() == OLD


def test_a_folder_link_out_of_the_worktree_is_refused(
    root: Path, tmp_path: Path, history: ChangeLog
) -> None:
    outside = kernel(tmp_path, "elsewhere/gemm.cl")
    (root / "kernels").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IoFailed, match="outside the worktree"):
        history.apply([edit(outside, path="kernels/gemm.cl")], meta())
    assert outside.read_bytes() == OLD


@pytest.mark.parametrize("path", ["../outside.cl", "/etc/hosts", "", "a/../../outside.cl", "a\0b"])
def test_a_path_out_of_the_worktree_is_refused(
    path: str, root: Path, tmp_path: Path, history: ChangeLog
) -> None:
    outside = kernel(tmp_path, "outside.cl")
    with pytest.raises(IoFailed, match="not a path inside the worktree"):
        history.apply([FileEdit(path, digest(OLD), NEW)], meta())
    assert outside.read_bytes() == OLD


def test_two_names_of_one_file_are_refused(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    (root / "alias.cl").symlink_to("gemm.cl")
    with pytest.raises(IoFailed, match="same file through a link"):
        history.apply([edit(location), edit(location, b"third\n", "alias.cl")], meta())
    assert location.read_bytes() == OLD


def test_a_loop_of_links_is_refused(root: Path, history: ChangeLog) -> None:
    (root / "gemm.cl").symlink_to("gemm.cl")
    with pytest.raises(IoFailed, match=r"cannot look at gemm\.cl"):
        history.apply([FileEdit("gemm.cl", digest(OLD), NEW)], meta())


def test_a_folder_is_not_a_file(root: Path, history: ChangeLog) -> None:
    (root / "gemm.cl").mkdir()
    with pytest.raises(IoFailed, match="not a regular file"):
        history.apply([FileEdit("gemm.cl", digest(OLD), NEW)], meta())


def test_a_read_only_file_is_refused_even_to_root(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    location.chmod(0o444)
    with pytest.raises(IoFailed, match=r"read-only \(mode 0444\); try chmod u\+w"):
        history.apply([edit(location)], meta())
    assert location.read_bytes() == OLD


def test_a_file_in_a_read_only_folder_is_refused(root: Path, history: ChangeLog) -> None:
    location = kernel(root, "kernels/gemm.cl")
    location.parent.chmod(0o555)
    try:
        with pytest.raises(IoFailed, match=r"read-only folder \(mode 0555\); try chmod u\+w"):
            history.apply([edit(location, path="kernels/gemm.cl")], meta())
    finally:
        location.parent.chmod(0o755)
    assert location.read_bytes() == OLD


def test_a_hard_link_is_refused_rather_than_parted(root: Path, history: ChangeLog) -> None:
    location = kernel(root)
    (root / "second.cl").hardlink_to(location)
    with pytest.raises(IoFailed, match="has 2 hard links"):
        history.apply([edit(location)], meta())
    assert location.read_bytes() == OLD


def test_each_write_is_announced_with_its_digest(root: Path, journal: Journal) -> None:
    location = kernel(root)
    told: list[tuple[str, str]] = []
    history = ChangeLog(journal, root, announce=lambda path, sha: told.append((path, sha)))
    history.apply([edit(location)], meta())
    history.undo()
    assert told == [("gemm.cl", digest(NEW)), ("gemm.cl", digest(OLD))]


def test_a_change_carries_what_it_is_about(root: Path, journal: Journal) -> None:
    location = kernel(root)
    history = ChangeLog(journal, root, now=lambda: "2026-01-02T03:04:05.000+00:00")
    change = history.apply([edit(location)], meta(key="k9"))
    assert change == Change(
        id=change.id,
        at="2026-01-02T03:04:05.000+00:00",
        kind=Kind.APPLIED,
        meta=meta(key="k9"),
        files=("gemm.cl",),
        origin=change.id,
        undoable=True,
    )

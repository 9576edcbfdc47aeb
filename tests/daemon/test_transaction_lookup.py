"""Looking changes up: by the request that made them, and what files were before them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.errors import NotFound, Stale
from daemon.journal import Journal
from daemon.transaction import ChangeLog, ChangeMeta
from gate.values.candidate import FileEdit
from gate.values.kernel import digest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "worktree"
    folder.mkdir()
    return folder


@pytest.fixture
def history(tmp_path: Path, root: Path) -> Iterator[ChangeLog]:
    journal = Journal(tmp_path / "state" / "journal.db")
    yield ChangeLog(journal, root)
    journal.close()


def meta(key: str = "") -> ChangeMeta:
    return ChangeMeta("0123456789ab", "opencl.stage", "gemm.cl::gemm", "2x", "c" * 64, key)


def change(history: ChangeLog, root: Path, after: dict[str, bytes], key: str = "") -> int:
    """Apply new bytes to files; the entry's id."""
    edits = [FileEdit(p, digest((root / p).read_bytes()), data) for p, data in after.items()]
    return history.apply(edits, meta(key)).id


def test_a_change_is_found_by_the_key_of_its_request(history: ChangeLog, root: Path) -> None:
    (root / "gemm.cl").write_bytes(b"one")
    id = change(history, root, {"gemm.cl": b"two"}, key="k1")
    found = history.done_with("k1")
    assert found is not None
    assert (found.id, found.meta.key) == (id, "k1")
    assert history.done_with("k2") is None


def test_a_change_without_a_key_is_found_by_none(history: ChangeLog, root: Path) -> None:
    (root / "gemm.cl").write_bytes(b"one")
    change(history, root, {"gemm.cl": b"two"})
    assert history.done_with("") is None


def test_a_request_that_was_refused_made_no_change(history: ChangeLog, root: Path) -> None:
    (root / "gemm.cl").write_bytes(b"one")
    with pytest.raises(Stale):
        history.apply([FileEdit("gemm.cl", digest(b"other"), b"two")], meta("k1"))
    assert history.done_with("k1") is None


def test_an_undone_change_is_still_the_one_its_request_made(history: ChangeLog, root: Path) -> None:
    (root / "gemm.cl").write_bytes(b"one")
    id = change(history, root, {"gemm.cl": b"two"}, key="k1")
    history.undo()
    found = history.done_with("k1")
    assert found is not None
    assert (found.id, found.undoable) == (id, False)


def test_files_before_an_entry_are_those_before_the_first_change_since(
    history: ChangeLog, root: Path
) -> None:
    (root / "gemm.cl").write_bytes(b"k0")
    (root / "workload.py").write_bytes(b"w0")
    first = change(history, root, {"gemm.cl": b"k1", "workload.py": b"w1"})
    second = change(history, root, {"gemm.cl": b"k2"})
    third = change(history, root, {"workload.py": b"w2"})
    assert history.files_before(first) == {"gemm.cl": b"k0", "workload.py": b"w0"}
    assert history.files_before(second) == {"gemm.cl": b"k1", "workload.py": b"w1"}
    assert history.files_before(third) == {"workload.py": b"w1"}


def test_files_before_an_entry_that_was_undone_since_are_the_same(
    history: ChangeLog, root: Path
) -> None:
    (root / "gemm.cl").write_bytes(b"k0")
    first = change(history, root, {"gemm.cl": b"k1"})
    undone = history.undo().id
    history.redo()
    assert history.files_before(first) == {"gemm.cl": b"k0"}
    assert history.files_before(undone) == {"gemm.cl": b"k1"}


def test_a_rejection_between_changes_nothing(history: ChangeLog, root: Path) -> None:
    (root / "gemm.cl").write_bytes(b"k0")
    rejection = history.record_rejection(meta(), "too many registers").id
    change(history, root, {"gemm.cl": b"k1"})
    assert history.files_before(rejection) == {"gemm.cl": b"k0"}


def test_files_before_a_rejection_that_came_last_are_none(history: ChangeLog) -> None:
    rejection = history.record_rejection(meta(), "no").id
    assert history.files_before(rejection) == {}


def test_there_are_no_files_before_an_entry_that_is_not_there(history: ChangeLog) -> None:
    with pytest.raises(NotFound, match="no change #7"):
        history.files_before(7)

"""The answer whether a worktree's content may be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.errors import IoFailed
from daemon.trust import Trust
from daemon.worktree import data_dir, worktree_id


def test_nothing_is_trusted_before_it_was_asked(place: Path) -> None:
    trust = Trust(place)
    assert (trust.asked, trust.trusted) == (False, False)


@pytest.mark.parametrize("answer", [True, False])
def test_an_answer_is_remembered_for_its_worktree_alone(
    place: Path, tmp_path: Path, answer: bool
) -> None:
    Trust(place).answer(answer)
    again = Trust(place)
    assert (again.asked, again.trusted) == (True, answer)
    assert not Trust(tmp_path).asked


def test_an_answer_can_be_taken_back(place: Path) -> None:
    Trust(place).answer(True)
    Trust(place).answer(False)
    assert not Trust(place).trusted


def test_a_worktree_reached_by_a_link_is_the_same(place: Path, tmp_path: Path) -> None:
    Trust(place).answer(True)
    link = tmp_path / "link"
    link.symlink_to(place)
    assert Trust(link).trusted


def test_an_answer_that_could_have_come_with_the_repository_is_not_believed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Trust(place).answer(True)
    answered = data_dir() / "trust" / f"{worktree_id(place)}.json"
    monkeypatch.setenv("XDG_DATA_HOME", str(place / ".local"))
    planted = data_dir() / "trust" / answered.name
    planted.parent.mkdir(parents=True)
    planted.write_bytes(answered.read_bytes())
    trust = Trust(place)
    assert not trust.trusted
    with pytest.raises(IoFailed, match="holds until the daemon ends"):
        trust.answer(True)
    assert trust.trusted


def test_a_damaged_answer_asks_again(place: Path) -> None:
    Trust(place).answer(True)
    (data_dir() / "trust" / f"{worktree_id(place)}.json").write_text("{")
    assert not Trust(place).asked


def test_an_answer_for_another_root_of_the_same_id_is_not_believed(
    place: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    Trust(other).answer(True)
    folder = data_dir() / "trust"
    (folder / f"{worktree_id(other)}.json").rename(folder / f"{worktree_id(place)}.json")
    assert not Trust(place).trusted


def test_an_answer_that_cannot_be_written_holds_and_says_so(place: Path) -> None:
    data_dir().parent.mkdir(parents=True)
    data_dir().write_text("a file in the way")
    trust = Trust(place)
    with pytest.raises(IoFailed, match="is not remembered"):
        trust.answer(True)
    assert trust.trusted

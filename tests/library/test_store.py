"""Skills and evidence of three places: real files, one broken one at a time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest
from target_builders import card, trial

from library.card import Card
from library.errors import LibraryError
from library.evidence import CardStatus
from library.settings import LibrarySettings
from library.skill_folder import folder_name, write_skill
from library.store import Place, Store, places
from library.trial import Trial

BODY = (
    "# Overview\n\nText.\n\n# Precondition\n\n- none\n\n# Scope\n\n- any\n\n# Code Change Snippet\n"
)


def three_places(root: Path) -> tuple[Place, ...]:
    return (
        Place("shipped", root / "shipped"),
        Place("user", root / "user"),
        Place("repository", root / "repository"),
    )


def put(place: Path, skill: Card) -> Path:
    folder = place / folder_name(skill.skill_id)
    write_skill(folder, skill, BODY)
    return folder


def put_trial(folder: Path, made: Trial) -> Path:
    path = folder / "evidence" / made.card / f"{made.trial_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(made))
    return path


def test_no_place_need_exist(tmp_path: Path) -> None:
    store = Store(three_places(tmp_path)).load()
    assert store.entries == ()
    assert store.problems == ()


def test_a_later_place_shadows_the_same_skill_of_an_earlier_one(tmp_path: Path) -> None:
    shipped, own = card(claims=(1.1, 1.2)), card(claims=(2.0, 3.0))
    put(tmp_path / "shipped", shipped)
    put(tmp_path / "shipped", card("opencl.other"))
    put(tmp_path / "repository", own)
    store = Store(three_places(tmp_path)).load()
    assert [(e.card.skill_id, e.place) for e in store.entries] == [
        ("opencl.other", "shipped"),
        ("opencl.scale-wide", "repository"),
    ]
    assert store.find("opencl.scale-wide").digest == own.digest


def test_two_cards_of_one_id_in_one_place_are_both_kept(tmp_path: Path) -> None:
    first, second = card(claims=(1.1, 1.2)), card(claims=(2.0, 3.0))
    write_skill(tmp_path / "user" / "one", first, BODY)
    write_skill(tmp_path / "user" / "two", second, BODY)
    store = Store(three_places(tmp_path)).load()
    assert {entry.digest for entry in store.entries} == {first.digest, second.digest}
    with pytest.raises(LibraryError, match="several cards"):
        store.find("opencl.scale-wide")
    assert store.find(first.digest[:8]).card == first


def test_evidence_is_the_union_over_all_places_by_card_digest(tmp_path: Path) -> None:
    skill = card()
    folder = put(tmp_path / "shipped", skill)
    put_trial(folder, trial(skill.digest, id="here"))
    put_trial(tmp_path / "user" / folder.name, trial(skill.digest, id="mine", speedup=1.5))
    put_trial(
        tmp_path / "repository" / "renamed", trial(skill.digest, id="theirs", closure="e" * 64)
    )
    put_trial(tmp_path / "repository" / "renamed", trial(skill.digest, id="here"))
    store = Store(three_places(tmp_path)).load()
    (entry,) = store.entries
    assert [t.trial_id for t in entry.evidence.trials] == ["here", "mine", "theirs"]
    assert entry.status("pocl-cpu") is CardStatus.ADMITTED
    assert store.problems == ()


def test_a_trial_of_a_shipped_card_is_written_to_the_users_place(tmp_path: Path) -> None:
    skill = card()
    folder = put(tmp_path / "shipped", skill)
    store = Store(three_places(tmp_path)).load()
    before = sorted(p for p in tmp_path.rglob("*") if p.is_file())
    path = store.add_trial(store.find(skill.skill_id), trial(skill.digest, id="t-1"))
    assert path == tmp_path / "user" / folder.name / "evidence" / skill.digest / "t-1.json"
    assert sorted(p for p in tmp_path.rglob("*") if p.is_file()) == sorted([*before, path])
    assert store.find(skill.skill_id).evidence.admitted_on == {"pocl-cpu"}


def test_a_trial_is_never_rewritten(tmp_path: Path) -> None:
    skill = card()
    put(tmp_path / "shipped", skill)
    store = Store(three_places(tmp_path)).load()
    entry = store.find(skill.skill_id)
    path = store.add_trial(entry, trial(skill.digest))
    bytes_before = path.read_bytes()
    with pytest.raises(LibraryError, match="File exists"):
        store.add_trial(entry, trial(skill.digest, speedup=9.0))
    assert path.read_bytes() == bytes_before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("id", ["../../escape", "", ".hidden", "a/b", "x" * 90])
def test_a_trial_id_that_is_no_file_name_is_refused(tmp_path: Path, id: str) -> None:
    skill = card()
    put(tmp_path / "shipped", skill)
    store = Store(three_places(tmp_path)).load()
    with pytest.raises(LibraryError, match="no file name"):
        store.add_trial(store.find(skill.skill_id), trial(skill.digest, id=id))


def test_a_broken_folder_is_one_line_and_the_rest_still_loads(tmp_path: Path) -> None:
    good, bad = card(), card("opencl.bad")
    folder = put(tmp_path / "shipped", good)
    card_file = put(tmp_path / "shipped", bad) / "references" / "card.json"
    card_file.write_text(card_file.read_text().replace('"intent"', '"intend"'))
    put_trial(folder, trial(good.digest, id="ok"))
    put_trial(folder, trial(good.digest, id="bad")).write_text("{")
    store = Store(three_places(tmp_path)).load()
    assert [entry.card.skill_id for entry in store.entries] == ["opencl.scale-wide"]
    assert len(store.entries[0].evidence.trials) == 1
    lines = sorted(map(str, store.problems))
    assert len(lines) == 2
    assert str(card_file) in lines[0]
    assert "intend" in lines[0]
    assert "bad.json" in lines[1]


def test_a_fifo_or_a_huge_file_is_a_problem_and_blocks_nothing(tmp_path: Path) -> None:
    folder = put(tmp_path / "user", card())
    (folder / "references" / "card.json").unlink()
    os.mkfifo(folder / "references" / "card.json")
    huge = put(tmp_path / "user", card("opencl.huge")) / "references" / "card.json"
    huge.write_bytes(b" " * (1024 * 1024 + 1))
    store = Store(three_places(tmp_path)).load()
    assert store.entries == ()
    assert all("no regular file" in problem.what for problem in store.problems)
    assert len(store.problems) == 2


def test_a_changed_card_is_read_again_and_an_unchanged_one_is_kept(tmp_path: Path) -> None:
    first, second = card(), card("opencl.other")
    folder = put(tmp_path / "user", first)
    put(tmp_path / "user", second)
    store = Store(three_places(tmp_path)).load()
    kept = store.find("opencl.other").card
    write_skill(folder, card(claims=(5.0, 6.0)), BODY)
    store.load()
    assert store.find("opencl.scale-wide").card.effects[0].low == 5.0
    assert store.find("opencl.other").card is kept


def test_a_removed_skill_is_gone_after_a_reload(tmp_path: Path) -> None:
    folder = put(tmp_path / "user", card())
    store = Store(three_places(tmp_path)).load()
    folder.rename(tmp_path / "elsewhere")
    assert store.load().entries == ()


def test_disabled_skills_are_left_out_by_pattern(tmp_path: Path) -> None:
    put(tmp_path / "user", card("opencl.native-exp"))
    put(tmp_path / "user", card("opencl.unroll"))
    store = Store(three_places(tmp_path), disabled=["opencl.native-*"]).load()
    assert [entry.card.skill_id for entry in store.entries] == ["opencl.unroll"]


def test_a_card_that_another_replaces_is_retired(tmp_path: Path) -> None:
    old = card()
    put(tmp_path / "user", old)
    put(tmp_path / "user", card("opencl.new", supersedes=old.digest))
    store = Store(three_places(tmp_path)).load()
    assert store.find(old.skill_id).status("pocl-cpu") is CardStatus.RETIRED


def test_an_unknown_skill_says_how_to_list_them(tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match="klineage skills list"):
        Store(three_places(tmp_path)).load().find("opencl.nothing")


def test_the_three_places_are_shipped_user_and_repository(tmp_path: Path) -> None:
    settings = LibrarySettings(user_skills=str(tmp_path / "mine"))
    found = places(tmp_path, settings)
    assert [place.name for place in found] == ["shipped", "user", "repository"]
    assert found[0].path.name == "skills"
    assert found[1].path == tmp_path / "mine"
    assert found[2].path == tmp_path / ".klineage" / "skills"


@pytest.mark.serial
def test_three_hundred_skills_load_in_well_under_a_tenth_of_a_second(tmp_path: Path) -> None:
    for number in range(300):
        put(tmp_path / "user", card(f"opencl.skill-{number}", checks={"k": "K % 64 == 0"}))
    store = Store(three_places(tmp_path))
    began = time.perf_counter()
    store.load()
    loaded = time.perf_counter()
    store.load()
    reloaded = time.perf_counter()
    assert len(store.entries) == 300
    assert loaded - began < 0.1
    assert reloaded - loaded < 0.05

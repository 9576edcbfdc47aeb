"""Every skill that klineage ships is valid, and loads."""

from __future__ import annotations

from pathlib import Path

import pytest

import library
from library.card import TransformCarrier
from library.skill_validation import validate
from library.store import Place, Store
from library.transforms.registry import TRANSFORMS

SHIPPED = Path(library.__file__).parent / "skills"
FOLDERS = sorted(path.parent for path in SHIPPED.glob("*/SKILL.md"))


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_a_shipped_skill_has_no_defect(folder: Path) -> None:
    assert [str(defect) for defect in validate(folder, TRANSFORMS)] == []


def test_all_shipped_skills_load_and_are_mechanical() -> None:
    store = Store([Place("shipped", SHIPPED)]).load()
    assert store.problems == ()
    assert len(store.entries) == len(FOLDERS) > 0
    assert all(isinstance(entry.card.carrier, TransformCarrier) for entry in store.entries)


def test_every_transform_is_used_by_a_shipped_skill() -> None:
    store = Store([Place("shipped", SHIPPED)]).load()
    used = {
        entry.card.carrier.name
        for entry in store.entries
        if isinstance(entry.card.carrier, TransformCarrier)
    }
    assert used == set(TRANSFORMS)


def test_every_precondition_of_a_shipped_skill_has_a_check() -> None:
    store = Store([Place("shipped", SHIPPED)]).load()
    unchecked = [
        f"{entry.card.skill_id}: {condition.id}"
        for entry in store.entries
        for condition in entry.card.preconditions
        if condition.check is None
    ]
    assert unchecked == []

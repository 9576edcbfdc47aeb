"""Skill folders: written, read back, and what is wrong with a bad one."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from target_builders import card, trial

from library.card import Card, FeatureRef, Precondition, Scope
from library.errors import CardError
from library.skill_folder import describe, folder_name, read_skill, render, split, write_skill
from library.skill_validation import validate

BODY = """# Overview

Load eight floats at once.

# Precondition

- Layout: rows are contiguous.

# Scope

- Languages: opencl

# Code Change Snippet

```c
# Overview is no heading here
```
"""
TRANSFORMS = {"opencl.scale-wide"}


def written(root: Path, skill: Card | None = None) -> Path:
    skill = skill or card(checks={"n": "N % 8 == 0"}, provides=("F03",))
    folder = root / folder_name(skill.skill_id)
    write_skill(folder, skill, BODY)
    return folder


def defects(folder: Path) -> list[str]:
    return [f"{d.path.name}:{d.line}: {d.field}: {d.what}" for d in validate(folder, TRANSFORMS)]


def change(folder: Path, file: str, old: str, new: str) -> None:
    path = folder / file
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def test_a_written_skill_is_valid_and_reads_back(tmp_path: Path) -> None:
    skill = card(checks={"n": "N % 8 == 0"})
    folder = written(tmp_path, skill)
    assert defects(folder) == []
    read = read_skill(folder)
    assert read.card == skill
    assert read.name == "opencl-scale-wide"
    assert read.body.strip() == BODY.strip()
    assert read.license == "Apache-2.0"
    assert read.metadata["kl-card-sha256"] == skill.digest


def test_the_front_matter_holds_what_agent_skills_allows(tmp_path: Path) -> None:
    front, _ = split((written(tmp_path) / "SKILL.md").read_text("utf-8"), tmp_path)
    assert list(front) == ["name", "description", "license", "metadata"]
    assert isinstance(front["metadata"], dict)
    assert all(isinstance(value, str) for value in front["metadata"].values())


@given(st.text(min_size=1, max_size=1500))
@settings(max_examples=200, deadline=None)
def test_any_intent_gives_front_matter_that_loads(intent: str) -> None:
    skill = msgspec.structs.replace(card(scope=Scope(cases=("gemm",))), intent=intent)
    front, _ = split(render("opencl-x", skill, BODY, "MIT"), Path("SKILL.md"))
    description = front["description"]
    assert isinstance(description, str)
    assert description == describe(skill)
    assert len(description) <= 1024
    assert not set(description) & set("<>")


def test_folder_names_are_lower_case_words_with_single_hyphens() -> None:
    assert folder_name("opencl.coarsen-rows") == "opencl-coarsen-rows"
    assert folder_name("Sparse_MLA..TMA--prefetch.") == "sparse-mla-tma-prefetch"
    assert len(folder_name("x." * 80)) <= 64


def test_a_missing_front_matter_and_a_broken_one_name_the_file(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / "SKILL.md").write_text("# Overview\n")
    with pytest.raises(CardError, match=r"SKILL\.md: does not begin with front matter"):
        read_skill(folder)
    (folder / "SKILL.md").write_text("---\nname: [\n---\n\nbody\n")
    with pytest.raises(CardError, match=r"SKILL\.md: front matter"):
        read_skill(folder)


@pytest.mark.parametrize(
    ("file", "old", "new", "defect"),
    [
        ("SKILL.md", "name: opencl-scale-wide", "name: other", "SKILL.md:2: name: is 'other'"),
        (
            "SKILL.md",
            "license:",
            "compatibility: x\nlicense:",
            "SKILL.md:4: compatibility: is no key",
        ),
        (
            "SKILL.md",
            'description: "',
            'description: "<',
            "SKILL.md:3: description: holds an angle",
        ),
        ("SKILL.md", 'kl-schema: "1"', "kl-schema: 1", "SKILL.md:6: kl-schema: is 1, not a string"),
        ("SKILL.md", 'kl-id: "opencl', 'kl-id: "cuda', "SKILL.md:7: kl-id: is 'cuda.scale-wide'"),
        ("SKILL.md", "# Scope", "# Scopes", "SKILL.md:1: body: has no section `# Scope`"),
        ("SKILL.md", "# Overview", "Overview", "SKILL.md:1: body: has no section `# Overview`"),
        ("references/card.json", '"intent"', '"intend"', "card.json:1: card"),
        (
            "references/card.json",
            "N % 8 == 0",
            "N %% 8",
            "preconditions.n.check: 'N %% 8' is not an",
        ),
        (
            "references/card.json",
            "(for_statement)",
            "(foo_statement)",
            "anchors.opencl: is no tree-sitter",
        ),
        ("references/card.json", "@loop", "", "anchors.opencl: captures nothing"),
        (
            "references/card.json",
            '"opencl": "(',
            '"opencll": "(',
            "anchors.opencll: is no language",
        ),
        (
            "references/card.json",
            '"F03"',
            '"F93"',
            "requires, provides, conflicts: is no feature id",
        ),
        (
            "references/card.json",
            '"name": "opencl.scale-wide"',
            '"name": "x.y"',
            "carrier.name: is no transform",
        ),
        ("references/card.json", '"low": 1.2', '"low": 9.0', "effects.speedup: has low above high"),
    ],
)
def test_each_defect_is_named_with_file_line_and_field(
    tmp_path: Path, file: str, old: str, new: str, defect: str
) -> None:
    folder = written(tmp_path)
    change(folder, file, old, new)
    assert any(defect in line for line in defects(folder)), defects(folder)


def test_a_defect_of_a_card_is_placed_at_its_line(tmp_path: Path) -> None:
    folder = written(tmp_path)
    change(folder, "references/card.json", "N % 8 == 0", "N %")
    (defect,) = [d for d in validate(folder, TRANSFORMS) if d.field.endswith(".check")]
    lines = (folder / "references" / "card.json").read_text().splitlines()
    assert '"n"' in lines[defect.line - 1]
    assert str(defect).startswith(
        f"{folder}/references/card.json:{defect.line}: preconditions.n.check"
    )


def test_an_edited_card_no_longer_has_the_digest_in_its_front_matter(tmp_path: Path) -> None:
    folder = written(tmp_path)
    change(folder, "references/card.json", "fewer load", "less load")
    assert any("kl-card-sha256" in line for line in defects(folder))


def test_a_condition_id_that_appears_twice_and_a_scope_without_anchor_are_defects(
    tmp_path: Path,
) -> None:
    twice = Precondition("n", "layout", "text", "N > 1")
    skill = msgspec.structs.replace(
        card(scope=Scope(languages=("cuda",))),
        preconditions=(twice, twice),
        conflicts=(FeatureRef("F02", "tile"), FeatureRef("F02", "loop")),
    )
    found = defects(written(tmp_path, skill))
    assert any("preconditions.n: appears twice" in line for line in found)
    assert any("scope.languages: has no anchor" in line for line in found)
    assert sum("is neither `kernel` nor captured" in line for line in found) == 1


def test_evidence_that_is_misplaced_or_broken_is_a_defect(tmp_path: Path) -> None:
    skill = card()
    folder = written(tmp_path, skill)
    place = folder / "evidence" / ("f" * 64)
    place.mkdir(parents=True)
    (place / "t9.json").write_bytes(msgspec.json.encode(trial(skill.digest)))
    (place / "t1.json").write_text(json.dumps({"trial_id": "t1"}))
    found = defects(folder)
    assert any(line.startswith("t9.json:1: card") for line in found)
    assert any(line.startswith("t9.json:1: trial_id") for line in found)
    assert any(line.startswith("t1.json:1: trial:") for line in found)


def test_descriptions_survive_a_yaml_loader_of_another_tool() -> None:
    skill = msgspec.structs.replace(
        card(), intent='Use "wide": loads — #1, {x}\u2028 \x85 \ufffe é 𝔘'
    )
    text = render("opencl-x", skill, BODY, "MIT")
    assert yaml.safe_load(text.split("---\n")[1])["description"] == describe(skill)

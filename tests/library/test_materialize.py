"""From a card and a match to a candidate, or to why there is none."""

from __future__ import annotations

import pytest
from target_builders import SOURCE, card, locus, target

from gate.values.candidate import Candidate
from library.card import PatchCarrier, SketchCarrier, TransformCarrier
from library.edits import ByteEdit, Refusal
from library.errors import LibraryError
from library.materialize import materialize
from library.target import Captures, Target
from library.transforms import Parameters, Transform
from library.transforms.registry import TRANSFORMS

NAME = "opencl.scale-wide"
MATCH: Captures = {"loop": (locus("for", SOURCE.index(b"for")),)}


def editing(*edits: ByteEdit) -> dict[str, Transform]:
    def transform(on: Target, match: Captures, parameters: Parameters) -> tuple[ByteEdit, ...]:
        return edits

    return {NAME: transform}


def test_a_transform_gets_target_match_and_parameters_and_its_edits_make_the_candidate() -> None:
    def unroll(on: Target, match: Captures, parameters: Parameters) -> tuple[ByteEdit, ...]:
        at = match["loop"][0].start
        return (ByteEdit(on.kernel.path, at, at, f"#pragma unroll {parameters['by']}\n".encode()),)

    skill = card(carrier=TransformCarrier(NAME, {"by": 4}))
    candidate = materialize(skill, MATCH, target(), {NAME: unroll})
    assert isinstance(candidate, Candidate)
    assert candidate.skill == skill.digest
    assert candidate.edits[0].after == SOURCE.replace(b"for", b"#pragma unroll 4\nfor")


@pytest.mark.parametrize(
    ("carrier", "kind"), [(PatchCarrier("a", "b"), "patch"), (SketchCarrier("Stage it."), "sketch")]
)
def test_a_carrier_without_a_transform_needs_a_rewriter(
    carrier: PatchCarrier | SketchCarrier, kind: str
) -> None:
    refusal = materialize(card(carrier=carrier), MATCH, target())
    assert refusal == Refusal(f"needs a rewriter: its carrier is a {kind}")


def test_an_unknown_transform_is_refused_by_name() -> None:
    refusal = materialize(card(), MATCH, target(), {})
    assert isinstance(refusal, Refusal)
    assert NAME in refusal.reason


def test_a_refusal_of_the_transform_is_passed_on() -> None:
    refusal = Refusal("line 3: the index is not affine")
    assert materialize(card(), MATCH, target(), {NAME: lambda *_: refusal}) == refusal


@pytest.mark.parametrize("edits", [(), (ByteEdit("scale.cl", 0, 6, SOURCE[:6]),)])
def test_an_edit_that_changes_nothing_is_no_candidate(edits: tuple[ByteEdit, ...]) -> None:
    refusal = materialize(card(), MATCH, target(), editing(*edits))
    assert refusal == Refusal("the edit changes nothing here")


@pytest.mark.parametrize(
    "edits",
    [
        (ByteEdit("scale.cl", 0, 9, b""), ByteEdit("scale.cl", 5, 12, b"")),
        (ByteEdit("scale.cl", 0, 10_000, b""),),
        (ByteEdit("elsewhere.cl", 0, 0, b"x"),),
    ],
)
def test_a_transform_at_fault_is_an_error_that_names_it(edits: tuple[ByteEdit, ...]) -> None:
    with pytest.raises(LibraryError, match=r"transform opencl\.scale-wide on scale\.cl::scale"):
        materialize(card(), MATCH, target(), editing(*edits))


def test_the_same_edit_gives_the_same_candidate_digest() -> None:
    edit = ByteEdit("scale.cl", 0, 6, b"__kernel")
    made = [materialize(card(), MATCH, target(), editing(edit)) for _ in range(2)]
    assert made[0] == made[1]


def test_transforms_are_named_after_their_language() -> None:
    assert TRANSFORMS
    assert all(name.split(".")[0] in ("opencl", "triton") for name in TRANSFORMS)

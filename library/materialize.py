"""Making the candidate of a skill at a place of a kernel."""

from __future__ import annotations

from collections.abc import Mapping

from gate.values.candidate import Candidate
from library.card import Card, TransformCarrier
from library.edits import Refusal, candidate_from
from library.errors import LibraryError
from library.target import Captures, Target
from library.transforms import Transform
from library.transforms.registry import TRANSFORMS


def materialize(
    card: Card, match: Captures, target: Target, transforms: Mapping[str, Transform] = TRANSFORMS
) -> Candidate | Refusal:
    """The candidate a card makes of a target at one match of its anchor, or why it makes none.

    Whether the card applies there is retrieval's to say; this only edits. Raises LibraryError if
    the transform is at fault: edits that overlap or leave the kernel's closure.
    """
    carrier = card.carrier
    if not isinstance(carrier, TransformCarrier):
        return Refusal(f"needs a rewriter: its carrier is a {carrier.__struct_config__.tag}")
    transform = transforms.get(carrier.name)
    if transform is None:
        return Refusal(f"this version has no transform {carrier.name}")
    edits = transform(target, match, carrier.parameters)
    if isinstance(edits, Refusal):
        return edits
    try:
        candidate = candidate_from(target.kernel, card.digest, edits)
    except (ValueError, KeyError) as error:
        where = f"{target.kernel.path}::{target.kernel.entry}"
        raise LibraryError(f"transform {carrier.name} on {where}: {error}") from error
    if all(edit.after == target.kernel.file(edit.path).data for edit in candidate.edits):
        return Refusal("the edit changes nothing here")
    return candidate

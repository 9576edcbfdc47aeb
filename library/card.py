"""Card: one immutable, conditioned procedural skill. Its digest is its key.

On disk: `<skill folder>/references/card.json`; `shared` words are in docs/design.md.
Status, verified scope, measured effect and negative facts are derived from evidence, never typed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from library.errors import CardError

Category = Literal["data_types", "layout", "storage", "pipeline", "hardware", "other"]


class Precondition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One condition under which the intent is sound."""

    id: str
    category: Category
    text: str
    """For people."""
    check: str | None = None
    """Condition expression over facts (docs/conditions.md). None: only a person or LLM can judge."""


class FeatureRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A feature at a place: what must be, will be, or must not be there."""

    name: str
    """`F05`."""
    locus: str = "kernel"


class Effect(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An expected effect, as a range."""

    metric: str
    direction: Literal["up", "down"]
    low: float | None = None
    high: float | None = None
    unit: str = "ratio"


class Scope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the card claims to apply. `*` is any."""

    cases: tuple[str, ...] = ("*",)
    languages: tuple[str, ...] = ("*",)
    platforms: tuple[str, ...] = ("*",)
    """Platform names or patterns: `pocl-cpu`, `sm_*`."""
    prior_actions: tuple[str, ...] = ()


class TransformCarrier(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="transform", tag_field="kind"
):
    """A mechanical edit: a named function of library/transforms."""

    name: str
    """`opencl.coarsen`."""
    parameters: dict[str, int | str | bool] = msgspec.field(default_factory=dict)


class PatchCarrier(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="patch", tag_field="kind"
):
    """A before/after patch with holes; needs a rewriter to fill them."""

    before: str
    after: str


class SketchCarrier(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="sketch", tag_field="kind"
):
    """Prose for a rewriter."""

    text: str


Carrier = TransformCarrier | PatchCarrier | SketchCarrier


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where the card comes from."""

    kind: Literal["shipped", "lineage", "import", "human"]
    source: str = ""
    licence: str = ""


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A skill. Change anything and it is another card."""

    skill_id: str
    """Dotted family and name, `opencl.coarsen-rows`. Not unique: the digest is."""
    intent: str
    """One line: what it does and why that is faster."""
    anchors: dict[str, str]
    """Language → tree-sitter query. Each match is a place the skill could act on."""
    carrier: Carrier
    preconditions: tuple[Precondition, ...]
    scope: Scope
    provenance: Provenance
    requires: tuple[FeatureRef, ...] = ()
    """Features that must be present."""
    provides: tuple[FeatureRef, ...] = ()
    """Features that will be present; a kernel that has them all at the locus needs no such skill."""
    conflicts: tuple[FeatureRef, ...] = ()
    effects: tuple[Effect, ...] = ()
    risks: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    supersedes: str | None = None
    schema: Literal[1] = 1

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, 64 hex digits."""
        return hashlib.sha256(canonical(self)).hexdigest()


def canonical(card: Card) -> bytes:
    """The card as deterministic JSON: sorted keys, no insignificant space."""
    return msgspec.json.encode(card, order="deterministic")


def read_card(path: Path) -> Card:
    """The card at `path`. Raises CardError naming file and field."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Card)
    except (OSError, msgspec.MsgspecError) as error:
        raise CardError(f"{path}: {error}") from error


def write_card(card: Card, path: Path) -> None:
    """Write the card, indented for reading; its digest is of the canonical form."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(canonical(card), indent=2) + b"\n")

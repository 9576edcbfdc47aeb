"""What is wrong with a skill folder: each defect with file, line and field."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec
import tree_sitter
import tree_sitter_cuda
import tree_sitter_python

from gate.values.kernel import Language
from library.card import Card, TransformCarrier, read_card
from library.conditions import parse
from library.errors import CardError, ConditionError
from library.features import NAMES
from library.skill_folder import (
    CARD_FILE,
    DESCRIPTION_LENGTH,
    EVIDENCE_FOLDER,
    NAME_LENGTH,
    SECTIONS,
    SKILL_FILE,
    split,
)
from library.trial import Trial

ALLOWED_KEYS = frozenset({"name", "description", "license", "metadata", "allowed-tools"})
"""Front matter keys that every known loader accepts."""
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Defect:
    """Something wrong with a skill folder."""

    path: Path
    line: int
    """1-based; the first line where the whole file is at fault."""
    field: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.field}: {self.what}"


def validate(folder: Path, transforms: Collection[str]) -> tuple[Defect, ...]:
    """Every defect of a skill folder; none if it is valid.

    `transforms` are the names a transform carrier may have.
    """
    try:
        card = read_card(folder / CARD_FILE)
    except CardError as error:
        return (*_skill_file(folder, None), Defect(folder / CARD_FILE, 1, "card", str(error)))
    return (*_skill_file(folder, card), *_card(folder, card, transforms), *_evidence(folder))


def _skill_file(folder: Path, card: Card | None) -> Iterator[Defect]:
    path = folder / SKILL_FILE
    try:
        text = path.read_text("utf-8")
        front, body = split(text, path)
    except (OSError, UnicodeDecodeError, CardError) as error:
        yield Defect(path, 1, "front matter", str(error))
        return

    def defect(field: str, what: str) -> Defect:
        return Defect(path, _line_of(text, rf"^\s*{re.escape(field)}\s*:"), field, what)

    for key in front.keys() - ALLOWED_KEYS:
        yield defect(
            str(key), f"is no key of the Agent Skills form ({', '.join(sorted(ALLOWED_KEYS))})"
        )
    name, description = front.get("name"), front.get("description")
    if name != folder.name:
        yield defect("name", f"is {name!r}, but the folder is {folder.name!r}")
    elif not NAME.fullmatch(folder.name) or len(folder.name) > NAME_LENGTH:
        yield defect(
            "name", f"is not lower-case words with single hyphens, at most {NAME_LENGTH} long"
        )
    if not isinstance(description, str) or not 0 < len(description) <= DESCRIPTION_LENGTH:
        yield defect("description", f"is not a text of 1 to {DESCRIPTION_LENGTH} characters")
    elif set(description) & set("<>"):
        yield defect("description", "holds an angle bracket")
    yield from _metadata(front.get("metadata"), card, defect)
    titles = re.findall(r"^# (.+?)\s*$", re.sub(r"^```.*?^```", "", body, flags=re.M | re.S), re.M)
    for missing in [section for section in SECTIONS if section not in titles]:
        yield Defect(path, 1, "body", f"has no section `# {missing}`")


def _metadata(
    metadata: object, card: Card | None, defect: Callable[[str, str], Defect]
) -> Iterator[Defect]:
    if not isinstance(metadata, dict):
        yield defect("metadata", "is missing, or no mapping of strings")
        return
    for key, value in metadata.items():
        if not isinstance(value, str):
            yield defect(str(key), f"is {value!r}, not a string: quote it")
    expected = {"kl-schema": "1"}
    if card is not None:
        expected |= {"kl-id": card.skill_id, "kl-card-sha256": card.digest}
    for key, wanted in expected.items():
        if metadata.get(key) != wanted:
            yield defect(key, f"is {metadata.get(key)!r}; the card's is {wanted!r}")


def _card(folder: Path, card: Card, transforms: Collection[str]) -> Iterator[Defect]:
    path = folder / CARD_FILE
    text = path.read_text("utf-8")

    def defect(field: str, at: str, what: str) -> Defect:
        return Defect(
            path, _line_of(text, re.escape(msgspec.json.encode(at).decode())), field, what
        )

    for language, query in card.anchors.items():
        if language not in set(Language):
            yield defect(f"anchors.{language}", language, "is no language")
        elif problem := _query_problem(language, query):
            yield defect(f"anchors.{language}", language, problem)
    seen: set[str] = set()
    for condition in card.preconditions:
        if condition.id in seen:
            yield defect(f"preconditions.{condition.id}", condition.id, "appears twice")
        seen.add(condition.id)
        try:
            parse(condition.check or "1 == 1")
        except ConditionError as error:
            yield defect(f"preconditions.{condition.id}.check", condition.id, str(error))
    for feature in (*card.requires, *card.provides, *card.conflicts):
        if feature.name not in NAMES:
            yield defect("requires, provides, conflicts", feature.name, "is no feature id")
        if feature.locus != "kernel" and not any(
            re.search(rf"@{re.escape(feature.locus)}(?![\w.-])", query)
            for query in card.anchors.values()
        ):
            what = "is neither `kernel` nor captured by an anchor"
            yield defect("requires, provides, conflicts", feature.locus, what)
    if isinstance(card.carrier, TransformCarrier) and card.carrier.name not in transforms:
        yield defect("carrier.name", card.carrier.name, "is no transform")
    for effect in card.effects:
        if effect.low is not None and effect.high is not None and effect.low > effect.high:
            yield defect(f"effects.{effect.metric}", effect.metric, "has low above high")
    for language in card.scope.languages:
        if language != "*" and language not in card.anchors:
            yield defect("scope.languages", language, "has no anchor")


def _query_problem(language: str, query: str) -> str:
    try:
        captures = tree_sitter.Query(_grammar(language), query).capture_count
    except tree_sitter.QueryError as error:
        return f"is no tree-sitter query: {error}"
    return "" if captures else "captures nothing"


@lru_cache(maxsize=8)
def _grammar(language: str) -> tree_sitter.Language:
    if language in (Language.TRITON, Language.TILELANG):
        return tree_sitter.Language(tree_sitter_python.language())
    return tree_sitter.Language(tree_sitter_cuda.language())


def _evidence(folder: Path) -> Iterator[Defect]:
    for path in sorted((folder / EVIDENCE_FOLDER).glob("*/*.json")):
        try:
            trial = msgspec.json.decode(path.read_bytes(), type=Trial)
        except (OSError, msgspec.MsgspecError) as error:
            yield Defect(path, 1, "trial", str(error))
            continue
        if trial.card != path.parent.name:
            yield Defect(path, 1, "card", f"is {trial.card[:12]}…, not the folder's card")
        if trial.trial_id != path.stem:
            yield Defect(path, 1, "trial_id", f"is {trial.trial_id!r}, not the file's name")


def _line_of(text: str, pattern: str) -> int:
    match = re.search(pattern, text, re.M)
    return text.count("\n", 0, match.start()) + 1 if match else 1

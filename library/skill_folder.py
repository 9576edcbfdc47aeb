"""A skill on disk: SKILL.md in the Agent Skills form, references/card.json, evidence/.

Agent Skills: https://agentskills.io/specification. Front matter is `name` (the folder's own),
`description`, `license` and `metadata` of strings; the body has the four sections of the official
KLineage cards. library/skill_validation.py says what is wrong with a folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from library.card import Card, read_card, write_card
from library.errors import CardError

SKILL_FILE = "SKILL.md"
CARD_FILE = "references/card.json"
EVIDENCE_FOLDER = "evidence"
SECTIONS = ("Overview", "Precondition", "Scope", "Code Change Snippet")
NAME_LENGTH = 64
DESCRIPTION_LENGTH = 1024
FRAME = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n(.*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill folder, read."""

    folder: Path
    name: str
    description: str
    license: str
    metadata: Mapping[str, str]
    body: str
    """Markdown after the front matter."""
    card: Card


def read_skill(folder: Path) -> Skill:
    """The skill in `folder`. Raises CardError naming file and field."""
    path = folder / SKILL_FILE
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CardError(f"{path}: {error}") from error
    front, body = split(text, path)
    metadata = front.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise CardError(f"{path}: metadata: is no mapping of strings")
    return Skill(
        folder,
        str(front.get("name", "")),
        str(front.get("description", "")),
        str(front.get("license", "")),
        {str(key): str(value) for key, value in metadata.items()},
        body,
        read_card(folder / CARD_FILE),
    )


def split(text: str, path: Path) -> tuple[dict[str, object], str]:
    """Front matter and body of a SKILL.md. Raises CardError if it is not framed by `---`."""
    match = FRAME.match(text)
    if match is None:
        raise CardError(f"{path}: does not begin with front matter between two lines of ---")
    try:
        front = yaml.safe_load(match[1])
    except yaml.YAMLError as error:
        raise CardError(f"{path}: front matter: {error}") from error
    if not isinstance(front, dict):
        raise CardError(f"{path}: front matter: is no mapping")
    return front, match[2]


def folder_name(skill_id: str) -> str:
    """Folder of a skill id: lower case, one hyphen between words. `opencl.unroll_k` → `opencl-unroll-k`."""
    slug = re.sub(r"[^a-z0-9]+", "-", skill_id.lower()).strip("-")
    return slug[:NAME_LENGTH].rstrip("-")


def describe(card: Card) -> str:
    """What the skill does and when to use it, for the front matter."""
    scope = [*card.scope.cases, *card.scope.languages, *card.scope.platforms]
    where = ", ".join(dict.fromkeys(word for word in scope if word != "*"))
    intent = " ".join(card.intent.split()).replace("<", "less than").replace(">", "more than")
    use = f" Use for {where}." if where else ""
    return intent[: DESCRIPTION_LENGTH - len(use)] + use


def write_skill(folder: Path, card: Card, body: str, licence: str = "Apache-2.0") -> None:
    """Write SKILL.md and card.json. The folder's name must be a valid skill name."""
    folder.mkdir(parents=True, exist_ok=True)
    write_card(card, folder / CARD_FILE)
    (folder / SKILL_FILE).write_text(render(folder.name, card, body, licence), "utf-8")


def render(name: str, card: Card, body: str, licence: str) -> str:
    """The text of SKILL.md. Every value is a double-quoted YAML string: a colon breaks nothing."""
    metadata = {"kl-schema": "1", "kl-id": card.skill_id, "kl-card-sha256": card.digest}
    front = [
        f"name: {name}",
        f"description: {_quoted(describe(card))}",
        f"license: {_quoted(licence)}",
    ]
    front += ["metadata:", *(f"  {key}: {_quoted(value)}" for key, value in metadata.items())]
    return "---\n" + "\n".join(front) + "\n---\n\n" + body.strip("\n") + "\n"


def _quoted(text: str) -> str:
    # A JSON string is a YAML double-quoted scalar, as long as the controls are escaped.
    return re.sub(
        r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]",
        lambda match: f"\\u{ord(match[0]):04x}",
        json.dumps(text, ensure_ascii=False),
    )

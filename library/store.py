"""The skills of all places, with the union of their evidence.

Three places, later ones shadowing earlier by skill id: shipped with klineage, the user's own, the
repository's `.klineage/skills`. Evidence is keyed by card digest and unioned over all of them, so a
shipped card gains evidence in the user's place, and evidence of two machines merges without conflict.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec
import platformdirs

from library.card import Card, read_card
from library.errors import CardError, LibraryError
from library.evidence import CardStatus, Evidence, derive, superseded
from library.settings import LibrarySettings
from library.skill_folder import CARD_FILE, EVIDENCE_FOLDER, SKILL_FILE
from library.trial import Trial

PlaceName = Literal["shipped", "user", "repository"]
MAX_FILE_BYTES = 1024 * 1024
TRIAL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")

Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that holds skill folders. It need not exist."""

    name: PlaceName
    path: Path


@dataclass(frozen=True, slots=True)
class Broken:
    """A file of a place that could not be read, and was left out."""

    path: Path
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A card of the library, where it lies, and what its evidence says."""

    card: Card
    digest: str
    place: PlaceName
    folder: Path
    evidence: Evidence
    retired: bool = False
    """Another card of the library replaces it."""

    def status(self, platform: str | None) -> CardStatus:
        """Its status on a platform; for None the best it has anywhere."""
        if self.retired:
            return CardStatus.RETIRED
        return self.evidence.overall if platform is None else self.evidence.status(platform)

    def body(self) -> str:
        """The text of its SKILL.md, front matter included. Raises LibraryError if unreadable."""
        path = self.folder / SKILL_FILE
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise LibraryError(f"{path}: {error}") from error


def places(repository: Path, settings: LibrarySettings) -> tuple[Place, ...]:
    """The three places of a worktree, in order of precedence, weakest first."""
    user = settings.user_skills or platformdirs.user_data_path("klineage") / "skills"
    return (
        Place("shipped", Path(__file__).parent / "skills"),
        Place("user", Path(user).expanduser()),
        Place("repository", repository / ".klineage" / "skills"),
    )


class Store:
    """Cards and trials of several places. Read with `load`; call it again when files changed."""

    def __init__(self, places: Sequence[Place], disabled: Sequence[str] = ()) -> None:
        """`disabled` are skill ids, or patterns of them, that are left out."""
        self.places = tuple(places)
        """Weakest first. What to watch for changes."""
        self._disabled = tuple(disabled)
        self._cards = _Cache(read_card)
        self._trials = _Cache(_read_trial)
        self._derived: dict[str, tuple[tuple[Trial, ...], Evidence]] = {}
        self.entries: tuple[Entry, ...] = ()
        """Cards that are in force, by skill id and then digest."""
        self.problems: tuple[Broken, ...] = ()
        """Files that could not be read. The rest of the library works without them."""

    def load(self) -> Store:
        """Read what changed since the last call; files with the same time and size are kept."""
        broken: list[Broken] = []
        trials: dict[str, dict[str, Trial]] = {}
        cards: dict[str, tuple[Card, Place, Path]] = {}
        for place in self.places:
            here: dict[str, tuple[Card, Place, Path]] = {}
            for folder in _folders(place.path, broken):
                card = self._read_folder(folder, trials, broken)
                if card is not None:
                    here[card.digest] = (card, place, folder)
            ids = {card.skill_id for card, _, _ in here.values()}
            cards = {d: held for d, held in cards.items() if held[0].skill_id not in ids} | here
        self._cards.forget_unseen()
        self._trials.forget_unseen()
        self._derived = {
            digest: self._derive(digest, tuple(found.values())) for digest, found in trials.items()
        }
        retired = superseded([card for card, _, _ in cards.values()])
        self.entries = tuple(
            Entry(card, digest, place.name, folder, self.evidence(digest), digest in retired)
            for digest, (card, place, folder) in sorted(
                cards.items(), key=lambda item: (item[1][0].skill_id, item[0])
            )
            if not any(fnmatchcase(card.skill_id, pattern) for pattern in self._disabled)
        )
        self.problems = tuple(broken)
        return self

    def evidence(self, digest: str) -> Evidence:
        """What all trials of a card say, also of one that is shadowed or not in the library."""
        return self._derived.get(digest, ((), Evidence()))[1]

    def find(self, skill: str) -> Entry:
        """The card with that skill id, or whose digest begins with `skill` (6 digits at least).

        Raises LibraryError if there is none, or more than one.
        """
        found = [entry for entry in self.entries if entry.card.skill_id == skill]
        if not found and len(skill) >= 6:
            found = [entry for entry in self.entries if entry.digest.startswith(skill)]
        if len(found) == 1:
            return found[0]
        if found:
            digests = ", ".join(entry.digest[:12] for entry in found)
            raise LibraryError(f"{skill} is several cards; name one by its digest: {digests}")
        raise LibraryError(f"no skill {skill}; `klineage skills list` names all of them")

    def add_trial(self, entry: Entry, trial: Trial, place: PlaceName = "user") -> Path:
        """Write a trial as one new file in a place and take it into account; gives its path.

        Raises LibraryError if the trial is of another card, its id is taken or no file name, or the
        place cannot be written.
        """
        if trial.card != entry.digest or not TRIAL_ID.fullmatch(trial.trial_id):
            raise LibraryError(
                f"trial {trial.trial_id!r} of card {trial.card[:12]} is not of {entry.digest[:12]}, or its id is no file name"
            )
        root = next((each.path for each in self.places if each.name == place), None)
        if root is None:
            raise LibraryError(f"there is no {place} place to write trials to")
        folder = root / entry.folder.name / EVIDENCE_FOLDER / entry.digest
        path = folder / f"{trial.trial_id}.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write_new(path, msgspec.json.format(msgspec.json.encode(trial), indent=2) + b"\n")
        except OSError as error:
            raise LibraryError(f"cannot write {path}: {error.strerror}") from error
        self.load()
        return path

    def _derive(self, digest: str, trials: tuple[Trial, ...]) -> tuple[tuple[Trial, ...], Evidence]:
        before = self._derived.get(digest)
        return before if before and before[0] == trials else (trials, derive(trials))

    def _read_folder(
        self, folder: Path, trials: dict[str, dict[str, Trial]], broken: list[Broken]
    ) -> Card | None:
        """The folder's card, if it has one; its trials are added to `trials`."""
        for digest_folder in _folders(folder / EVIDENCE_FOLDER, broken):
            for path in _files(digest_folder, broken):
                trial = self._trials.read(path, broken)
                if trial is None:
                    continue
                if trial.card != digest_folder.name:
                    broken.append(Broken(path, "card: is not the one its folder is named after"))
                    continue
                trials.setdefault(trial.card, {}).setdefault(trial.trial_id, trial)
        skill, card = folder / SKILL_FILE, folder / CARD_FILE
        if not skill.exists() and not card.exists():
            return None  # holds only evidence for a card of another place
        if not skill.exists():
            broken.append(Broken(skill, "is missing beside references/card.json"))
        return self._cards.read(card, broken)


class _Cache(Generic[Parsed]):
    """Parsed files, kept while their time and size stay the same."""

    def __init__(self, parse: Callable[[Path], Parsed]) -> None:
        self._parse: Callable[[Path], Parsed] = parse
        self._kept: dict[Path, tuple[tuple[int, int, int], Parsed | str]] = {}
        self._seen: set[Path] = set()

    def read(self, path: Path, broken: list[Broken]) -> Parsed | None:
        """What the file holds; None, and a line in `broken`, if it cannot be read."""
        self._seen.add(path)
        try:
            status = path.stat()
        except OSError as error:
            broken.append(Broken(path, error.strerror or str(error)))
            return None
        identity = (status.st_mtime_ns, status.st_size, status.st_ino)
        kept = self._kept.get(path)
        if kept is None or kept[0] != identity:
            kept = self._kept[path] = (identity, self._read(path, status))
        if isinstance(kept[1], str):
            broken.append(Broken(path, kept[1]))
            return None
        return kept[1]

    def forget_unseen(self) -> None:
        """Drop files that the last load did not meet."""
        self._kept = {path: kept for path, kept in self._kept.items() if path in self._seen}
        self._seen = set()

    def _read(self, path: Path, status: os.stat_result) -> Parsed | str:
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return f"is no regular file of at most {MAX_FILE_BYTES // 2**20} MiB"
        try:
            return self._parse(path)
        except CardError as error:
            return str(error).removeprefix(f"{path}: ")


def _read_trial(path: Path) -> Trial:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Trial)
    except (OSError, msgspec.MsgspecError) as error:
        raise CardError(f"{path}: {error}") from error


def _folders(path: Path, broken: list[Broken]) -> list[Path]:
    return [Path(e.path) for e in _scan(path, broken) if e.is_dir() and not e.name.startswith(".")]


def _files(path: Path, broken: list[Broken]) -> list[Path]:
    names = _scan(path, broken)
    return [Path(e.path) for e in names if e.name.endswith(".json") and not e.name.startswith(".")]


def _scan(path: Path, broken: list[Broken]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        broken.append(Broken(path, error.strerror or str(error)))
        return []


def _write_new(path: Path, data: bytes) -> None:
    """The whole file under its name at once, or FileExistsError; readers never see a part."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with scratch.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)

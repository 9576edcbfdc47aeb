"""Copy trials that were made here into the shipped skills: real evidence from the device they name.

    python tools/ship_evidence.py ~/.local/share/klineage/skills

Only trials of cards as they are shipped now, made on kernels of this repository; files that are
there already stay as they are. Evidence is one file a trial, so copying is all that merging takes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from library.card import read_card
from library.skill_folder import CARD_FILE, EVIDENCE_FOLDER
from library.trial import Trial

SHIPPED = Path(__file__).resolve().parent.parent / "library" / "skills"


def main() -> int:
    """Copy and say what was copied."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", type=Path, help="a folder of skill folders with evidence")
    place = parser.parse_args().place
    for folder in sorted(SHIPPED.iterdir()):
        digest = read_card(folder / CARD_FILE).digest
        known = {_identity(path) for path in (folder / EVIDENCE_FOLDER / digest).glob("*.json")}
        for path in sorted((place / folder.name / EVIDENCE_FOLDER / digest).glob("*.json")):
            identity = _identity(path)
            if identity in known:
                continue
            known.add(identity)
            target = folder / EVIDENCE_FOLDER / digest / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            print(f"{folder.name}: {identity[0]} on {identity[1]}")
    return 0


def _identity(path: Path) -> tuple[str, str, bytes]:
    """What makes two files the same measurement: status, kernel, and every timing."""
    trial = msgspec.json.decode(path.read_bytes(), type=Trial)
    return trial.status, trial.kernel, msgspec.json.encode(trial.timings)


if __name__ == "__main__":
    sys.exit(main())

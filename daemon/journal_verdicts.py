"""VerdictLog and TraceCache: what was measured on a closure, so that it is not measured again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import msgspec

from daemon.journal_database import Database
from gate.values.artifact import BuildArtifact
from gate.values.trace import LaunchTrace
from gate.values.verdict import Tier, Verdict

log = logging.getLogger(__name__)

Value = TypeVar("Value")


class VerdictLog:
    """Verdicts by closure, candidate, workload, platform and tier; all of them stay."""

    def __init__(self, database: Database, now: Callable[[], str]) -> None:
        self._database = database
        self._now = now

    def put(self, verdict: Verdict) -> None:
        """Keep a verdict, without the text of its binaries (IR, PTX, SASS can be megabytes and
        come again with a build); their digests and resources stay."""
        kept = replace(
            verdict,
            baseline_artifact=_without_text(verdict.baseline_artifact),
            candidate_artifact=_without_text(verdict.candidate_artifact),
        )
        with self._database.write("record a verdict") as connection:
            connection.execute(
                "INSERT INTO verdicts (at, closure, candidate, workload, platform, tier, payload)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    self._now(),
                    verdict.closure,
                    verdict.candidate,
                    verdict.workload,
                    verdict.platform,
                    verdict.tier,
                    msgspec.json.encode(kept),
                ),
            )

    def newest(
        self, closure: str, candidate: str, workload: str, platform: str, tier: Tier
    ) -> tuple[str, Verdict] | None:
        """(when, verdict) of the newest for that key; `when` is UTC, ISO 8601. None if none is."""
        with self._database.read("read a verdict") as connection:
            row = connection.execute(
                "SELECT at, payload FROM verdicts WHERE closure = ? AND candidate = ?"
                " AND workload = ? AND platform = ? AND tier = ? ORDER BY id DESC LIMIT 1",
                (closure, candidate, workload, platform, tier),
            ).fetchone()
        if row is None:
            return None
        verdict = _read(row[1], Verdict)
        return None if verdict is None else (row[0], verdict)


class TraceCache:
    """Launch traces of a closure's baseline. Facts come from them; taking one costs a build."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self, closure: str, workload: str, platform: str, traces: tuple[LaunchTrace, ...]
    ) -> None:
        """Keep traces; they replace earlier ones of that key."""
        with self._database.write("record a trace") as connection:
            connection.execute(
                "INSERT OR REPLACE INTO traces (closure, workload, platform, payload)"
                " VALUES (?, ?, ?, ?)",
                (closure, workload, platform, msgspec.json.encode(traces)),
            )

    def get(self, closure: str, workload: str, platform: str) -> tuple[LaunchTrace, ...] | None:
        """None if it was never traced."""
        with self._database.read("read a trace") as connection:
            row = connection.execute(
                "SELECT payload FROM traces WHERE closure = ? AND workload = ? AND platform = ?",
                (closure, workload, platform),
            ).fetchone()
        return None if row is None else _read(row[0], tuple[LaunchTrace, ...])


def _without_text(artifact: BuildArtifact | None) -> BuildArtifact | None:
    return None if artifact is None else replace(artifact, ir={})


def _read(payload: bytes, kind: type[Value]) -> Value | None:
    try:
        return msgspec.json.decode(payload, type=kind)
    except msgspec.ValidationError as error:
        # Written by a version with other fields. Measuring again is right; guessing is not.
        log.warning("a stored %s cannot be read and is measured anew: %s", kind, error)
        return None

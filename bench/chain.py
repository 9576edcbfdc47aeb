"""Take the naive GEMM through every skill the gate confirms, and measure the whole chain.

    python bench/chain.py --language triton

Real daemon, real device: what applies is screened, the best is confirmed and applied, until nothing
more is faster; then the result is confirmed against the kernel it all began with, in one
measurement. Writes results/chain-<language>-<device>.json with every raw sample. Interrupted, it
goes on where it stopped when it is given the same --home.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.home import move_in
from bench.record import Figure, device_name, show, write
from daemon.call import call_once
from daemon.errors import NotConfirmed
from daemon.protocol import (
    Apply,
    Empty,
    Gate,
    History,
    Shutdown,
    Suggest,
    SuggestionView,
    Trust,
    Undo,
)
from daemon.samples import scratch_copy
from daemon.worktree import journal_path
from library.card import read_card

SKILLS = Path(__file__).resolve().parent.parent / "library" / "skills"
SUFFIX = {"opencl": "cl", "triton": "py"}


class Chain:
    """One worktree with the samples of a language, and its daemon."""

    def __init__(self, home: Path, language: str, most: int, skills: tuple[str, ...] = ()) -> None:
        move_in(home)
        self._skills = skills
        if skills:
            others = sorted({path.parent.parent for path in SKILLS.glob("*/references/card.json")})
            ids = [read_card(folder / "references" / "card.json").skill_id for folder in others]
            left_out = json.dumps([id for id in ids if id not in skills])
            settings = home / "config_home" / "klineage" / "klineage.toml"
            settings.parent.mkdir(exist_ok=True)
            settings.write_text(f"[library]\ndisabled = {left_out}\n")
        self._root = home / "work"
        self._pristine = home / "pristine"
        if not self._root.exists():
            copy = scratch_copy(language)
            shutil.copytree(copy, self._root)
            shutil.rmtree(copy)
            # Only the kernel that is climbed: the expert beside it is not what is timed here.
            shutil.rmtree(self._root / "row_softmax")
            for expert in self._root.glob("gemm/*_expert.*"):
                expert.unlink()
            shutil.copytree(self._root / "gemm", self._pristine)
        self._file = self._root / "gemm" / f"gemm_naive.{SUFFIX[language]}"
        self._most = most

    def climb(self) -> list[dict[str, Any]]:
        """Apply until nothing more is confirmed faster; the verdict of each step, with samples."""
        self._call("trust", Trust(True))
        steps = self._done()
        while len(steps) < self._most:
            start = time.monotonic()
            found = self._call("suggest", Suggest(str(self._file), wait=True)).suggestions
            for suggestion in found:
                print(f"    {_line(suggestion)}", flush=True)
            next_skill = self._skills[len(steps)] if self._skills else ""
            if not self._apply_best(found, next_skill):
                break
            steps = self._done()
            print(
                f"{len(steps)}. {steps[-1]['line']}  ({time.monotonic() - start:.0f} s)", flush=True
            )
        return steps

    def total(self) -> dict[str, Any]:
        """The kernel as it is now against the kernel before the first step, with samples."""
        first = min(entry.id for entry in self._applied())
        self._call("gate", Gate(kernel=str(self._file), tier="confirm", since=first))
        return self._newest_verdict()

    def undo(self) -> bool:
        """Take everything back; whether every byte is as it was when the chain began."""
        for _ in self._applied():
            self._call("undo", Undo())
        folder = self._file.parent
        return all(
            (folder / path.name).read_bytes() == path.read_bytes()
            for path in self._pristine.iterdir()
            if path.is_file()
        )

    def status(self) -> Any:
        """The daemon's status."""
        return self._call("status", Empty())

    def close(self) -> None:
        """Stop the daemon."""
        self._call("shutdown", Shutdown())

    def _apply_best(self, found: tuple[SuggestionView, ...], skill: str) -> bool:
        """Apply the first that a confirmation bears out: of `skill`, or of those screened faster."""
        for suggestion in found:
            screened = suggestion.verdict is not None and suggestion.verdict.status == "faster"
            if suggestion.skill != skill if skill else not screened:
                continue
            try:
                self._call("apply", Apply(suggestion.id, confirm=True))
            except NotConfirmed as error:
                print(f"    not confirmed: {suggestion.skill}: {error.message}", flush=True)
                continue
            return True
        return False

    def _applied(self) -> list[Any]:
        return [e for e in self._call("history", History(1000)).entries if e.undoable]

    def _done(self) -> list[dict[str, Any]]:
        """What was applied so far, oldest first, with the confirmation that allowed it."""
        steps = []
        for entry in sorted(self._applied(), key=lambda entry: entry.id):
            verdict = self._confirmed_before(entry.at)
            line = f"{entry.skill}: {entry.gain}"
            steps.append({"skill": entry.skill, "line": line, "verdict": verdict})
        return steps

    def _confirmed_before(self, at: str) -> dict[str, Any]:
        """The newest `faster` confirmation that was there when a change was made."""
        query = (
            "SELECT payload FROM verdicts WHERE tier = 'confirm' AND at <= ?"
            " AND json_extract(payload, '$.status') = 'faster' ORDER BY id DESC LIMIT 1"
        )
        return self._verdict(query, (at,))

    def _newest_verdict(self) -> dict[str, Any]:
        return self._verdict("SELECT payload FROM verdicts ORDER BY id DESC LIMIT 1", ())

    def _verdict(self, query: str, parameters: tuple[str, ...]) -> dict[str, Any]:
        with sqlite3.connect(f"file:{journal_path(self._root)}?mode=ro", uri=True) as journal:
            (payload,) = journal.execute(query, parameters).fetchone()
        verdict: dict[str, Any] = json.loads(payload)
        return verdict

    def _call(self, method: str, params: Any) -> Any:
        return call_once(self._root, method, params)


def _line(suggestion: SuggestionView) -> str:
    verdict = suggestion.verdict
    measured = "not measured"
    if verdict is not None and verdict.timings:
        timing = verdict.timings[0]
        measured = f"{verdict.status} {timing.speedup:.3g}x [{timing.speedup_low:.3g}, {timing.speedup_high:.3g}]"
    elif verdict is not None:
        measured = f"{verdict.status}: {verdict.message}"
    return f"{suggestion.stage:<10} {suggestion.skill:<34} {measured}"


def _figure(name: str, verdict: dict[str, Any], at_least: float | None = None) -> Figure:
    timing = verdict["timings"][0]
    shape = " ".join(f"{axis}={extent}" for axis, extent in timing["axes"].items())
    interval = (
        f"[{timing['speedup_low']:.3g}, {timing['speedup_high']:.3g}] at {timing['confidence']:.1%}"
    )
    latencies = f"{timing['baseline_us']:.4g} → {timing['candidate_us']:.4g} µs"
    return Figure(
        name,
        timing["speedup"],
        "x",
        at_least=at_least,
        note=f"{verdict['status']}, {interval}, {latencies} at {shape}",
    )


def main() -> int:
    """Climb, measure, write; 1 if fewer than --at-least skills were confirmed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", choices=sorted(SUFFIX), required=True)
    parser.add_argument("--home", type=Path, help="go on in this folder, or begin there")
    parser.add_argument("--most", type=int, default=6, help="steps to take at most")
    parser.add_argument("--skills", default="", help="only these, in this order")
    parser.add_argument("--at-least", type=int, default=1, help="steps that must be confirmed")
    parser.add_argument(
        "--speedup", type=float, default=1.0, help="the total must be at least this"
    )
    options = parser.parse_args()
    home = options.home or Path(tempfile.mkdtemp(prefix="kl-chain-"))
    skills = tuple(filter(None, options.skills.split(",")))
    chain = Chain(home, options.language, len(skills) or options.most, skills)
    steps = chain.climb()
    if not steps:
        print("nothing was confirmed faster")
        return 1
    total = chain.total()
    status = chain.status()
    figures = [_figure(f"{n}. {step['skill']}", step["verdict"]) for n, step in enumerate(steps, 1)]
    figures.append(_figure("whole chain, in one measurement", total, options.speedup))
    identical = chain.undo()
    figures.append(
        Figure("undone to identical bytes", float(identical), "", at_least=1.0, note="1 is yes")
    )
    show(figures)
    device = device_name(status.device)
    path = write(
        f"chain-{options.language}",
        device,
        figures,
        method=total["timings"][0]["method"],
        command=f"python bench/chain.py --language {options.language}"
        + (f" --skills {options.skills}" if skills else ""),
        extra={
            "steps": steps,
            "total": total,
            "toolchain": total["toolchain"],
            "load_average": os.getloadavg(),
        },
    )
    chain.close()
    if options.home is None:
        shutil.rmtree(home)
    print(f"wrote {path.name}")
    held = all(figure.held for figure in figures)
    return 0 if held and len(steps) >= options.at_least else 1


if __name__ == "__main__":
    sys.exit(main())

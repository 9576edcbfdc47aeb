"""klineage demo: the whole loop on a scratch copy of the samples, each step with its numbers."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from daemon.call import call_once
from daemon.errors import NotConfirmed
from daemon.protocol import (
    Applied,
    Apply,
    Detect,
    FileView,
    Gate,
    Gated,
    Ok,
    Shutdown,
    Suggest,
    Suggestions,
    SuggestionView,
    Trust,
    Undo,
    VerdictView,
    Wire,
)
from daemon.samples import scratch_copy
from daemon.verbs.failure import DONE, NEGATIVE
from daemon.verbs.output import gain, plain, print_json, timing_line, verdict_lines

Result = TypeVar("Result", bound=Wire)

MOST_CHANGES = 6
"""A chain longer than this is no demonstration any more."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which samples, and whether to play or only to prepare."""
    parser.add_argument(
        "--language",
        choices=("opencl", "triton"),
        help="default: triton with a usable GPU, else opencl",
    )
    parser.add_argument(
        "--prepare",
        action="store_true",
        help="only make the scratch copy, trust it, print its path",
    )
    parser.add_argument("--keep", action="store_true", help="leave the daemon running afterwards")


def run(options: argparse.Namespace) -> int:
    """Play; 1 unless the chain was measured faster and undone to identical bytes."""
    language = options.language or _language_of_this_machine()
    root = scratch_copy(language)
    _call(root, "trust", Trust(True), Ok)
    if options.prepare:
        if options.json:
            print_json({"root": str(root), "language": language})
        else:
            print(root)
        return DONE
    play = Play(root, quiet=options.json)
    try:
        done = play.whole_loop(language)
    finally:
        if not options.keep:
            _call(root, "shutdown", Shutdown(), Ok)
    if options.json:
        print_json(done)
    return DONE if done["faster"] and done["identical_after_undo"] else NEGATIVE


class Play:
    """One run of the loop, told step by step."""

    def __init__(self, root: Path, quiet: bool) -> None:
        self._root = root
        self._quiet = quiet
        self._steps: list[dict[str, object]] = []
        self._start = time.monotonic()

    def whole_loop(self, language: str) -> dict[str, object]:
        """Detect, apply what the gate confirms until nothing more is faster, measure, undo."""
        suffix = {"opencl": "cl", "triton": "py"}[language]
        file = self._root / "gemm" / f"gemm_naive.{suffix}"
        before = {path: path.read_bytes() for path in file.parent.iterdir() if path.is_file()}
        found = _call(self._root, "detect", Detect(str(file)), FileView)
        kernel = found.kernels[0]
        present = [feature.id for feature in kernel.features if feature.presence == "present"]
        self._tell("detect", f"{kernel.id}: {', '.join(present) or 'no optimization'} present")
        applied = list(self._climb(file))
        total: VerdictView | None = None
        if applied:
            first = min(entry.entry.id for entry in applied)
            gate = Gate(kernel=str(file), tier="confirm", since=first)
            total = _call(self._root, "gate", gate, Gated).verdict
            self._tell("total", "\n".join(verdict_lines(total)), verdict=total)
        for entry in reversed(applied):
            undone = _call(self._root, "undo", Undo(entry.entry.id), Applied)
            self._tell("undo", undone.message)
        identical = all(path.read_bytes() == data for path, data in before.items())
        self._tell("bytes", "identical to the start" if identical else "DIFFERENT from the start")
        return {
            "root": str(self._root),
            "language": language,
            "steps": self._steps,
            "applied": len(applied),
            "total": plain(total),
            "faster": total is not None and total.status == "faster",
            "identical_after_undo": identical,
            "seconds": round(time.monotonic() - self._start, 1),
        }

    def _climb(self, file: Path) -> Iterator[Applied]:
        for _ in range(MOST_CHANGES):
            asked = Suggest(str(file), wait=True)
            suggestions = _call(self._root, "suggest", asked, Suggestions).suggestions
            for suggestion in suggestions:
                self._tell(
                    "suggest", f"{suggestion.stage:<10} {gain(suggestion):<40} {suggestion.skill}"
                )
            change = self._first_confirmed(suggestions)
            if change is None:
                return
            yield change

    def _first_confirmed(self, suggestions: tuple[SuggestionView, ...]) -> Applied | None:
        """Apply the screened-fastest that a confirmation bears out; None if none does."""
        for suggestion in sorted(suggestions, key=_measured, reverse=True):
            if suggestion.verdict is None or suggestion.verdict.status != "faster":
                continue
            try:
                applied = _call(self._root, "apply", Apply(suggestion.id, confirm=True), Applied)
            except NotConfirmed as error:
                self._tell("confirm", f"{suggestion.skill}: {error.message}")
                continue
            self._tell("apply", applied.message)
            return applied
        return None

    def _tell(self, step: str, text: str, verdict: VerdictView | None = None) -> None:
        seconds = time.monotonic() - self._start
        record: dict[str, object] = {"at_s": round(seconds, 2), "step": step, "text": text}
        if verdict is not None and verdict.timings:
            record["timing"] = timing_line(verdict.timings[0])
        self._steps.append(record)
        if not self._quiet:
            first, *rest = text.splitlines()
            print(f"{seconds:6.1f} s  {step:<8} {first}")
            for line in rest:
                print(f"{'':19}{line}")


def _measured(suggestion: SuggestionView) -> float:
    verdict = suggestion.verdict
    return verdict.timings[0].speedup if verdict is not None and verdict.timings else 0.0


def _call(root: Path, method: str, params: Wire, result: type[Result]) -> Result:
    answer = call_once(root, method, params)
    assert isinstance(answer, result)
    return answer


def _language_of_this_machine() -> str:
    from daemon.verbs.doctor import inspect

    inspection = inspect()
    cuda = any(device.runtime == "cuda" for device in inspection.devices)
    ready = cuda and inspection.packages["torch"] and inspection.packages["triton"]
    return "triton" if ready else "opencl"

"""Confirm every skill that applies to the sample and benchmark kernels: evidence for the library.

    python bench/trials.py --language opencl [--skill 'opencl.stage-*']

What pays and what does not are both kept: each confirmation becomes a trial in the user's place of
a library of its own (below --home), and results/trials-<language>-<device>.json has them all.
`tools/ship_evidence.py` copies the trials into the shipped skills.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.home import move_in
from bench.record import Figure, device_name, show, write
from daemon.call import call_once
from daemon.protocol import Empty, Gate, Shutdown, Suggest, Trust, VerdictView
from daemon.samples import scratch_copy

HERE = Path(__file__).resolve().parent


def figure_of(kernel: str, skill: str, verdict: VerdictView) -> Figure | None:
    """The speedup at the first shape, with the others in the note; None if nothing was timed."""
    if not verdict.timings:
        return None
    first, *others = verdict.timings
    rest = "".join(f"; {t.speedup:.3g}x at {t.shape}" for t in others)
    interval = f"[{first.speedup_low:.3g}, {first.speedup_high:.3g}] at {first.confidence:.1%}"
    latencies = f"{first.before_us:.4g} → {first.after_us:.4g} µs at {first.shape}"
    name = f"{skill} on {kernel}"
    return Figure(name, first.speedup, "x", note=f"{verdict.status}, {interval}, {latencies}{rest}")


def main() -> int:
    """Confirm, print, write; 1 if a candidate was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", choices=("opencl", "triton"), required=True)
    parser.add_argument("--home", type=Path, help="where state and evidence go (default: made new)")
    parser.add_argument("--skill", default="*", help="only skills of this pattern")
    parser.add_argument("--kernel", default="*", help="only kernels of this pattern")
    options = parser.parse_args()
    home = options.home or Path(tempfile.mkdtemp(prefix="kl-trials-"))
    move_in(home)
    root = home / "work"
    if not root.exists():
        shutil.copytree(scratch_copy(options.language), root)
        if (HERE / "kernels" / options.language).is_dir():
            shutil.copytree(HERE / "kernels" / options.language, root / "kernels")
    figures, wrong = confirm_all(root, options.kernel, options.skill)
    status = call_once(root, "status", Empty())
    show(figures)
    write(
        f"trials-{options.language}",
        device_name(status.device),
        figures,
        method="Each skill alone on the kernel as it stands, confirmed: fresh processes and seeds.",
        command=f"python bench/trials.py --language {options.language}",
        extra={"load_average": os.getloadavg(), "wrong": wrong},
    )
    call_once(root, "shutdown", Shutdown())
    print(f"evidence: {home / 'data_home' / 'klineage' / 'skills'}")
    return 1 if wrong else 0


def confirm_all(root: Path, kernels: str, skills: str) -> tuple[list[Figure], list[str]]:
    """A figure for each confirmation, and the candidates that computed a wrong answer."""
    figures: list[Figure] = []
    wrong: list[str] = []
    call_once(root, "trust", Trust(True))
    suggestions: Any = call_once(root, "suggest", Suggest(wait=True)).suggestions
    for suggestion in suggestions:
        kernel = suggestion.kernel.partition("::")[2]
        wanted = fnmatchcase(kernel, kernels) and fnmatchcase(suggestion.skill, skills)
        if not wanted or not suggestion.files:
            continue
        verdict = call_once(root, "gate", Gate(suggestion=suggestion.id, tier="confirm")).verdict
        print(f"{verdict.status:<14} {suggestion.skill} on {kernel}: {verdict.message}", flush=True)
        if verdict.status == "wrong":
            wrong.append(f"{suggestion.skill} on {kernel}: {verdict.message}")
        figure = figure_of(kernel, suggestion.skill, verdict)
        if figure is not None:
            figures.append(figure)
    return figures, wrong


if __name__ == "__main__":
    sys.exit(main())

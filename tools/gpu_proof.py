"""Run everything that needs a CUDA GPU: the tests in tests/gpu, then the GPU benchmarks.

    python tools/gpu_proof.py [--resume]

Each step's outcome is in results/gpu-proof-<device>.json as soon as it ended; with `--resume` the
steps that passed since the last commit are not run again. If OUT is set, results/ is copied there.
Exit status 1 if a step failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"


@dataclass(frozen=True)
class Step:
    """One command of the proof."""

    name: str
    command: tuple[str, ...]
    """Arguments after the interpreter."""
    limit_s: float


@dataclass(frozen=True)
class Outcome:
    """How a step ended."""

    passed: bool
    seconds: float
    at: float
    """time.time() of its end."""
    summary: str
    """The last line it printed."""
    tail: str


# Without our configuration pytest needs none of the plugins that configuration names: the
# interpreter that has torch may have nothing else.
PYTEST = ("-m", "pytest", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider")

STEPS = (
    Step("gpu tests", (*PYTEST, "-q", "-ra", "tests/gpu"), 900.0),
    Step(
        "triton gemm chain",
        (
            *("bench/chain.py", "--language", "triton", "--at-least", "3"),
            # In this order each step gains; picking the largest gain first ends after two.
            "--skills",
            "triton.gemm-tile-128x128x64,triton.gemm-tile-128x256x64,"
            "triton.num-stages-4,triton.tensor-descriptors",
        ),
        600.0,
    ),
)


def main(arguments: list[str]) -> int:
    """Run the steps, record them, print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--resume", action="store_true", help="skip what passed since the commit")
    resume = parser.parse_args(arguments).resume
    device = device_name()
    if device is None:
        print("no CUDA GPU in this interpreter: nothing was proved", file=sys.stderr)
        return 1
    record = RESULTS / f"gpu-proof-{device}.json"
    since = commit_time() if resume else float("inf")
    outcomes = earlier(record, since)
    for step in STEPS:
        if step.name not in outcomes:
            print(f"== {step.name}: {' '.join(step.command)}", flush=True)
            outcomes[step.name] = carry_out(step)
            write(record, device, outcomes)
    copy_out()
    print(table(outcomes))
    return 0 if all(outcome.passed for outcome in outcomes.values()) else 1


def carry_out(step: Step) -> Outcome:
    """Run a step with this interpreter; its output is passed through as it comes."""
    begun = time.time()
    environment = {**os.environ, "PYTHONPATH": search_path(), "PYTHONUNBUFFERED": "1"}
    lines: list[str] = []
    with subprocess.Popen(
        [sys.executable, *step.command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        limit = Limit(process, step.limit_s)
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
        limit.cancel()
    ended = time.time()
    said = [line.strip() for line in lines if line.strip()]
    summary = f"killed after {step.limit_s:.0f} s" if limit.reached else (said or ["no output"])[-1]
    return Outcome(process.returncode == 0, ended - begun, ended, summary, "".join(lines[-200:]))


class Limit:
    """Ends a step's process group once its time is up."""

    def __init__(self, process: subprocess.Popen[str], limit_s: float) -> None:
        self.reached = False
        self._process = process
        self._timer = threading.Timer(limit_s, self._end)
        self._timer.start()

    def cancel(self) -> None:
        """The step ended by itself."""
        self._timer.cancel()

    def _end(self) -> None:
        self.reached = True
        os.killpg(self._process.pid, signal.SIGKILL)


def earlier(record: Path, since: float) -> dict[str, Outcome]:
    """Steps that passed after `since`, in seconds since the epoch, by name."""
    if not record.exists():
        return {}
    steps: Mapping[str, Mapping[str, object]] = json.loads(record.read_text())["steps"]
    known = {step.name for step in STEPS}
    outcomes = {name: Outcome(**fields) for name, fields in steps.items() if name in known}  # type: ignore[arg-type]
    return {name: each for name, each in outcomes.items() if each.passed and each.at > since}


def write(record: Path, device: str, outcomes: Mapping[str, Outcome]) -> None:
    """Record what is done so far."""
    steps = {name: asdict(outcome) for name, outcome in outcomes.items()}
    record.parent.mkdir(exist_ok=True)
    text = {"name": "gpu-proof", "device": device, "command": "python tools/gpu_proof.py"}
    record.write_text(json.dumps({**text, "commit": commit(), "steps": steps}, indent=1) + "\n")


def copy_out() -> None:
    """Copy results/ to the folder that OUT names."""
    if out := os.environ.get("OUT"):
        for file in RESULTS.glob("*.json"):
            shutil.copy(file, Path(out) / file.name)


def table(outcomes: Mapping[str, Outcome]) -> str:
    """One line a step."""
    return "\n".join(
        f"{'passed' if each.passed else 'FAILED':<7} {each.seconds:7.1f} s  {name:<20} {each.summary}"
        for name, each in outcomes.items()
    )


def device_name() -> str | None:
    """The GPU's name for a file name, `nvidia-h200`; None where torch sees none."""
    ask = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else '')"
    asked = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    name = asked.stdout.strip()
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or None


def search_path() -> str:
    """PYTHONPATH with this repository before what was there."""
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))


def commit() -> str:
    """The commit that is checked out; empty outside git."""
    return _git("rev-parse", "HEAD")


def commit_time() -> float:
    """When it was made, in seconds since the epoch; 0 outside git."""
    return float(_git("log", "-1", "--format=%ct") or 0)


def _git(*arguments: str) -> str:
    try:
        asked = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return asked.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

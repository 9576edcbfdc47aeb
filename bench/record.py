"""What a benchmark writes: figures, raw samples, device, versions, method, command.

One file a benchmark and device, `results/<name>-<device>.json`; nothing else writes there, and
every measured number in README and docs is rendered from there by `make tables`.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent / "results"
PACKAGES = (
    "textual",
    "watchdog",
    "msgspec",
    "tree-sitter",
    "numpy",
    "pyopencl",
    "pocl-binary-distribution",
    "torch",
    "triton",
)


@dataclass(frozen=True)
class Figure:
    """One number with what it is held against and the samples behind it."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    samples: Sequence[float] = field(default_factory=tuple)
    note: str = ""

    @property
    def held(self) -> bool:
        """Whether the limit, if there is one, holds."""
        low = self.at_least is None or self.value >= self.at_least
        return low and (self.at_most is None or self.value <= self.at_most)


def percentile(samples: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile: a sample that was seen, never an interpolation."""
    ordered = sorted(samples)
    rank = max(1, -(-len(ordered) * percent // 100))
    return ordered[int(rank) - 1]


def device_name(reported: str) -> str:
    """A device's own name, safe in a file's name."""
    return "-".join(reported.lower().replace("(r)", "").split())


def cpu_device() -> str:
    """A file-name-safe name of this machine's processor and core count."""
    model = "cpu"
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2]
                break
    words = "-".join(model.replace("(R)", "").replace("(TM)", "").split("@")[0].split()).lower()
    safe = "".join(letter for letter in words if letter.isalnum() or letter == "-").strip("-")
    return f"{safe}-{os.cpu_count()}-cores"


def write(
    name: str,
    device: str,
    figures: Sequence[Figure],
    method: str,
    command: str,
    extra: Mapping[str, object] | None = None,
) -> Path:
    """Write `results/<name>-<device>.json` and return its path."""
    versions = {"python": platform.python_version(), "kernel": platform.release()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    record = {
        "name": name,
        "device": device,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "method": method,
        "versions": versions,
        "figures": [
            {**asdict(figure), "samples": list(figure.samples), "held": figure.held}
            for figure in figures
        ],
        **(extra or {}),
    }
    path = RESULTS / f"{name}-{device}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def show(figures: Sequence[Figure]) -> None:
    """Print the figures, aligned, with their limits."""
    for figure in figures:
        limit = ""
        if figure.at_most is not None:
            limit = f"at most {figure.at_most:g} {figure.unit}"
        elif figure.at_least is not None:
            limit = f"at least {figure.at_least:g} {figure.unit}"
        spread = ""
        if len(figure.samples) > 1:
            spread = f"median {statistics.median(figure.samples):.4g} of {len(figure.samples)}"
        verdict = "" if not limit else ("holds" if figure.held else "DOES NOT HOLD")
        print(
            f"{figure.name:<58} {figure.value:>9.4g} {figure.unit:<4} {limit:<18} {verdict:<14} {spread}"
        )
        sys.stdout.flush()

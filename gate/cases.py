"""Which inputs a kernel is tried on: shapes, seeds and distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gate.messages import CaseMade
from gate.values.workload import Axes, shape_label

DISTRIBUTIONS = ("normal", "shifted", "wide", "structured")
"""As gate/worker/distributions.py: `normal` is what make_inputs gives."""


@dataclass(frozen=True, slots=True)
class CasePlan:
    """One case. `promised`: the workload declares it, so the original must pass it.

    What is not promised counts only where the original passes.
    """

    axes: Axes
    seed: int
    distribution: str = "normal"
    promised: bool = True

    @property
    def label(self) -> str:
        """`M=256 N=256, wide inputs`, as shown to people."""
        shape = shape_label(self.axes)
        return shape if self.distribution == "normal" else f"{shape}, {self.distribution} inputs"


@dataclass(frozen=True, slots=True)
class Case:
    """A case that was made: its inputs lie in files, and the oracle knows what is right."""

    plan: CasePlan
    slot: int
    """Under which the oracle holds it; the next case in this slot takes its place."""
    made: CaseMade

    @property
    def size_bytes(self) -> int:
        """Of inputs and outputs together."""
        files = [Path(each["file"]) for each in self.made.inputs if "file" in each]
        outputs: int = sum(each["bytes"] for each in self.made.outputs)
        return outputs + sum(file.stat().st_size for file in files)


def screen_cases(shapes: Sequence[Axes], seed: int) -> list[CasePlan]:
    """One seed on the first two shapes; the first shape last, for it is the one timed next."""
    return [CasePlan(axes, seed) for axes in reversed(shapes[:2])]


def confirm_cases(shapes: Sequence[Axes], seeds: Sequence[int]) -> list[CasePlan]:
    """Every seed × shape × distribution, then shapes beside the first that nobody declared."""
    declared = [
        CasePlan(axes, seed, distribution, promised=distribution == "normal")
        for axes in shapes
        for seed in seeds
        for distribution in DISTRIBUTIONS
    ]
    beside = [CasePlan(axes, seeds[0], promised=False) for axes in neighbours(shapes)]
    return declared + beside


def interpreted_cases(shapes: Sequence[Axes], seeds: Sequence[int]) -> list[CasePlan]:
    """For an interpreter, thousands of times slower: the two smallest shapes, one seed each."""
    smallest = sorted(shapes, key=lambda axes: math.prod(axes.values()))[:2]
    return [CasePlan(axes, seed) for axes, seed in zip(smallest, seeds, strict=False)]


def neighbours(shapes: Sequence[Axes]) -> list[Axes]:
    """The first shape with one axis one longer or one shorter, unless that is declared."""
    first = shapes[0]
    beside = [
        {**first, name: extent + step}
        for name, extent in first.items()
        for step in (1, -1)
        if extent + step >= 1
    ]
    return [axes for axes in beside if axes not in [dict(shape) for shape in shapes]]

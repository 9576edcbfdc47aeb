"""Timing a pair of arms: cells of launches, in blocks of ABBA or BAAB drawn at random.

One arm's worker is idle while the other's is timed, and so is everything else of ours.
"""

from __future__ import annotations

import math
import random
import time

from gate.arm import Arm
from gate.conclusion import Concluded
from gate.evaluation import Evaluation
from gate.interval import lower_quartile
from gate.judgement import Block
from gate.pairs import Pair, failed
from gate.values.verdict import Status
from gate.values.workload import Axes, shape_label
from gate.worker_process import WorkerFailure

MAX_LAUNCHES = 1000
TIMING_FACTOR = 20.0
"""A cell may take this many times what it was planned to."""


def order(rng: random.Random) -> str:
    """One block: A is the baseline, B the candidate."""
    return rng.choice(("ABBA", "BAAB"))


def launches_for(seconds_each: float, cell_ms: float) -> int:
    """Launches that fill a cell: at least three, whose median sheds one that was disturbed, unless
    three would take more than twice the cell."""
    cell_s = cell_ms / 1000.0
    filling = math.ceil(cell_s / max(seconds_each, 1e-7))
    least = 3 if 3 * seconds_each <= 2 * cell_s else 1
    return max(least, min(MAX_LAUNCHES, filling))


class Cells:
    """Times one pair at one shape."""

    def __init__(
        self, evaluation: Evaluation, pair: Pair, axes: Axes, cell_ms: float, rng: random.Random
    ) -> None:
        """Plans the cells of each arm from two short runs, which also warm it up."""
        self._evaluation = evaluation
        self._pair = pair
        self._label = shape_label(axes)
        self._rng = rng
        self._launches = {arm.name: self._planned(arm, cell_ms) for arm in pair.arms}

    @property
    def plan(self) -> str:
        """How many launches a cell has, in words."""
        baseline, candidate = (self._launches[arm.name] for arm in self._pair.arms)
        return f"{baseline} and {candidate} launches a cell"

    def block(self) -> Block:
        """Two cells of each arm."""
        cells: dict[str, list[float]] = {"A": [], "B": []}
        arms = dict(zip("AB", self._pair.arms, strict=True))
        for letter in order(self._rng):
            arm = arms[letter]
            cells[letter].append(lower_quartile(self._time(arm, self._launches[arm.name])))
        return Block((cells["A"][0], cells["A"][1]), (cells["B"][0], cells["B"][1]))

    def _planned(self, arm: Arm, cell_ms: float) -> int:
        launches = 1
        for _ in range(2):
            begun = time.monotonic()
            self._time(arm, launches)
            # One launch more than asked for: the first is not counted.
            each_s = (time.monotonic() - begun) / (launches + 1)
            planned = launches_for(each_s, cell_ms)
            launches = min(planned, 20)
        return planned

    def _time(self, arm: Arm, launches: int) -> list[float]:
        evaluation = self._evaluation
        floor_s = evaluation.deadlines.run_floor_s
        limit_s = max(floor_s, TIMING_FACTOR * (launches + 1) * arm.slowest_run_s)
        try:
            samples = arm.time(launches, evaluation.at_most(limit_s), evaluation.stop)
        except WorkerFailure as failure:
            raise failed(evaluation, arm, failure, "timing", self._label) from failure
        if len(samples) != launches or not all(0.0 < s < math.inf for s in samples):
            raise Concluded(
                Status.SUSPICIOUS, f"{arm.name}: {len(samples)} times for {launches} launches"
            )
        return samples

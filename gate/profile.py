"""Timing of two arms against each other: the schedule, and what is done around it.

Which statistic decides is in gate/judgement.py. Here cells are measured, in blocks of ABBA or BAAB
drawn at random, with one arm's worker idle while the other's is timed.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial

from gate.arm import Arm
from gate.cases import CasePlan
from gate.conclusion import Concluded, of_kernel
from gate.device_lock import device_lock, lock_path
from gate.evaluation import Evaluation
from gate.interval import lower_quartile
from gate.judgement import Block, ShapeResult, measured, status_of, undecided
from gate.messages import Loaded
from gate.settings import ScreenSettings
from gate.values.verdict import Outcome, Status
from gate.values.workload import Axes, shape_label
from gate.worker_process import WorkerFailure

MIN_BLOCKS = 5
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


def another_block(done: int, elapsed_s: float, settings: ScreenSettings) -> bool:
    """Whether a screen goes on. Decided by the clock and never by the results, which would favour
    the answer that stops it."""
    if done < MIN_BLOCKS:
        return True
    if done < settings.blocks:
        return elapsed_s < settings.limit_s
    return done < settings.blocks_max and elapsed_s < settings.seconds


class Profile:
    """Times the arms of an evaluation whose candidate is right."""

    def __init__(self, evaluation: Evaluation, loaded: Loaded) -> None:
        self._evaluation = evaluation
        self._loaded = loaded
        # Not for secrecy: only so that no fixed order can favour an arm.
        self._rng = random.Random()  # noqa: S311
        self._launches: dict[str, int] = {}
        self._cells: dict[str, str] = {}
        """By shape: how many launches a cell had."""

    def screen(self) -> None:
        """Two warm workers, the first shape. The result goes into the findings."""
        settings = self._evaluation.settings.screen
        axes = self._loaded.shapes[0]
        blocks: list[Block] = []
        with self._device():
            self._prepare_both(axes)
            begun = time.monotonic()
            self._plan_cells(axes, settings.cell_ms)
            while another_block(len(blocks), time.monotonic() - begun, settings):
                self._evaluation.progress(f"timing block {len(blocks) + 1}")
                blocks.append(self._block(axes))
        self._check_timed(axes)
        result = measured(axes, [[block] for block in blocks])
        others = len(self._loaded.shapes) - 1
        detail = "first shape only; `confirm` times the others" if others else "its only shape"
        self._conclude([result], "2 warm processes", detail)

    def confirm(self) -> None:
        """Fresh process pairs, fresh seeds and buffers, every shape."""
        settings = self._evaluation.settings.confirm
        minimum = self._evaluation.settings.minimum_gain
        units: list[list[list[Block]]] = [[] for _ in self._loaded.shapes]
        looks = 1
        self._pairs(units, settings.processes)
        results = self._results(units, looks)
        if undecided(results, minimum) and settings.processes_max > settings.processes:
            looks = 2
            self._pairs(units, settings.processes_max - settings.processes)
            results = self._results(units, looks)
        pairs = len(units[0])
        looked = "looked at once" if looks == 1 else "looked at twice"
        self._conclude(results, f"{pairs} fresh process pairs", f"{looked}, every shape timed")

    def _results(self, units: Sequence[list[list[Block]]], looks: int) -> list[ShapeResult]:
        return [
            measured(axes, each, looks)
            for axes, each in zip(self._loaded.shapes, units, strict=True)
        ]

    def _pairs(self, units: Sequence[list[list[Block]]], count: int) -> None:
        settings = self._evaluation.settings.confirm
        for _ in range(count):
            number = len(units[0]) + 1
            # Held while a pair starts and builds too: that would disturb another daemon's timing.
            with self._device():
                self._restart()
                for index, axes in enumerate(self._loaded.shapes):
                    self._evaluation.progress(f"timing pair {number}: {shape_label(axes)}")
                    self._prepare_both(axes)
                    self._plan_cells(axes, settings.cell_ms)
                    units[index].append([self._block(axes) for _ in range(settings.blocks)])
                    self._check_timed(axes)

    def _restart(self) -> None:
        """Fresh processes, started in random order."""
        arms = self._arms()
        self._rng.shuffle(arms)
        for arm in arms:
            arm.close()
            arm.start()
        for arm in arms:
            try:
                arm.open(self._evaluation.stop)
            except WorkerFailure as failure:
                raise self._failure(arm, failure, "start", f"the {arm.name}") from failure

    def _prepare_both(self, axes: Axes) -> None:
        """New inputs in new buffers; both arms are right on them before they are timed."""
        evaluation = self._evaluation
        plan = CasePlan(axes, evaluation.findings.new_seed())
        made = evaluation.make_case(plan)
        for arm in self._arms():
            original = arm is evaluation.baseline
            where = f"check before timing at {plan.label}"
            try:
                _, ran = evaluation.prepared(arm, axes, made, self._loaded)
            except WorkerFailure as failure:
                raise self._failure(arm, failure, "check before timing", plan.label) from failure
            if not original:
                evaluation.accept(ran, where)
            elif not all(evaluation.judge(each, original=True).passed for each in ran.runs):
                raise Concluded(Status.UNGATEABLE, f"the kernel as it stands is wrong: {where}")

    def _check_timed(self, axes: Axes) -> None:
        """What the timed launches left must be right too."""
        evaluation = self._evaluation
        where = f"check after timing at {shape_label(axes)}"
        for arm in self._arms():
            try:
                left = arm.outputs(evaluation.stop)
            except WorkerFailure as failure:
                raise self._failure(
                    arm, failure, "check after timing", shape_label(axes)
                ) from failure
            judgement = evaluation.judge(left.outputs, original=arm is evaluation.baseline)
            if not judgement.passed or left.changed_inputs:
                why = judgement.message or f"wrote to input {', '.join(left.changed_inputs)}"
                evaluation.findings.check("timed outputs", Outcome.FAILED, f"{where}: {why}")
                baseline = arm is evaluation.baseline and not evaluation.as_it_stands
                status = Status.UNGATEABLE if baseline else Status.SUSPICIOUS
                raise Concluded(status, f"{where}: {arm.name}: {why}")

    def _plan_cells(self, axes: Axes, cell_ms: float) -> None:
        """Launches a cell for each arm, from two short runs that also warm it up."""
        for arm in self._arms():
            launches = 1
            for _ in range(2):
                begun = time.monotonic()
                self._time(arm, launches, axes)
                # One launch more than asked for: the first is not counted.
                each_s = (time.monotonic() - begun) / (launches + 1)
                planned = launches_for(each_s, cell_ms)
                launches = min(planned, 20)
            self._launches[arm.name] = planned
        counts = self._launches
        self._cells[shape_label(axes)] = (
            f"{counts['baseline']} and {counts['candidate']} launches a cell"
        )

    def _block(self, axes: Axes) -> Block:
        cells: dict[str, list[float]] = {"A": [], "B": []}
        arms = {"A": self._evaluation.baseline, "B": self._evaluation.candidate}
        for letter in order(self._rng):
            arm = arms[letter]
            launches = self._launches[arm.name]
            cells[letter].append(lower_quartile(self._time(arm, launches, axes)))
        return Block((cells["A"][0], cells["A"][1]), (cells["B"][0], cells["B"][1]))

    def _time(self, arm: Arm, launches: int, axes: Axes) -> list[float]:
        evaluation = self._evaluation
        floor_s = evaluation.deadlines.run_floor_s
        limit_s = max(floor_s, TIMING_FACTOR * (launches + 1) * arm.slowest_run_s)
        try:
            samples = arm.time(launches, evaluation.at_most(limit_s), evaluation.stop)
        except WorkerFailure as failure:
            raise self._failure(arm, failure, "timing", shape_label(axes)) from failure
        if len(samples) != launches or not all(0.0 < s < math.inf for s in samples):
            raise Concluded(
                Status.SUSPICIOUS, f"{arm.name}: {len(samples)} times for {launches} launches"
            )
        return samples

    def _failure(self, arm: Arm, failure: WorkerFailure, stage: str, label: str) -> Concluded:
        conclusion = of_kernel(failure, stage, label)
        if arm is self._evaluation.candidate:
            return conclusion
        return Concluded(
            Status.UNGATEABLE, f"the kernel as it stands, {conclusion.message}", conclusion.log
        )

    def _device(self) -> AbstractContextManager[None]:
        evaluation = self._evaluation
        path = lock_path(evaluation.settings.device_lock)
        return device_lock(
            path, evaluation.stop, partial(evaluation.progress, "waiting for the device")
        )

    def _arms(self) -> list[Arm]:
        return [self._evaluation.baseline, self._evaluation.candidate]

    def _conclude(self, results: Sequence[ShapeResult], processes: str, detail: str) -> None:
        evaluation = self._evaluation
        findings = evaluation.findings
        runner = evaluation.candidate.opened
        load = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
        method = "; ".join(
            (
                runner.method if runner is not None else "",
                "a sample is the lower quartile of a cell's launches; cells in ABBA or BAAB at random",
                processes,
                load,
            )
        )
        findings.timings = tuple(
            result.timing(f"{method}; {self._cells[shape_label(result.axes)]}")
            for result in results
        )
        findings.check("timed outputs", Outcome.PASSED, "compared again after timing")
        first = results[0]
        noise = f"A/A noise {math.expm1(first.noise):.2%}"
        findings.check("profile", Outcome.PASSED, f"{processes}, {detail}; {noise}; {load}")
        findings.status, findings.message = status_of(results, evaluation.settings.minimum_gain)

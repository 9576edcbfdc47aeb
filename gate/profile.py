"""The profile stage: which pairs are timed at which shapes, and what that says.

Which statistic decides is in gate/judgement.py, how a pair is timed in gate/cells.py.
"""

from __future__ import annotations

import math
import os
import random
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager

from gate.cells import Cells
from gate.conclusion import Concluded
from gate.device_lock import device_lock, lock_path
from gate.evaluation import Evaluation
from gate.judgement import Block, ShapeResult, measured, status_of, undecided
from gate.messages import Loaded
from gate.pairs import Pair, Readiness
from gate.room import pairs_at_once
from gate.settings import ScreenSettings
from gate.values.verdict import Outcome
from gate.values.workload import Axes, shape_label

MIN_BLOCKS = 5

OUT_OF_MEMORY = re.compile(r"out.of.(host.)?memory|MEM_OBJECT_ALLOCATION_FAILURE", re.IGNORECASE)
"""How CUDA, torch, Triton, OpenCL and PoCL say it."""


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
        self._readiness = Readiness(evaluation, loaded, self._rng)
        self._cells: dict[str, str] = {}
        """By shape: how many launches a cell had."""
        self._ready_s = self._timed_s = 0.0

    def screen(self) -> None:
        """Two warm workers, the first shape. The result goes into the findings."""
        evaluation, settings = self._evaluation, self._evaluation.settings.screen
        axes = self._loaded.shapes[0]
        pair = Pair(1, evaluation.baseline, evaluation.candidate)
        blocks: list[Block] = []
        with self._device():
            self._prepare([pair], axes)
            begun = time.monotonic()
            cells = Cells(evaluation, pair, axes, settings.cell_ms, self._rng)
            while another_block(len(blocks), time.monotonic() - begun, settings):
                evaluation.progress(f"timing block {len(blocks) + 1}")
                blocks.append(cells.block())
            self._timed_s += time.monotonic() - begun
        self._cells[shape_label(axes)] = cells.plan
        self._readiness.check_timed([pair], axes)
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
        self._look(units, settings.processes)
        results = self._results(units, looks)
        if undecided(results, minimum) and settings.processes_max > settings.processes:
            looks = 2
            self._look(units, settings.processes_max - settings.processes)
            results = self._results(units, looks)
        pairs = len(units[0])
        looked = "looked at once" if looks == 1 else "looked at twice"
        self._conclude(results, f"{pairs} fresh process pairs", f"{looked}, every shape timed")

    def _results(self, units: Sequence[list[list[Block]]], looks: int) -> list[ShapeResult]:
        return [
            measured(axes, each, looks)
            for axes, each in zip(self._loaded.shapes, units, strict=True)
        ]

    # ---- pairs ------------------------------------------------------------------------------

    def _look(self, units: Sequence[list[list[Block]]], count: int) -> None:
        """Time `count` more pairs, as many alive at once as there is room for."""
        evaluation = self._evaluation
        exchange = evaluation.baseline.exchange.parent
        room = pairs_at_once(count, evaluation.largest_case_bytes, evaluation.platform, exchange)
        wanted = len(units[0]) + count
        while (begun := len(units[0])) < wanted:
            numbers = range(begun + 1, min(begun + room, wanted) + 1)
            try:
                timed = self._batch(numbers)
            except Concluded as conclusion:
                if room == 1 or not OUT_OF_MEMORY.search(conclusion.message):
                    raise
                evaluation.progress("memory is short: one pair at a time")
                room = 1
                continue
            for shape, blocks in zip(units, timed, strict=True):
                shape += blocks

    def _batch(self, numbers: range) -> list[list[list[Block]]]:
        """The blocks of these pairs, by shape and pair."""
        timed = []
        pairs = [self._readiness.fresh(number) for number in numbers]
        try:
            # Held while they are prepared too: that would disturb another daemon's timing.
            with self._device():
                for axes in self._loaded.shapes:
                    self._prepare(pairs, axes)
                    begun = time.monotonic()
                    timed.append([self._blocks(pair, axes) for pair in pairs])
                    self._timed_s += time.monotonic() - begun
                    self._readiness.check_timed(pairs, axes)
        finally:
            for pair in pairs:
                pair.close()
                for arm in pair.arms:
                    shutil.rmtree(arm.exchange, ignore_errors=True)
        return timed

    def _prepare(self, pairs: Sequence[Pair], axes: Axes) -> None:
        begun = time.monotonic()
        self._readiness.prepare(pairs, axes)
        self._ready_s += time.monotonic() - begun

    def _blocks(self, pair: Pair, axes: Axes) -> list[Block]:
        settings = self._evaluation.settings.confirm
        self._evaluation.progress(f"timing pair {pair.number}: {shape_label(axes)}")
        cells = Cells(self._evaluation, pair, axes, settings.cell_ms, self._rng)
        self._cells[shape_label(axes)] = cells.plan
        return [cells.block() for _ in range(settings.blocks)]

    def _device(self) -> AbstractContextManager[None]:
        evaluation = self._evaluation
        path = lock_path(evaluation.settings.device_lock)
        return device_lock(
            path,
            f"times {evaluation.candidate.kernel.entry}",
            evaluation.stop,
            lambda holder: evaluation.progress(f"waiting for the device: {holder}"),
        )

    # ---- conclusion -------------------------------------------------------------------------

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
        cost = f"made ready in {self._ready_s:.1f} s, timed in {self._timed_s:.1f} s"
        findings.check("profile", Outcome.PASSED, f"{processes}, {detail}; {noise}; {load}; {cost}")
        findings.status, findings.message = status_of(results, evaluation.settings.minimum_gain)

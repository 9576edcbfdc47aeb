"""From cells of time to a status: pure, so that it is tested on recorded and simulated samples.

A cell is the lower quartile of one arm's launches in a row: what disturbs a launch, another process
or an interrupt, only ever adds time. A block is four cells in the order
ABBA or BAAB, A the baseline and B the candidate, so that a steady drift cancels. Its observation
is the log of the speedup. A fixed order alone invents 5 % on a 16 µs kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gate.interval import Interval, median, median_interval
from gate.values.verdict import Status, Timing
from gate.values.workload import Axes, shape_label

WIDEST_TIE = math.log1p(0.02)
"""However noisy the machine, a wider interval than this on either side of 1 is no tie."""


@dataclass(frozen=True, slots=True)
class Block:
    """Four cells: two of each arm, microseconds, each pair in the order it was measured."""

    baseline_us: tuple[float, float]
    candidate_us: tuple[float, float]

    @property
    def logs(self) -> tuple[float, float]:
        """Mean of the baseline's logs, and of the candidate's."""
        return _mean_log(self.baseline_us), _mean_log(self.candidate_us)

    @property
    def log_speedup(self) -> float:
        """How much the baseline's exceeds the candidate's."""
        before, after = self.logs
        return before - after

    @property
    def log_repeat(self) -> float:
        """The same statistic with both arms one kernel: how far a cell is from its repeat.

        Drift, which the block's order cancels in `log_speedup`, is left in: it errs on the safe side.
        """
        (a, b), (c, d) = self.baseline_us, self.candidate_us
        return (math.log(a / b) + math.log(c / d)) / 2.0


@dataclass(frozen=True, slots=True)
class ShapeResult:
    """What was measured at one shape."""

    axes: Axes
    blocks: tuple[Block, ...]
    speedup: Interval
    """Of the log speedup."""
    noise: float
    """A/A bound: how far from 0 the repeats' own interval reaches."""
    latencies_us: tuple[float, float]
    """Baseline and candidate in the middle observation: their ratio is the middle of `speedup`."""

    def timing(self, method: str) -> Timing:
        """As the verdict carries it."""
        before = tuple(cell for block in self.blocks for cell in block.baseline_us)
        after = tuple(cell for block in self.blocks for cell in block.candidate_us)
        return Timing(
            axes=self.axes,
            baseline_us=self.latencies_us[0],
            candidate_us=self.latencies_us[1],
            speedup=math.exp(self.speedup.middle),
            speedup_low=math.exp(self.speedup.low),
            speedup_high=math.exp(self.speedup.high),
            confidence=self.speedup.coverage,
            method=method,
            baseline_samples_us=before,
            candidate_samples_us=after,
        )


def measured(axes: Axes, units: Sequence[Sequence[Block]], looks: int = 1) -> ShapeResult:
    """The result over independent units: blocks of one process pair, or whole process pairs.

    The observation of a unit is the median of its blocks'. `looks` is how many times the data were
    looked at; each earlier look may have stopped by chance, which is taken off the coverage.
    """
    blocks = tuple(block for unit in units for block in unit)
    observed = median_interval([median([b.log_speedup for b in unit]) for unit in units])
    repeats = median_interval([block.log_repeat for block in blocks])
    spent = 1.0 - looks * (1.0 - observed.coverage) if looks > 1 else observed.coverage
    interval = Interval(observed.low, observed.middle, observed.high, spent)
    noise = max(abs(repeats.low), abs(repeats.high))
    before, after = _middle([_middle([block.logs for block in unit]) for unit in units])
    return ShapeResult(axes, blocks, interval, noise, (math.exp(before), math.exp(after)))


def _middle(logs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The pair whose difference is the median one, or the mean of the two middle pairs.

    Each arm's own median would belong to other moments than the ratio does: on a machine whose
    speed changes, 7.2 and 2.4 ms would be shown beside a speedup of 6.
    """
    ordered = sorted(logs, key=lambda pair: pair[0] - pair[1])
    half = len(ordered) // 2
    middle = ordered[half : half + 1] if len(ordered) % 2 else ordered[half - 1 : half + 1]
    return sum(a for a, _ in middle) / len(middle), sum(b for _, b in middle) / len(middle)


def status_of(results: Sequence[ShapeResult], minimum_gain: float) -> tuple[Status, str]:
    """The status, with one line that says what decided. `results[0]` is the first declared shape.

    `faster` needs the whole interval at the first shape above the threshold, which is the larger of
    the minimum gain and the A/A noise, and no other shape shown slower. `tie` needs the interval
    within the threshold, and within 2 %, on both sides. What is neither is `noisy`.
    """
    first, others = results[0], results[1:]
    worse = [each for each in others if each.speedup.high < -threshold(each, minimum_gain)]
    bar = threshold(first, minimum_gain)
    words = f"{_times(first)} at {shape_label(first.axes)}"
    if first.speedup.high < -bar:
        return Status.SLOWER, words
    if first.speedup.low > bar and worse:
        lost = "; ".join(f"{_times(each)} at {shape_label(each.axes)}" for each in worse)
        return Status.SLOWER, f"{words}, but slower elsewhere: {lost}"
    if first.speedup.low > bar:
        return Status.FASTER, words + _open_shapes(others, minimum_gain)
    same = min(bar, WIDEST_TIE)
    if first.speedup.low >= -same and first.speedup.high <= same:
        return Status.TIE, f"{words}; a difference under {math.expm1(same):.1%} is no gain"
    return Status.NOISY, f"{words}; {_why_open(first, bar, minimum_gain)}"


def _why_open(result: ShapeResult, bar: float, minimum_gain: float) -> str:
    """What keeps an interval from deciding, in words."""
    if abs(result.speedup.middle) < bar and bar > math.log1p(minimum_gain):
        return (
            f"one kernel against itself varied by up to {math.exp(bar):.3f}x, so this shows nothing"
        )
    return f"the interval lies on both sides of {math.exp(bar):.3f}x"


def threshold(result: ShapeResult, minimum_gain: float) -> float:
    """Log speedup that counts as a difference at this shape."""
    return max(math.log1p(minimum_gain), result.noise)


def undecided(results: Sequence[ShapeResult], minimum_gain: float) -> bool:
    """Whether more units could change the status: the first shape's interval crosses a bar."""
    return status_of(results, minimum_gain)[0] is Status.NOISY


def latency_text(latency_us: float) -> str:
    """`84.1 µs`, `7.26 ms`."""
    return f"{latency_us:.3g} µs" if latency_us < 999.5 else f"{latency_us / 1000.0:.4g} ms"


def _open_shapes(others: Sequence[ShapeResult], minimum_gain: float) -> str:
    """Names the other shapes that are not shown to be at least as fast."""
    unsure = [e for e in others if e.speedup.low < -threshold(e, minimum_gain)]
    if not unsure:
        return ""
    return "; not shown either way: " + ", ".join(
        f"{_times(each)} at {shape_label(each.axes)}" for each in unsure
    )


def _times(result: ShapeResult) -> str:
    log = result.speedup
    return f"{math.exp(log.middle):#.4g}× [{math.exp(log.low):#.4g}, {math.exp(log.high):#.4g}]"


def _mean_log(values: tuple[float, float]) -> float:
    return (math.log(values[0]) + math.log(values[1])) / 2.0

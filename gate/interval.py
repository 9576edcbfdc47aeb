"""Order-statistic interval of a median: exact coverage, no assumption on the distribution.

Of n independent observations of a continuous quantity, the k-th smallest lies above the median
with probability P(Bin(n, 1/2) < k). So [x(k), x(n+1-k)] misses it with twice that (David and
Nagaraja, Order Statistics, 3rd ed., section 7.1). Six observations from least to greatest cover it
with 1 - 2/64 = 0.969, whatever drift, outliers or skew they have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """Where the median lies, with the probability that it does."""

    low: float
    middle: float
    """Sample median."""
    high: float
    coverage: float


def coverage(count: int, rank: int) -> float:
    """Probability that the median lies between the rank-th smallest and rank-th largest of count."""
    if not 1 <= rank <= (count + 1) // 2:
        raise ValueError(f"rank {rank} of {count} observations is no interval")
    below = sum(math.comb(count, i) for i in range(rank))
    return 1.0 - 2.0 * below / 2.0**count


def widest_rank(count: int, wanted: float) -> int:
    """The largest rank whose coverage is at least `wanted`; 1 if none has it."""
    ranks = range(1, (count + 1) // 2 + 1)
    return max((rank for rank in ranks if coverage(count, rank) >= wanted), default=1)


def median(values: Sequence[float]) -> float:
    """Middle of the sorted values, or the mean of the two middle ones. Raises ValueError if empty."""
    if not values:
        raise ValueError("median of nothing")
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2.0


def lower_quartile(values: Sequence[float]) -> float:
    """The smallest value that a quarter of them do not exceed. Raises ValueError if empty."""
    if not values:
        raise ValueError("lower quartile of nothing")
    return sorted(values)[math.ceil(len(values) / 4) - 1]


def median_interval(values: Sequence[float], wanted: float = 0.95) -> Interval:
    """Interval of the median whose coverage is at least `wanted` where so few values allow that.

    `coverage` is what it truly is: 5 values give at most 0.9375.
    """
    ordered = sorted(values)
    rank = widest_rank(len(ordered), wanted)
    return Interval(
        low=ordered[rank - 1],
        middle=median(ordered),
        high=ordered[-rank],
        coverage=coverage(len(ordered), rank),
    )

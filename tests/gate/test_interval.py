"""The interval's coverage is what it says, on whatever distribution."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.interval import coverage, lower_quartile, median, median_interval, widest_rank


def test_known_coverages() -> None:
    assert coverage(5, 1) == 0.9375
    assert coverage(6, 1) == 0.96875
    assert coverage(12, 3) == pytest.approx(0.9614, abs=1e-4)
    assert widest_rank(12, 0.95) == 3
    assert widest_rank(3, 0.95) == 1


def test_a_rank_past_the_middle_is_refused() -> None:
    with pytest.raises(ValueError, match="no interval"):
        coverage(4, 3)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_the_interval_holds_the_sample_median(values: list[float]) -> None:
    interval = median_interval(values)

    assert interval.low <= interval.middle <= interval.high
    assert interval.middle == median(values)
    assert min(values) <= interval.low
    assert interval.high <= max(values)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
def test_a_quarter_lies_at_or_below_the_lower_quartile(values: list[float]) -> None:
    quartile = lower_quartile(values)

    assert quartile in values
    assert 4 * sum(value <= quartile for value in values) >= len(values)
    assert 4 * sum(value < quartile for value in values) < len(values)


def _normal(rng: random.Random) -> float:
    return rng.gauss(0.0, 1.0)


def _skewed(rng: random.Random) -> float:
    """Median 0, one tail long."""
    return rng.expovariate(1.0) - 0.6931471805599453


def _sometimes_double(rng: random.Random) -> float:
    """A process in four is far off, to either side alike."""
    spoiled = rng.choice((-0.7, 0.7)) if rng.random() < 0.25 else 0.0
    return rng.gauss(0.0, 0.005) + spoiled


@pytest.mark.parametrize("draw", [_normal, _skewed, _sometimes_double])
@pytest.mark.parametrize("count", [6, 12])
def test_stated_coverage_holds_on_simulated_samples(
    draw: Callable[[random.Random], float], count: int
) -> None:
    rng = random.Random(20261130)
    trials = 4000
    held = 0
    for _ in range(trials):
        interval = median_interval([draw(rng) for _ in range(count)])
        held += interval.low <= 0.0 <= interval.high

    stated = median_interval([0.0] * count).coverage
    assert held / trials == pytest.approx(stated, abs=0.012)

"""Statuses from recorded and simulated cells."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.cells import launches_for, order
from gate.judgement import Block, latency_text, measured, status_of, threshold, undecided
from gate.profile import another_block
from gate.settings import ScreenSettings
from gate.values.verdict import Status

GAIN = 0.005


def block(before: float, after: float, noise: float = 0.0) -> Block:
    return Block((before, before * (1 + noise)), (after, after * (1 + noise)))


def result(*pairs: tuple[float, float], noise: float = 0.0, n: int = 64):
    return measured({"n": n}, [[block(a, b, noise)] for a, b in pairs])


STEADY = [(100.0, 50.0), (101.0, 50.5), (99.0, 50.0), (100.0, 49.0), (100.0, 50.0), (100.5, 50.0)]


def test_a_clear_gain_is_faster() -> None:
    status, words = status_of([result(*STEADY)], GAIN)

    assert status is Status.FASTER
    assert words.startswith("2.0")
    assert "n=64" in words


def test_a_clear_loss_is_slower() -> None:
    assert status_of([result(*[(b, a) for a, b in STEADY])], GAIN)[0] is Status.SLOWER


def test_a_gain_that_costs_another_shape_is_slower() -> None:
    other = result(*[(b, a) for a, b in STEADY], n=7)

    status, words = status_of([result(*STEADY), other], GAIN)

    assert status is Status.SLOWER
    assert "slower elsewhere" in words
    assert "n=7" in words


def test_another_shape_that_is_open_is_named() -> None:
    other = result((10, 11), (11, 10), (10, 12), (12, 10), (10, 10), (10, 10), n=7)

    status, words = status_of([result(*STEADY), other], GAIN)

    assert status is Status.FASTER
    assert "not shown either way" in words


def test_equal_times_are_a_tie() -> None:
    assert status_of([result(*[(100.0, 100.1)] * 6)], GAIN)[0] is Status.TIE


def test_a_gain_below_the_noise_is_not_faster() -> None:
    noisy = result(*[(104.0, 100.0)] * 6, noise=0.1)

    assert threshold(noisy, GAIN) == pytest.approx(math.log(1.1), rel=0.01)
    assert status_of([noisy], GAIN)[0] is Status.NOISY


def test_scattered_times_are_noisy_and_undecided() -> None:
    scattered = result((10, 9), (9, 10), (10, 8), (8, 10), (10, 10), (12, 10))

    assert status_of([scattered], GAIN)[0] is Status.NOISY
    assert undecided([scattered], GAIN)


def test_a_second_look_costs_coverage() -> None:
    units = [[block(100.0, 50.0)]] * 12

    assert measured({}, units).speedup.coverage == pytest.approx(0.961, abs=1e-3)
    assert measured({}, units, looks=2).speedup.coverage == pytest.approx(0.923, abs=1e-3)


@given(
    st.floats(0.9, 1.1),
    st.sampled_from(["ABBA", "BAAB"]),
    st.floats(1.0, 1e6),
)
def test_a_steady_drift_cancels(drift: float, letters: str, start_us: float) -> None:
    cells: dict[str, list[float]] = {"A": [], "B": []}
    now = start_us
    for letter in letters:
        cells[letter].append(now)
        now *= drift

    one = Block((cells["A"][0], cells["A"][1]), (cells["B"][0], cells["B"][1]))

    assert one.log_speedup == pytest.approx(0.0, abs=1e-9)


def test_identical_kernels_are_hardly_ever_called_faster() -> None:
    """The recorded fault: a single process off by up to 2x in a quarter of cases, drift, noise."""
    rng = random.Random(7)
    false_accepts = 0
    for _ in range(600):
        units = []
        for _ in range(6):
            a, b = (1.6 if rng.random() < 0.25 else 1.0 for _ in range(2))
            units.append(
                [
                    Block(
                        tuple(a * rng.gauss(100.0, 1.0) for _ in range(2)),
                        tuple(b * rng.gauss(100.0, 1.0) for _ in range(2)),
                    )
                    for _ in range(2)
                ]
            )
        false_accepts += status_of([measured({}, units)], GAIN)[0] is Status.FASTER

    assert false_accepts / 600 < 0.016


def test_timing_carries_every_cell() -> None:
    timing = result(*STEADY).timing("method")

    assert len(timing.baseline_samples_us) == len(timing.candidate_samples_us) == 12
    assert timing.speedup_low <= timing.speedup <= timing.speedup_high
    assert timing.confidence == 0.96875
    assert timing.baseline_us == pytest.approx(100.0, rel=0.01)


def test_cells_have_three_launches_unless_those_are_long() -> None:
    assert launches_for(0.015, 40.0) == 3
    assert launches_for(0.100, 40.0) == 1
    assert launches_for(0.001, 40.0) == 40
    assert launches_for(1e-9, 40.0) == 1000


def test_a_screen_stops_by_the_clock_alone() -> None:
    settings = ScreenSettings(blocks=6, blocks_max=10, seconds=1.0, limit_s=4.0)

    assert another_block(4, 100.0, settings)
    assert not another_block(5, 5.0, settings)
    assert another_block(5, 3.0, settings)
    assert another_block(6, 0.5, settings)
    assert not another_block(6, 1.5, settings)
    assert not another_block(10, 0.5, settings)


def test_both_orders_are_drawn() -> None:
    rng = random.Random(1)

    assert {order(rng) for _ in range(50)} == {"ABBA", "BAAB"}


def test_latencies_read_well() -> None:
    assert latency_text(84.06) == "84.1 µs"
    assert latency_text(7258.0) == "7.258 ms"


@given(
    st.lists(
        st.lists(
            st.tuples(*[st.floats(1.0, 1e6, allow_nan=False) for _ in range(4)]),
            min_size=1,
            max_size=3,
        ),
        min_size=5,
        max_size=9,
    )
)
def test_the_latencies_shown_divide_to_the_speedup_shown(
    units: list[list[tuple[float, float, float, float]]],
) -> None:
    blocks = [[Block((a, b), (c, d)) for a, b, c, d in unit] for unit in units]
    timing = measured({"n": 1}, blocks).timing("simulated")
    assert timing.baseline_us / timing.candidate_us == pytest.approx(timing.speedup)

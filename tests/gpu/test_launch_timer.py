"""The timer's numbers against what is known about a device."""

from __future__ import annotations

import statistics

import pytest


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def median_us(torch, call, restore=lambda: None, launches: int = 200) -> float:
    from gate.worker.triton_timing import LaunchTimer

    samples, _ = LaunchTimer(call, restore).samples_us(launches)
    assert len(samples) == launches
    return statistics.median(samples)


def test_a_large_copy_takes_what_the_memory_allows(torch) -> None:
    source = torch.empty(1 << 29, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    latency_us = median_us(torch, lambda: target.copy_(source), launches=50)
    bytes_per_s = 2 * source.numel() / (latency_us * 1e-6)
    assert 5e11 < bytes_per_s < 1e13


def test_host_work_before_a_launch_does_not_count(torch) -> None:
    import time

    small = torch.zeros(1024, device="cuda")

    def with_host_work() -> None:
        until = time.perf_counter() + 100e-6
        while time.perf_counter() < until:
            pass
        small.add_(1)

    alone_us = median_us(torch, lambda: small.add_(1))
    assert median_us(torch, with_host_work) < alone_us + 5.0


def test_two_launches_take_longer_than_one(torch) -> None:
    large = torch.zeros(1 << 26, device="cuda")
    one_us = median_us(torch, lambda: large.add_(1))
    two_us = median_us(torch, lambda: (large.add_(1), large.add_(1)))
    assert 1.7 < two_us / one_us < 2.3


def test_inputs_are_restored_outside_of_what_is_timed(torch) -> None:
    small = torch.zeros(1024, device="cuda")
    large = torch.zeros(1 << 27, device="cuda")
    alone_us = median_us(torch, lambda: small.add_(1))
    assert median_us(torch, lambda: small.add_(1), lambda: large.zero_(), 50) < alone_us + 5.0

"""Status, verified scope, measured effect and negative facts, as docs/skills.md states them."""

from __future__ import annotations

import random

from target_builders import card, trial

from library.evidence import CardStatus, derive, ratio, ratio_range, superseded

DIGEST = "a" * 64


def test_a_card_without_trials_is_a_hypothesis() -> None:
    assert derive([]).status("pocl-cpu") is CardStatus.HYPOTHESIS
    assert derive([]).overall is CardStatus.HYPOTHESIS


def test_a_confirmed_gain_on_a_held_out_kernel_admits_on_that_platform_only() -> None:
    evidence = derive([trial(DIGEST)])
    assert evidence.status("pocl-cpu") is CardStatus.ADMITTED
    assert evidence.status("sm_90a") is CardStatus.HYPOTHESIS
    assert evidence.overall is CardStatus.ADMITTED


def test_a_screened_gain_or_one_where_it_was_learned_admits_nothing() -> None:
    screened = trial(DIGEST, tier="screen")
    learned = trial(DIGEST, held_out=False, id="t2")
    assert derive([screened, learned]).status("pocl-cpu") is CardStatus.HYPOTHESIS


def test_a_wrong_answer_in_the_verified_scope_suspends_on_that_platform() -> None:
    wrong = trial(DIGEST, "wrong", None, id="t2", tier="screen")
    evidence = derive([trial(DIGEST), trial(DIGEST, id="t3", platform="sm_90a"), wrong])
    assert evidence.status("pocl-cpu") is CardStatus.SUSPENDED
    assert evidence.status("sm_90a") is CardStatus.ADMITTED


def test_a_wrong_answer_outside_the_verified_scope_blocks_that_kernel_alone() -> None:
    wrong = trial(DIGEST, "wrong", None, id="t2", case="gemm", closure="e" * 64)
    evidence = derive([trial(DIGEST, case="softmax"), wrong])
    assert evidence.status("pocl-cpu") is CardStatus.ADMITTED
    (fact,) = evidence.negative
    assert fact.blocks("e" * 64, "sm_90a")
    assert not fact.blocks("d" * 64, "pocl-cpu")


def test_a_slower_confirmation_blocks_that_kernel_on_that_platform_alone() -> None:
    (fact,) = derive([trial(DIGEST, "slower", 0.9)]).negative
    assert fact.blocks("d" * 64, "pocl-cpu")
    assert not fact.blocks("d" * 64, "sm_90a")
    assert fact.reason == "measured 0.9x"


def test_a_later_confirmation_replaces_an_earlier_one_of_the_same_kernel() -> None:
    evidence = derive(
        [
            trial(DIGEST, "tie", 1.0, at="2026-01-01T00:00:00Z"),
            trial(DIGEST, "faster", 1.5, id="t2", at="2026-01-02T00:00:00Z"),
        ]
    )
    assert evidence.negative == ()
    effect = evidence.effect("pocl-cpu")
    assert effect is not None
    assert effect.speedups == (1.5,)


def test_a_screened_slowdown_is_no_negative_fact() -> None:
    assert derive([trial(DIGEST, "slower", 0.9, tier="screen")]).negative == ()


def test_a_persons_no_blocks_that_kernel_everywhere_and_no_other() -> None:
    no = trial(DIGEST, "rejected", None, tier="human", reason="unreadable")
    evidence = derive([no])
    (fact,) = evidence.negative
    assert fact.blocks("d" * 64, "sm_90a")
    assert not fact.blocks("e" * 64, "pocl-cpu")
    assert fact.reason == "unreadable"
    assert evidence.effects == ()


def test_measured_effects_are_ranges_by_platform_over_distinct_kernels() -> None:
    evidence = derive(
        [
            trial(DIGEST, speedup=2.83),
            trial(DIGEST, speedup=3.41, id="t2", closure="e" * 64),
            trial(DIGEST, speedup=1.1, id="t3", platform="sm_90a"),
        ]
    )
    assert evidence.gains == "pocl-cpu 2.8–3.4x (2), sm_90a 1.1x (1)"


def test_what_is_derived_does_not_depend_on_the_order_of_trials() -> None:
    trials = [
        trial(
            DIGEST,
            status,
            1.0 + n / 10,
            id=f"t{n}",
            at=f"2026-01-{n + 1:02}T00:00:00Z",
            closure=closure * 64,
        )
        for n, (status, closure) in enumerate(
            zip(["faster", "tie", "wrong", "slower", "rejected", "faster"], "aabbca", strict=True)
        )
    ]
    expected = derive(trials)
    shuffled = trials[:]
    for seed in range(10):
        random.Random(seed).shuffle(shuffled)
        assert derive(shuffled) == expected


def test_a_superseded_card_is_retired() -> None:
    old = card()
    assert superseded([old, card("opencl.new", supersedes=old.digest)]) == {old.digest}


def test_ratios_read_at_the_precision_that_matters() -> None:
    assert [ratio(value) for value in (0.934, 1.0, 1.054, 2.83, 12.04, 120.4)] == [
        "0.93",
        "1",
        "1.05",
        "2.8",
        "12",
        "120",
    ]
    assert ratio_range(1.2, 2.0) == "1.2–2x"
    assert ratio_range(2.01, 2.04) == "2x"

"""How numbers, tables and conditions are printed."""

from __future__ import annotations

import json

import pytest
from answering import make_condition, make_suggestion, make_timing, make_verdict

from daemon.verbs.output import (
    condition_lines,
    gain,
    latency,
    print_json,
    table,
    timing_line,
    verdict_lines,
)


@pytest.mark.parametrize(
    ("microseconds", "shown"),
    [
        (0.512, "0.512 µs"),
        (8.31, "8.31 µs"),
        (999.0, "999 µs"),
        (999.6, "1 ms"),
        (1000.0, "1 ms"),
        (1920.0, "1.92 ms"),
        (123456.0, "123 ms"),
        (999_700.0, "1 s"),
        (2_100_000.0, "2.1 s"),
        (4_321_000_000.0, "4321 s"),
    ],
)
def test_a_latency_is_given_in_the_unit_an_engineer_would_say(
    microseconds: float, shown: str
) -> None:
    assert latency(microseconds) == shown


def test_columns_are_as_wide_as_their_widest_cell_and_the_last_is_not_padded() -> None:
    assert table([("a", "bb", "c"), ("aaa", "b", "cccc")]) == "a    bb  c\naaa  b   cccc"
    assert table([]) == ""
    assert table([("only",)]) == "only"


def test_a_timing_shows_latencies_ratio_interval_and_coverage() -> None:
    assert (
        timing_line(make_timing()) == "M=256 N=256 K=256: 1.92 ms → 640 µs  3x [2.9, 3.1] at 97.0%"
    )


def test_what_is_expected_is_never_shown_as_measured() -> None:
    unmeasured = make_suggestion(verdict=None, expected="1.8x (3 trials on pocl-cpu)")
    assert gain(unmeasured) == "expected 1.8x (3 trials on pocl-cpu)"
    assert gain(make_suggestion(verdict=None)) == "not measured"
    assert gain(make_suggestion()) == "faster 3x [2.9, 3.1] (screen)"
    wrong = make_verdict(status="wrong", timings=())
    assert gain(make_suggestion(verdict=wrong)) == "wrong (screen)"


def test_a_ratio_that_decided_nothing_is_not_shown() -> None:
    assert gain(make_suggestion(verdict=make_verdict(status="noisy"))) == "noisy (screen)"
    assert gain(make_suggestion(verdict=make_verdict(status="slower"))).startswith("slower 3x")


def test_a_condition_has_its_mark_its_word_its_facts_and_what_would_settle_it() -> None:
    lines = condition_lines(
        [
            make_condition(),
            make_condition(truth="unmet", because="K=45 % 8 == 5"),
            make_condition(truth="unknown", because="", supply="declare SHAPES"),
        ]
    )
    assert lines == [
        "[x] met     K is a multiple of 8  (K=256 % 8 == 0)",
        "[!] unmet   K is a multiple of 8  (K=45 % 8 == 5)",
        "[?] unknown K is a multiple of 8; to find out: declare SHAPES",
    ]


def test_a_failed_verdict_ends_with_the_last_lines_of_its_log() -> None:
    log = "\n".join(f"line {n}" for n in range(30))
    lines = verdict_lines(make_verdict(status="compile_error", timings=(), log=log))
    assert lines[0] == "compile_error  (screen, pocl-cpu, harness-launched)"
    assert lines[-1] == "    line 29"
    assert len([line for line in lines if line.startswith("    line ")]) == 20
    assert "log:" not in "\n".join(verdict_lines(make_verdict(log=log)))


def test_json_keeps_fields_that_have_their_default(capsys: pytest.CaptureFixture[str]) -> None:
    print_json((make_suggestion(verdict=None),))
    (printed,) = json.loads(capsys.readouterr().out)
    assert printed["verdict"] is None
    assert printed["risks"] == []
    assert printed["conditions"][0]["supply"] == ""

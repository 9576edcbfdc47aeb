"""Lines are cut and padded by terminal cells, and nothing is cut without a mark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klineage_tui.paint import (
    CLIPPED,
    Span,
    between,
    clip,
    fit,
    line,
    printable,
    text_of,
    width_of,
    wrap,
)
from klineage_tui.units import count, duration, latency_pair, percent, ratio_triple, resource

spans = st.lists(st.builds(Span, st.text(st.sampled_from("ab 日本…"), min_size=1)), max_size=5).map(
    tuple
)
words = st.text(st.sampled_from("abc 日本"), max_size=60)


@given(spans, st.integers(1, 30))
def test_a_clipped_line_fits_and_ends_in_a_mark(whole: tuple[Span, ...], width: int) -> None:
    cut = clip(whole, width)
    assert width_of(cut) <= width
    if width_of(whole) > width:
        assert text_of(cut).endswith(CLIPPED)
    else:
        assert cut == whole


@given(spans, st.integers(1, 30), st.booleans())
def test_a_fitted_line_has_exactly_its_width(
    whole: tuple[Span, ...], width: int, right: bool
) -> None:
    assert width_of(fit(whole, width, right=right)) in (width, width - 1)
    if width_of(whole) <= width:
        assert width_of(fit(whole, width, right=right)) == width


@given(words, st.integers(6, 30), st.integers(0, 3))
def test_wrapping_keeps_every_word_and_overflows_no_line(
    text: str, width: int, indent: int
) -> None:
    lines = wrap(text, "plain", width, first=line(" " * indent), indent=indent)
    assert all(width_of(one) <= width for one in lines)
    assert "".join(text_of(one) for one in lines).replace(" ", "") == text.replace(" ", "")


@given(spans, spans, st.integers(1, 60))
def test_two_ends_never_overflow_the_line(
    left: tuple[Span, ...], right: tuple[Span, ...], width: int
) -> None:
    assert width_of(between(left, right, width)) <= width


def test_control_and_reordering_characters_are_replaced() -> None:
    assert printable("a\x1b[2J\x07\x9b\u202eb") == "a␛[2J␇��b"


@pytest.mark.parametrize(
    ("before_us", "after_us", "shown"),
    [
        (123_400.0, 10_300.0, ("123", "10.3", "ms")),
        (12.44, 9.51, ("12.4", "9.51", "µs")),
        (1_200.0, 300.0, ("1,200", "300", "µs")),
        (2.5e6, 1.25e6, ("2.50", "1.25", "s")),
        (0.8, 0.4, ("800", "400", "ns")),
    ],
)
def test_latencies_share_the_unit_that_suits_the_smaller(
    before_us: float, after_us: float, shown: tuple[str, str, str]
) -> None:
    assert latency_pair(before_us, after_us) == shown


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [
        ((11.98, 11.71, 12.26), ("12.0", "11.7", "12.3")),
        ((1.223, 1.181, 1.266), ("1.22", "1.18", "1.27")),
        ((1.002, 0.991, 1.014), ("1.002", "0.991", "1.014")),
        ((1.06, 1.004, 1.11), ("1.060", "1.004", "1.110")),
    ],
)
def test_a_ratio_near_one_keeps_the_decimal_that_decides(
    ratio: tuple[float, float, float], shown: tuple[str, str, str]
) -> None:
    assert ratio_triple(*ratio) == shown


def test_what_a_device_cannot_report_is_unavailable_and_never_zero() -> None:
    assert resource("registers", None) == "unavailable"
    assert resource("registers", 0) == "0"
    assert resource("spill_bytes", 0) == "0 B"
    assert resource("shared_memory_bytes", 233_472) == "228 KiB"


def test_shares_durations_and_counts_read_as_people_write_them() -> None:
    assert (percent(0.95), percent(0.999)) == ("95 %", "99.9 %")
    assert (duration(3.24), duration(75), duration(7500)) == ("3.2 s", "1 min 15 s", "2 h 5 min")
    assert (count(1, "kernel"), count(3, "kernel")) == ("1 kernel", "3 kernels")

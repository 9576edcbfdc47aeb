"""What panes say of numbers and risks, as plain text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scene import GEMM, make_snapshot, make_suggestion, make_timing, make_verdict

from daemon.protocol import VerdictView
from klineage_tui.diff.align import word_marks
from klineage_tui.paint import text_of
from klineage_tui.pane import Drawn
from klineage_tui.panes.conditions import conditions
from klineage_tui.panes.evidence import evidence
from klineage_tui.panes.files import files
from klineage_tui.panes.profile import profile
from klineage_tui.selection import Selection, View
from klineage_tui.state import QueueState, from_snapshot


def drawn(pane: Callable[[View, int], Drawn], width: int = 100, **changes: Any) -> str:
    """A pane's lines for one suggestion on the GEMM."""
    suggestion = make_suggestion(**changes)
    queue = from_snapshot(QueueState(), make_snapshot(suggestions=(suggestion,)))
    shown = pane(View(queue, Selection(place=GEMM, suggestion=suggestion.id)), width)
    return "\n".join(text_of(line).rstrip() for line in (*shown.head, *shown.lines))


def measured(**timing: float) -> VerdictView:
    return make_verdict(timings=(make_timing(**timing),))


def test_a_profile_says_when_and_on_what_it_was_measured() -> None:
    shown = drawn(profile, verdict=make_verdict())
    assert "on pocl-cpu, AMD EPYC 9654" in shown
    assert "11.7–12.3× (95 % CI)" in shown


def test_latencies_that_do_not_divide_to_the_speedup_are_explained() -> None:
    busy = measured(
        before_us=7210.0, after_us=2350.0, speedup=5.98, speedup_low=4.22, speedup_high=6.03
    )
    assert "medians of each arm (3.07×)" in drawn(profile, verdict=busy)
    assert "medians of each arm" not in drawn(profile, verdict=make_verdict())


def test_a_method_is_said_once_and_what_differs_at_its_shape() -> None:
    first = make_timing(shape="M=512", method="events; ABBA; 3 launches a cell")
    second = make_timing(shape="M=64", method="events; ABBA; 240 launches a cell")
    shown = drawn(evidence, verdict=make_verdict(timings=(first, second)))
    assert shown.count("ABBA;") == 0
    assert "method: events; ABBA" in shown
    assert "M=64: 240 launches a cell" in shown


def test_each_risk_has_a_mark_of_its_own() -> None:
    shown = drawn(conditions, risks=("It may spill.", "Sums are reordered."))
    assert " RISK  · It may spill.\n       · Sums are reordered." in shown


def test_the_columns_of_files_are_words() -> None:
    head = drawn(files).splitlines()[0]
    assert head.split() == ["kernel", "has", "lacks", "?", "fits"]


def test_skills_that_fit_are_those_the_skills_pane_shows() -> None:
    assert drawn(files).splitlines()[2].split()[-1] == "1"
    assert drawn(files, stage="blocked").splitlines()[2].split()[-1] == "·"


def test_words_are_marked_only_in_lines_that_are_versions_of_each_other() -> None:
    assert word_marks(
        "    for (int j = 0; j < cols; ++j)", "    const int cols8 = cols - cols % 8;"
    ) == ((), ())
    left, right = word_marks(
        "    int row = get_global_id(1);", "    int row = get_global_id(1) * 8;"
    )
    assert left == ()
    assert right == ((30, 34),)

"""The reducer: snapshots, notices, order and repetition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from scene import GEMM, HISTORY, make_kernel, make_snapshot, make_status, make_suggestion

from daemon.protocol import (
    Closing,
    EntryView,
    FileChanged,
    FileView,
    HistoryChanged,
    JobProgress,
    JobView,
    Message,
    StatusChanged,
    SuggestionChanged,
    SuggestionsChanged,
    Wire,
)
from klineage_tui.selection import Selection, View, settle
from klineage_tui.state import Link, QueueState, from_snapshot, reduce

START = from_snapshot(QueueState(root="/home/ada/flash-ops"), make_snapshot(seq=10))

ids = st.sampled_from(["0a1b2c3d4e5f", "1a1b2c3d4e5f", "ffffffffffff"])
ranks = st.integers(1, 9)
suggestions = st.builds(lambda id, rank: make_suggestion(id, rank=rank), ids, ranks)
job_states = st.sampled_from(["queued", "running", "done", "cancelled", "interrupted", "failed"])
jobs = st.builds(lambda id, state: JobView(id, "0a1b2c3d4e5f", "screen", state), ids, job_states)
paths = st.sampled_from(["kernels/gemm.cl", "kernels/new.cl"])
files = st.builds(lambda path: FileView(path, (make_kernel(f"{path}::gemm"),)), paths)


def numbered(seq: int) -> st.SearchStrategy[Wire]:
    return st.one_of(
        st.builds(FileChanged, st.just(seq), files, st.booleans()),
        st.builds(SuggestionChanged, st.just(seq), suggestions),
        st.builds(
            SuggestionsChanged,
            st.just(seq),
            st.just(GEMM),
            st.lists(suggestions, unique_by=lambda one: one.id).map(tuple),
        ),
        st.builds(JobProgress, st.just(seq), jobs),
        st.builds(Message, st.just(seq), st.sampled_from(["info", "error"]), st.just("said")),
        st.builds(StatusChanged, st.just(seq), st.builds(make_status)),
    )


streams = st.integers(0, 12).flatmap(
    lambda length: st.tuples(*(numbered(seq) for seq in range(11, 11 + length)))
)


def fold(state: QueueState, notices: tuple[Wire, ...]) -> QueueState:
    for notice in notices:
        state = reduce(state, notice)
    return state


@given(streams, st.integers(0, 12))
def test_a_replay_that_repeats_what_was_seen_changes_nothing(
    notices: tuple[Wire, ...], seen: int
) -> None:
    once = fold(START, notices)
    assert fold(fold(START, notices[:seen]), notices) == once


@given(streams)
def test_what_is_shown_stays_ordered_and_of_known_kernels(notices: tuple[Wire, ...]) -> None:
    state = fold(START, notices)
    paths = [file.path for file in state.files]
    assert paths == sorted(set(paths))
    keys = [(one.path, one.kernel, one.rank) for one in state.suggestions]
    assert keys == sorted(keys)
    assert len({one.id for one in state.suggestions}) == len(state.suggestions)
    assert all(job.state in ("queued", "running") for job in state.jobs)


@given(streams)
def test_the_selection_always_rests_on_what_exists(notices: tuple[Wire, ...]) -> None:
    state, at = START, settle(Selection(), QueueState(), START)
    for notice in notices:
        after = reduce(state, notice)
        at = settle(at, state, after)
        state = after
    view = View(state, at)
    shown = view.shown()
    assert at.suggestion == "" if not shown else at.suggestion in {one.id for one in shown}
    places = {file.path for file in state.files} | {kernel.id for kernel in state.kernels()}
    assert at.place in places if places else at.place == ""


def test_a_vanished_file_takes_its_kernels_and_suggestions_along() -> None:
    gone = FileChanged(11, FileView("kernels/gemm.cl"), gone=True)
    state = reduce(START, gone)
    assert [file.path for file in state.files] == ["kernels/row_softmax.cl"]
    assert {one.path for one in state.suggestions} == {"kernels/row_softmax.cl"}
    assert state.saved == ""


def test_a_saved_file_is_remembered_as_the_newest() -> None:
    state = reduce(START, FileChanged(11, FileView("kernels/gemm.cl", (make_kernel(),))))
    assert state.saved == "kernels/gemm.cl"
    assert [one.kernel for one in state.suggestions].count(GEMM) == 8


def test_history_is_newest_first_and_an_entry_told_again_is_not_doubled() -> None:
    entry = EntryView(3, "2026-11-30T14:00:00+00:00", "undone", "aa", "opencl.x", GEMM)
    state = fold(START, (HistoryChanged(11, entry), HistoryChanged(12, entry)))
    assert [one.id for one in state.history] == [3, *(one.id for one in HISTORY)]


def test_a_closing_daemon_is_stopped_and_runs_no_job() -> None:
    running = JobProgress(11, JobView("j", "0a1b2c3d4e5f", "screen", "running"))
    state = fold(START, (running, Closing(12, "idle for 30 min")))
    assert (state.link, state.link_detail, state.jobs) == (Link.STOPPED, "idle for 30 min", ())


def test_the_first_selection_is_the_kernel_with_most_to_gain() -> None:
    assert settle(Selection(), QueueState(), START).place == GEMM


def test_a_picked_kernel_that_vanished_leaves_the_selection_on_its_file() -> None:
    at = settle(Selection(place=GEMM, place_picked=True), QueueState(), START)
    after = reduce(START, FileChanged(11, FileView("kernels/gemm.cl")))
    assert settle(at, START, after).place == "kernels/gemm.cl"


def test_the_place_follows_what_is_saved_until_the_person_picks_one() -> None:
    softmax = next(file for file in START.files if file.path == "kernels/row_softmax.cl")
    saved = reduce(START, FileChanged(11, softmax))
    at = settle(Selection(), QueueState(), START)
    assert settle(at, START, saved).place == "kernels/row_softmax.cl::row_softmax"
    picked = Selection(place=GEMM, place_picked=True)
    assert settle(picked, START, saved).place == GEMM


def test_the_suggestion_is_the_first_rank_until_the_person_picks_one() -> None:
    at = settle(Selection(), QueueState(), START)
    better = reduce(START, SuggestionChanged(11, make_suggestion("1a1b2c3d4e5f", rank=0)))
    assert settle(at, START, better).suggestion == "1a1b2c3d4e5f"
    picked = Selection(at.place, suggestion="0a1b2c3d4e5f", suggestion_picked=True)
    assert settle(picked, START, better).suggestion == "0a1b2c3d4e5f"

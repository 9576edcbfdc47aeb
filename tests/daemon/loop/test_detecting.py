"""From bytes to kernels and suggestions, and to states of the past."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_parts import GEMM, SAMPLES, add_gemm
from scripted_gate import CPU, FASTEST, launches

from daemon.loop.board import KernelState, Suggestion
from daemon.loop.detecting import Detector
from gate.values.kernel import Language
from library.settings import LibrarySettings
from library.store import Store, places

PLATFORMS = {Language.OPENCL: CPU}


@pytest.fixture
def detector(place: Path) -> Detector:
    add_gemm(place)
    return Detector(place, {}, Store(places(place, LibrarySettings())).load())


def look(detector: Detector, root: Path) -> KernelState:
    """The naive GEMM as it is on disk, ranked."""
    _, (kernel,) = detector.look(GEMM, (root / GEMM).read_bytes(), PLATFORMS)
    return detector.rank(kernel, CPU, launches(kernel.kernel))


def fastest(state: KernelState) -> Suggestion:
    return next(s for s in state.suggestions if s.offer.entry.card.skill_id == FASTEST)


def test_a_candidate_is_keyed_by_the_closure_the_kernel_really_has_after_it(
    detector: Detector, place: Path
) -> None:
    suggestion = fastest(look(detector, place))
    assert suggestion.candidate is not None
    for edit in suggestion.candidate.edits:
        (place / edit.path).write_bytes(edit.after)
    assert look(detector, place).kernel.closure == suggestion.after_closure


def test_a_candidate_keeps_its_key_though_a_save_comes_in_between(
    detector: Detector, place: Path
) -> None:
    state = look(detector, place)
    key = fastest(state).after_closure
    _, (again,) = Detector(place, {}, detector._store).look(
        GEMM, (place / GEMM).read_bytes(), PLATFORMS
    )
    (place / "gemm/workload.py").write_text("def launch_gemm_naive(axes):\n    return {}\n")
    other = Detector(place, {}, detector._store)
    assert fastest(other.rank(again, CPU, launches(again.kernel))).after_closure == key


def test_candidates_that_do_not_parse_have_no_closure(detector: Detector, place: Path) -> None:
    from gate.values.candidate import Candidate, FileEdit

    kernel = look(detector, place).kernel
    broken = FileEdit(GEMM, kernel.file(GEMM).digest, b"__kernel void gemm_naive(\n")
    assert detector.closure_after(kernel, Candidate("c", (broken,))) is None


def test_a_kernel_of_the_past_is_the_one_its_files_had(detector: Detector, place: Path) -> None:
    before = look(detector, place).kernel
    suggestion = fastest(look(detector, place))
    assert suggestion.candidate is not None
    old = {edit.path: (place / edit.path).read_bytes() for edit in suggestion.candidate.edits}
    for edit in suggestion.candidate.edits:
        (place / edit.path).write_bytes(edit.after)
    now = look(detector, place).kernel
    assert now.closure != before.closure
    assert detector.kernel_with(now, old) == before
    assert detector.kernel_with(now, {GEMM: b"// nothing yet\n"}) is None


def test_a_file_outside_the_worktree_is_not_read_through_a_link(
    detector: Detector, place: Path
) -> None:
    outside = place.parent / "outside.py"
    outside.write_bytes((SAMPLES / "gemm/opencl/workload.py").read_bytes())
    (place / "gemm/workload.py").unlink()
    (place / "gemm/workload.py").symlink_to(outside)
    assert look(detector, place).workload is None


def test_a_file_depends_on_what_was_looked_for_and_not_found(
    detector: Detector, place: Path
) -> None:
    (place / "gemm/workload.py").unlink()
    file, _ = detector.look(GEMM, (place / GEMM).read_bytes(), PLATFORMS)
    assert {
        GEMM,
        "gemm/workload.py",
        "gemm/gemm_naive_workload.py",
        "workload.py",
    } <= file.depends.keys()


def test_the_line_of_a_kernel_is_where_it_is_defined(detector: Detector, place: Path) -> None:
    source = (place / GEMM).read_text()
    line = source[: source.index("__kernel void gemm_naive")].count("\n") + 1
    assert look(detector, place).line == line

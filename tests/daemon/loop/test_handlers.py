"""What clients are answered: refusals in one line, and what the daemon says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_parts import GEMM, GEMM_KERNEL, add_gemm, running, skill_of
from scripted_gate import FASTEST, Asked, ScriptedGate

from daemon import rpc
from daemon.errors import IoFailed, NotFound, RpcError, Unavailable
from daemon.handlers import InvalidParams
from daemon.loop.refusals import refusal
from daemon.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    STALE,
    UNAVAILABLE,
    Detect,
    Diff,
    Empty,
    Gate,
    SkillsList,
    SkillsShow,
    SkillsWhy,
    Suggest,
    Trust,
    Watch,
)
from gate.errors import Cancelled, EnvironmentLacks, GateError, StaleCandidate, WorkloadError
from gate.values.verdict import Verdict


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EnvironmentLacks("no OpenCL device", "pip install pocl"), UNAVAILABLE),
        (WorkloadError("workload.py: make_inputs: boom"), INVALID_PARAMS),
        (StaleCandidate("gemm.cl changed"), STALE),
        (Cancelled("stopped"), STALE),
        (GateError("the worker could not be started"), INTERNAL_ERROR),
    ],
)
def test_a_failure_of_the_gate_is_one_clear_line_and_no_fault_of_ours(
    error: GateError, code: int
) -> None:
    told = rpc.failure_of(refusal(error))
    assert (told.code, told.message) == (code, str(error))
    assert "fault of klineage" not in told.message


async def test_gate_answers_with_the_gate_s_own_words(place: Path, state: Path) -> None:
    add_gemm(place)

    def lacks(asked: Asked) -> Verdict:
        raise EnvironmentLacks("the device is gone", "plug it in")

    async with running(place, state, ScriptedGate(answer=lacks)) as parts:
        await parts.save(GEMM)
        with pytest.raises(Unavailable, match="the device is gone; plug it in"):
            await parts.handlers.gate(Gate(kernel=GEMM, tier="screen"))
        with pytest.raises(Unavailable, match="the device is gone; plug it in"):
            await parts.handlers.gate(Gate(suggestion=parts.with_candidate()[0].id))
        with pytest.raises(NotFound, match="no suggestion 000000000000"):
            await parts.handlers.gate(Gate(suggestion="000000000000"))


async def test_gate_without_a_device_says_what_would_fix_it(place: Path, state: Path) -> None:
    add_gemm(place)
    fails = EnvironmentLacks("no OpenCL device", "pip install pocl")
    gate = ScriptedGate(platform_fails=fails)
    async with running(place, state, gate) as parts:
        await parts.save(GEMM)
        with pytest.raises(Unavailable, match="no OpenCL device; pip install pocl"):
            await parts.handlers.gate(Gate(kernel=GEMM))
        # Installed meanwhile: looking through everything again asks again.
        gate.platform_fails = None
        await parts.handlers.watch(Watch("rescan"))
        answered = await parts.handlers.gate(Gate(kernel=GEMM))
        assert answered.verdict.platform == "pocl-cpu"


async def test_a_kernel_gated_as_it_stands_has_a_candidate_without_edits(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        answered = await parts.handlers.gate(Gate(kernel=GEMM_KERNEL, tier="screen"))
        asked = next(asked for asked in parts.gate.asked if not asked.skill)
        assert asked.candidate.edits == ()
        assert answered.verdict.status == "tie"


async def test_yes_gates_what_is_there_and_no_is_remembered(place: Path, state: Path) -> None:
    add_gemm(place)
    async with running(place, state, trusted=False) as parts:
        await parts.scan()
        answer = await parts.handlers.trust(Trust(True))
        assert "is trusted" in answer.message
        await parts.until_idle()
        assert parts.suggestion(FASTEST).is_confirmed_faster
        await parts.handlers.trust(Trust(False))
        assert not parts.handlers.status_view().trusted
        await parts.edit(GEMM, "acc", "total")
        assert parts.with_candidate()[0].reason == "not gated: this worktree is not trusted yet"


async def test_a_yes_that_cannot_be_remembered_holds_and_says_so(
    place: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_gemm(place)
    async with running(place, state, trusted=False) as parts:
        await parts.scan()
        folder = parts.trust._path.parent
        parts.trust._path.unlink()
        folder.rmdir()
        folder.write_text("in the way")
        with pytest.raises(IoFailed, match="is not remembered"):
            await parts.handlers.trust(Trust(True))
        await parts.until_idle()
        assert parts.suggestion(FASTEST).is_confirmed_faster


async def test_names_that_mean_nothing_are_refused_with_the_reason(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    (place / "broken.cl").write_text("__kernel void k(\n")
    async with running(place, state) as parts:
        await parts.scan()
        with pytest.raises(InvalidParams, match="outside the worktree"):
            await parts.handlers.detect(Detect("/etc/passwd"))
        with pytest.raises(InvalidParams, match="outside the worktree"):
            await parts.handlers.detect(Detect("../x.cl"))
        with pytest.raises(NotFound, match=r"no kernel gemm_best in gemm/gemm_naive\.cl"):
            await parts.handlers.gate(Gate(kernel=f"{GEMM}::gemm_best"))
        with pytest.raises(NotFound, match=r"no kernel in broken\.cl: line 1"):
            await parts.handlers.suggest(Suggest("broken.cl"))
        with pytest.raises(NotFound, match=r"there is no file missing\.cl"):
            await parts.handlers.suggest(Suggest("missing.cl"))
        with pytest.raises(NotFound, match="no skill opencl"):
            await parts.handlers.by_method()["skills.show"](SkillsShow("opencl.nothing"))
        with pytest.raises(NotFound, match="no suggestion"):
            await parts.handlers.diff(Diff("000000000000"))


async def test_a_diff_shows_each_file_before_and_after(place: Path, state: Path) -> None:
    add_gemm(place)
    async with running(place, state, trusted=False) as parts:
        await parts.save(GEMM)
        await parts.until(lambda: bool(parts.with_candidate()))
        suggestion = parts.suggestion(FASTEST)
        assert suggestion.candidate is not None
        diffed = await parts.handlers.diff(Diff(suggestion.id))
        assert {file.path for file in diffed.files} == {
            edit.path for edit in suggestion.candidate.edits
        }
        assert diffed.files[0].before == (place / diffed.files[0].path).read_text()
        blocked = next(s for s in parts.kernel().suggestions if s.stage == "blocked")
        assert (await parts.handlers.diff(Diff(blocked.id))).files == ()


async def test_a_snapshot_is_what_the_notices_add_up_to(place: Path, state: Path) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        snapshot = await parts.handlers.snapshot(Empty())
        await parts.until(
            lambda: bool(parts.said) and max(n.seq for _, n in parts.said) >= snapshot.seq  # type: ignore[attr-defined]
        )
        shown = {}
        for _, notice in parts.said:
            if hasattr(notice, "suggestions"):
                shown = {s.id: s for s in notice.suggestions}
            elif hasattr(notice, "suggestion"):
                shown[notice.suggestion.id] = notice.suggestion
        assert shown == {s.id: s for s in snapshot.suggestions}
        assert [s.rank for s in snapshot.suggestions] == list(
            range(1, len(snapshot.suggestions) + 1)
        )
        assert snapshot.files[0].kernels[0].applicable == len(parts.with_candidate())


async def test_every_card_is_listed_shown_and_explained(place: Path, state: Path) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await parts.save(GEMM)
        listed = (await parts.handlers.by_method()["skills.list"](SkillsList("opencl"))).skills
        assert listed
        assert all("opencl" in skill.languages for skill in listed)
        shown = await parts.handlers.by_method()["skills.show"](SkillsShow(listed[0].digest[:8]))
        assert shown.skill == listed[0]
        why = (await parts.handlers.by_method()["skills.why"](SkillsWhy(FASTEST, GEMM))).why
        assert (why.answer, why.kernel) == ("applies", GEMM_KERNEL)
        other = next(s for s in parts.kernel().suggestions if s.stage == "blocked")
        why = (await parts.handlers.by_method()["skills.why"](SkillsWhy(skill_of(other), GEMM))).why
        assert why.answer == "blocked"


def test_an_unexpected_failure_is_called_a_fault_of_ours() -> None:
    told = rpc.failure_of(ZeroDivisionError("division by zero"))
    assert told.code == INTERNAL_ERROR
    assert "fault of klineage" in told.message
    assert issubclass(InvalidParams, RpcError)

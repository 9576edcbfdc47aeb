"""Apply, reject, undo, redo: real files, a real journal, scripted verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_parts import GEMM, GEMM_KERNEL, SAMPLES, Parts, add_gemm, asking, running, skill_of
from scripted_gate import FASTEST, Asked, ScriptedGate, by_script, make_verdict

from daemon.errors import NotConfirmed, NotFound, Stale
from daemon.protocol import Apply, Gate, Reject
from gate.values.verdict import Status, Tier, Verdict

ROWS4 = "opencl.coarsen-rows-4"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


async def gated(parts: Parts, path: str = GEMM) -> None:
    await parts.save(path)
    await parts.until_idle()


async def test_a_suggestion_that_is_only_screened_is_refused_with_the_reason(
    place: Path, state: Path
) -> None:
    kernel = add_gemm(place)
    before = kernel.read_bytes()
    async with running(place, state) as parts:
        await gated(parts)
        with pytest.raises(NotConfirmed, match=f"{ROWS4} is only screened; confirm it first"):
            await parts.changing.apply(Apply(parts.suggestion(ROWS4).id))
        tie = next(s for s in parts.with_candidate() if s.verdict and not s.is_faster)
        with pytest.raises(NotConfirmed, match=f"{skill_of(tie)} is tie, not faster"):
            await parts.changing.apply(Apply(tie.id, confirm=True))
        blocked = next(s for s in parts.kernel().suggestions if s.stage == "blocked")
        with pytest.raises(NotConfirmed, match=f"{skill_of(blocked)} is blocked: "):
            await parts.changing.apply(Apply(blocked.id, confirm=True))
        with pytest.raises(NotFound):
            await parts.changing.apply(Apply("000000000000"))
    assert kernel.read_bytes() == before


async def test_apply_confirms_first_when_it_is_asked_to(place: Path, state: Path) -> None:
    kernel = add_gemm(place)
    async with running(place, state) as parts:
        await gated(parts)
        candidate = parts.suggestion(ROWS4).candidate
        assert candidate is not None
        applied = await parts.changing.apply(Apply(parts.suggestion(ROWS4).id, confirm=True))
        assert parts.gate.tiers(ROWS4) == ["screen", "confirm"]
        assert applied.entry.kind == "applied"
        assert applied.entry.gain == "2.5x [2.38, 2.62] at M=256 N=256 K=256"
        after = {edit.path: edit.after for edit in candidate.edits}
        assert {path: (place / path).read_bytes() for path in after} == after
        assert kernel.read_bytes() == after[GEMM]


async def test_what_a_confirmation_does_not_bear_out_is_not_applied(
    place: Path, state: Path
) -> None:
    def slower_when_confirmed(asked: Asked) -> Verdict:
        if asked.tier is Tier.CONFIRM:
            return make_verdict(asked, Status.SLOWER, 0.9, message="10 % slower")
        return by_script(asked)

    kernel = add_gemm(place)
    before = kernel.read_bytes()
    async with running(place, state, ScriptedGate(answer=slower_when_confirmed)) as parts:
        await gated(parts)
        with pytest.raises(NotConfirmed, match="it is slower: 10 % slower"):
            await parts.changing.apply(Apply(parts.suggestion(ROWS4).id, confirm=True))
    assert kernel.read_bytes() == before


async def test_a_kernel_changed_on_disk_unnoticed_is_not_written_over(
    place: Path, state: Path
) -> None:
    kernel = add_gemm(place)
    async with running(place, state) as parts:
        await gated(parts)
        id = parts.suggestion(FASTEST).id
        edited = kernel.read_text().replace("acc", "total")
        kernel.write_text(edited)  # and no watcher told
        with pytest.raises(Stale, match="changed on disk since this was suggested"):
            await parts.changing.apply(Apply(id))
        assert kernel.read_text() == edited
        # What was found on the way is gated as any save is.
        await parts.until_idle()
        assert parts.suggestion(FASTEST).is_confirmed_faster


async def test_a_launch_changed_on_disk_unnoticed_voids_the_suggestion(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await gated(parts)
        id = parts.suggestion(FASTEST).id
        workload = place / "gemm/workload.py"
        text = workload.read_text()
        workload.write_text(
            text.replace(
                '{"global": (axes["N"], axes["M"])}',
                '{"global": (axes["N"], axes["M"]), "local": (8, 8)}',
            )
        )
        with pytest.raises(Stale):
            await parts.changing.apply(Apply(id))


async def test_a_comment_added_on_disk_unnoticed_is_kept_by_apply(place: Path, state: Path) -> None:
    kernel = add_gemm(place)
    async with running(place, state) as parts:
        await gated(parts)
        id = parts.suggestion(FASTEST).id
        kernel.write_bytes(b"// mine\n" + kernel.read_bytes())
        await parts.changing.apply(Apply(id))
        assert kernel.read_bytes().startswith(b"// mine\n")
        assert (
            kernel.read_bytes()
            != b"// mine\n" + (SAMPLES / "gemm/opencl/gemm_naive.cl").read_bytes()
        )
        assert parts.gate.tiers(FASTEST) == ["screen", "confirm"]


async def test_the_same_key_applies_once(place: Path, state: Path) -> None:
    kernel = add_gemm(place)
    async with running(place, state) as parts:
        await gated(parts)
        request = Apply(parts.suggestion(FASTEST).id, key="k1")
        first = await parts.changing.apply(request)
        after = kernel.read_bytes()
        again = await parts.changing.apply(request)
        assert again.entry.id == first.entry.id
        assert again.message.startswith("applied already")
        assert kernel.read_bytes() == after


async def test_undo_and_redo_publish_and_bring_the_suggestions_along(
    place: Path, state: Path
) -> None:
    kernel = add_gemm(place)
    before = kernel.read_bytes()
    async with running(place, state) as parts:
        await gated(parts)
        id = parts.suggestion(FASTEST).id
        applied = await parts.changing.apply(Apply(id))
        assert parts.board.suggestion(id) is None
        await parts.until_idle()
        count = len(parts.gate.asked)
        undone = await parts.changing.undo(0)
        assert kernel.read_bytes() == before
        found = parts.board.suggestion(id)
        assert found is not None
        assert found.is_confirmed_faster
        redone = await parts.changing.redo(0)
        assert parts.board.suggestion(id) is None
        await parts.until_idle()
        assert len(parts.gate.asked) == count, "what was measured once is not measured again"
        told = [notice.entry for notice in parts.heard("history.changed")]  # type: ignore[attr-defined]
        assert [(e.id, e.kind) for e in told] == [
            (applied.entry.id, "applied"),
            (undone.entry.id, "undone"),
            (redone.entry.id, "redone"),
        ]


async def test_a_no_is_kept_with_the_skill_in_history_and_over_a_restart(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await gated(parts)
        id = parts.suggestion(ROWS4).id
        await parts.changing.reject(Reject(id, "too many registers"))
        rejected = parts.suggestion(ROWS4)
        assert (rejected.stage, rejected.reason) == ("rejected", "rejected: too many registers")
        assert parts.kernel().suggestions[-1].id == id
        (entry,) = parts.changes.entries(1)
        assert (entry.kind.value, entry.note) == ("rejected", "too many registers")
        trials = parts.store.find(ROWS4).evidence.trials
        assert [(t.status, t.tier, t.reason) for t in trials] == [
            ("rejected", "human", "too many registers")
        ]
    async with running(place, state) as parts:
        await gated(parts)
        assert parts.suggestion(ROWS4).stage == "rejected"
        with pytest.raises(NotConfirmed, match="was rejected: too many registers"):
            await parts.changing.apply(Apply(id, confirm=True))


async def test_what_is_rejected_while_it_is_measured_is_stopped_and_the_rest_goes_on(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    gate = ScriptedGate(holds=lambda asked: asked.skill == FASTEST)
    async with running(place, state, gate) as parts:
        await parts.save(GEMM)
        await parts.until(lambda: bool(gate.tiers(FASTEST)))
        await parts.changing.reject(Reject(parts.suggestion(FASTEST).id, "no"))
        await parts.until_idle()
        assert [asked.skill for asked in gate.cancelled] == [FASTEST]
        assert parts.suggestion(FASTEST).stage == "rejected"
        assert parts.suggestion(ROWS4).stage == "confirmed"


async def test_one_kernel_of_a_file_with_several_is_changed_alone(place: Path, state: Path) -> None:
    add_gemm(place)
    first = (SAMPLES / "gemm/opencl/gemm_naive.cl").read_text()
    second = first.replace("gemm_naive", "gemm_other").replace("acc", "total")
    workload = place / "gemm/workload.py"
    text = workload.read_text()
    workload.write_text(
        text
        + text[text.index("def launch_gemm_naive") : text.index("def launch_gemm_expert")].replace(
            "gemm_naive", "gemm_other"
        )
    )
    async with running(place, state) as parts:
        await parts.save(GEMM, first + second)
        await parts.until_idle()
        other = f"{GEMM}::gemm_other"
        others = {s.id for s in parts.kernel(other).suggestions}
        await parts.changing.apply(Apply(parts.suggestion(FASTEST).id))
        assert (place / GEMM).read_text().endswith(second)
        assert {s.id for s in parts.kernel(other).suggestions} == others
        assert parts.suggestion(FASTEST, other).is_confirmed_faster
        await parts.changing.apply(Apply(parts.suggestion(FASTEST, other).id))
        assert second not in (place / GEMM).read_text()


async def test_a_chain_of_changes_is_timed_against_the_kernel_and_launch_before_it(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    before = {path: (place / path).read_bytes() for path in (GEMM, "gemm/workload.py")}
    async with running(place, state) as parts:
        await gated(parts)
        first = await parts.changing.apply(Apply(parts.suggestion(FASTEST).id))
        await parts.until_idle()
        chosen = next(
            s
            for s in parts.with_candidate()
            if s.candidate and "gemm/workload.py" in {e.path for e in s.candidate.edits}
        )
        parts.gate.answer = lambda asked: make_verdict(asked, Status.FASTER, 3.0)
        second = await parts.changing.apply(Apply(chosen.id, confirm=True))
        assert "gemm/workload.py" in first.entry.files
        assert "gemm/workload.py" in second.entry.files
        now = {path: (place / path).read_bytes() for path in before}
        await parts.until_idle()
        gated_ = await parts.handlers.gate(Gate(kernel=GEMM, since=first.entry.id))
        asked = parts.gate.asked[-1]
        assert {file.path: file.data for file in asked.baseline.files} == before
        assert asked.workload.data == before["gemm/workload.py"]
        assert {edit.path: edit.after for edit in asked.candidate.edits} == now
        assert gated_.verdict.tier == "confirm"
        await parts.handlers.gate(Gate(kernel=GEMM, since=second.entry.id))
        between = {file.path: file.data for file in parts.gate.asked[-1].baseline.files}
        assert between[GEMM] not in (before[GEMM], now[GEMM])


async def test_apply_while_the_same_confirmation_runs_unasked_waits_for_that_one(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    gate = ScriptedGate(holds=lambda asked: asked.tier is Tier.CONFIRM)
    async with running(place, state, gate) as parts:
        await parts.save(GEMM)
        await parts.until(lambda: "confirm" in gate.tiers())
        id = parts.suggestion(FASTEST).id
        async with asking(parts.changing.apply(Apply(id, confirm=True))) as applying:
            gate.let_go.set()
            applied = await applying
        assert applied.entry.skill == FASTEST
        assert gate.tiers(FASTEST) == ["screen", "confirm"]
    assert applied.entry.kernel == GEMM_KERNEL

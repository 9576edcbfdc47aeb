"""What the gate is asked about a kernel, and what its answers mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_parts import GEMM, GEMM_KERNEL, add_gemm, asking, running
from scripted_gate import FASTEST, SPEEDUPS, Asked, ScriptedGate, by_script

from daemon.errors import Stale, Untrusted
from daemon.protocol import Trust
from gate.errors import EnvironmentLacks, GateError, WorkloadError
from gate.values.verdict import Status, Tier, Verdict


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


async def test_a_saved_kernel_is_traced_screened_in_rank_order_and_its_best_alone_confirmed(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        traced = [kernel.entry for kernel, _ in parts.gate.traced]
        assert traced == ["gemm_naive"]
        assert parts.kernel().traced
        screened = [asked for asked in parts.gate.asked if asked.tier is Tier.SCREEN]
        offered = sorted(parts.with_candidate(), key=lambda s: s.offer.rank)
        assert [a.candidate for a in screened] == [s.candidate for s in offered]
        confirmed = [asked.skill for asked in parts.gate.asked if asked.tier is not Tier.SCREEN]
        assert confirmed == [FASTEST]
        best, second, *_ = parts.kernel().suggestions
        assert (best.stage, best.is_confirmed_faster) == ("confirmed", True)
        assert (second.stage, second.is_confirmed_faster) == ("screened", False)


async def test_nothing_of_an_untrusted_worktree_is_run_and_every_suggestion_says_so(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    async with running(place, state, trusted=False) as parts:
        await parts.save(GEMM)
        await parts.until(lambda: bool(parts.devices.platforms) and bool(parts.with_candidate()))
        assert parts.gating.want(GEMM_KERNEL) is None
        assert {s.reason for s in parts.with_candidate()} == {
            "not gated: this worktree is not trusted yet"
        }
        with pytest.raises(Untrusted, match="not trusted"):
            await parts.evaluating.suggestion(parts.with_candidate()[0].id, Tier.CONFIRM)
        assert (parts.gate.asked, parts.gate.traced) == ([], [])


async def test_a_kernel_without_a_workload_is_shown_and_says_what_it_lacks(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    (place / "gemm" / "workload.py").unlink()
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.until(lambda: bool(parts.devices.platforms))
        assert parts.gating.want(GEMM_KERNEL) is None
        reasons = {s.reason for s in parts.with_candidate()}
        assert all(reason.startswith("not gated: no workload says how") for reason in reasons)
        assert parts.gate.traced == []


async def test_a_workload_written_later_starts_the_gating_of_its_kernels(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    workload = (place / "gemm" / "workload.py").read_bytes()
    (place / "gemm" / "workload.py").unlink()
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.save("gemm/workload.py", workload)
        assert parts.kernel().workload is not None
        await parts.until_idle()
        assert parts.suggestion(FASTEST).stage == "confirmed"


async def test_a_missing_device_is_told_once_and_kernels_are_shown_without_it(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    lacks = EnvironmentLacks("no OpenCL device", "pip install pocl")
    async with running(place, state, ScriptedGate(platform_fails=lacks)) as parts:
        await parts.save(GEMM)
        await parts.edit(GEMM, "acc", "total")
        await parts.until_idle()
        await parts.edit(GEMM, "total", "sum")
        await parts.until_idle()
        (said,) = [text for text in parts.messages() if "pip install pocl" in text]
        assert said.startswith("opencl kernels are shown, not gated: ")
        assert parts.gate.asked == []
        assert len(parts.gate.probed) == 1
        assert all("pip install pocl" in s.reason for s in parts.with_candidate())


async def test_verdicts_are_found_again_after_a_restart_and_after_a_comment(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        assert parts.gate.asked == []
        assert parts.suggestion(FASTEST).is_confirmed_faster
        before = parts.suggestion(FASTEST)
        await parts.save(GEMM, b"// mine\n" + (place / GEMM).read_bytes())
        await parts.until_idle()
        after = parts.suggestion(FASTEST)
        assert parts.gate.asked == []
        assert (after.id, after.verdict, after.stage) == (before.id, before.verdict, before.stage)
        assert after.candidate is not None
        assert after.candidate.edits[0].after.startswith(b"// mine\n")


async def test_an_edit_of_the_kernel_voids_its_verdicts(place: Path, state: Path) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        count = len(parts.gate.asked)
        parts.gate.holds = lambda asked: True
        await parts.edit(GEMM, "acc", "total")
        assert all(s.verdict is None for s in parts.kernel().suggestions)
        await parts.until(lambda: len(parts.gate.asked) > count)


async def test_an_edit_of_the_inputs_voids_verdicts_though_the_closure_stays(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        closure, count = parts.kernel().kernel.closure, len(parts.gate.asked)
        await parts.edit("gemm/workload.py", '"atol": 1e-4', '"atol": 1e-3')
        assert parts.kernel().kernel.closure == closure
        await parts.until_idle()
        again = parts.gate.asked[count:]
        assert len(again) == count
        assert {asked.workload.data for asked in again} == {
            (place / "gemm/workload.py").read_bytes()
        }


async def test_a_verdict_on_the_old_workload_is_not_shown_for_the_new_one(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    gate = ScriptedGate(holds=lambda asked: True)
    async with running(place, state, gate) as parts:
        await parts.save(GEMM)
        await parts.until(lambda: bool(gate.asked))
        # Finishes in spite of being stopped, as a gate may that is just done.
        gate.holds = lambda asked: False
        await parts.edit("gemm/workload.py", '"atol": 1e-4', '"atol": 1e-3')
        await parts.until_idle()
        digest = parts.kernel().basis.workload
        assert {s.verdict.workload for s in parts.kernel().suggestions if s.verdict} == {digest}


async def test_a_workload_at_fault_is_said_once_and_tried_again_when_it_is_saved(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    gate = ScriptedGate(trace_fails=WorkloadError("gemm/workload.py: make_inputs: boom"))
    async with running(place, state, gate) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        assert len(gate.traced) == 1
        assert gate.asked == []
        assert {s.reason for s in parts.with_candidate()} == {
            "not gated: gemm/workload.py: make_inputs: boom"
        }
        assert len([text for text in parts.messages() if "boom" in text]) == 1
        gate.trace_fails = None
        await parts.edit("gemm/workload.py", '"atol": 1e-4', '"atol": 1e-3')
        await parts.until_idle()
        assert parts.suggestion(FASTEST).is_confirmed_faster


async def test_an_unexpected_failure_of_the_gate_ends_neither_the_daemon_nor_other_kernels(
    place: Path, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add_gemm(place)

    def breaks(asked: Asked) -> Verdict:
        if asked.skill == FASTEST:
            raise ZeroDivisionError("a fault of ours")
        return by_script(asked)

    async with running(place, state, ScriptedGate(answer=breaks)) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        failed = parts.suggestion(FASTEST)
        assert failed.stage == "queued"
        assert failed.reason == "not gated: a fault of ours"
        assert any("a fault of ours" in text for text in parts.messages("error"))
        best = parts.kernel().suggestions[0]
        assert best.stage == "confirmed"
    assert "ZeroDivisionError" in caplog.text


async def test_a_failure_of_the_machine_on_one_candidate_leaves_the_others_screened(
    place: Path, state: Path
) -> None:
    add_gemm(place)

    def breaks(asked: Asked) -> Verdict:
        if asked.skill == FASTEST:
            raise GateError("the worker could not be started")
        return by_script(asked)

    async with running(place, state, ScriptedGate(answer=breaks)) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        assert parts.suggestion(FASTEST).reason == "not gated: the worker could not be started"
        others = [s for s in parts.with_candidate() if s.id != parts.suggestion(FASTEST).id]
        assert {s.stage for s in others} <= {"screened", "confirmed"}


async def test_a_newer_save_stops_what_runs_and_gates_the_new_code(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    gate = ScriptedGate(holds=lambda asked: b"acc" in asked.baseline.files[0].data)
    async with running(place, state, gate) as parts:
        await parts.save(GEMM)
        await parts.until(lambda: bool(gate.asked))
        await parts.edit(GEMM, "acc", "total")
        await parts.until_idle()
        assert len(gate.cancelled) == 1
        assert parts.suggestion(FASTEST).is_confirmed_faster
        ended = [job for job in parts.heard("job.progress") if job.job.state == "cancelled"]  # type: ignore[attr-defined]
        assert ended
        assert all("newer save" in job.job.step for job in ended)  # type: ignore[attr-defined]


async def test_a_confirmation_asked_for_goes_before_screens(place: Path, state: Path) -> None:
    add_gemm(place)
    gate = ScriptedGate(holds=lambda asked: True)
    async with running(place, state, gate) as parts:
        await parts.save(GEMM)
        await parts.until(lambda: bool(gate.asked))
        last = max(parts.with_candidate(), key=lambda s: s.offer.rank)
        async with asking(parts.evaluating.suggestion(last.id, Tier.CONFIRM)) as answer:
            await parts.until(lambda: any(j.tier == "confirm" for j in parts.queue.jobs))
            gate.let_go.set()
            verdict = await answer
        assert verdict.tier is Tier.CONFIRM
        assert gate.tiers()[:2] == ["screen", "confirm"]


async def test_an_answer_is_kept_once_though_two_asked_and_one_of_them_left(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    gate = ScriptedGate(holds=lambda asked: asked.tier is Tier.CONFIRM)
    async with running(place, state, gate) as parts:
        await parts.save(GEMM)
        await parts.until(lambda: "confirm" in gate.tiers())
        id = parts.suggestion(FASTEST).id
        async with asking(parts.evaluating.suggestion(id, Tier.CONFIRM)) as leaving:
            await parts.until(lambda: True)
            leaving.cancel()
        gate.let_go.set()
        await parts.until_idle()
        assert parts.suggestion(FASTEST).is_confirmed_faster
        assert gate.tiers().count("confirm") == 1
        entry = parts.store.find(FASTEST)
        assert [trial.tier for trial in entry.evidence.trials if trial.kernel == GEMM_KERNEL] == [
            "confirm"
        ]


async def test_an_answer_nobody_waits_for_any_more_is_still_kept(place: Path, state: Path) -> None:
    add_gemm(place)
    gate = ScriptedGate()
    async with running(place, state, gate) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        gate.holds = lambda asked: True
        id = parts.suggestion("opencl.coarsen-rows-4").id
        async with asking(parts.evaluating.suggestion(id, Tier.CONFIRM)) as leaving:
            await parts.until(
                lambda: parts.suggestion("opencl.coarsen-rows-4").stage == "confirming"
            )
            leaving.cancel()
        gate.let_go.set()
        await parts.until(lambda: parts.suggestion("opencl.coarsen-rows-4").is_confirmed_faster)


async def test_a_screening_does_not_hide_a_confirmation(place: Path, state: Path) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        id = parts.suggestion(FASTEST).id
        verdict = await parts.evaluating.suggestion(id, Tier.SCREEN)
        assert verdict.tier is Tier.SCREEN
        assert parts.suggestion(FASTEST).is_confirmed_faster


async def test_waiting_for_a_kernel_moves_its_screens_before_those_of_others(
    place: Path, state: Path
) -> None:
    source = add_gemm(place).read_bytes()
    other = "gemm/other.cl"
    (place / other).write_bytes(source.replace(b"acc", b"total"))
    workload = (place / "gemm/workload.py").read_text()
    gate = ScriptedGate(holds=lambda asked: True)
    async with running(place, state, gate) as parts:
        await parts.save("gemm/workload.py", workload)
        await parts.save(GEMM)
        await parts.until(lambda: bool(gate.asked))
        await parts.save(other)
        async with asking(parts.gating.until_screened([f"{other}::gemm_naive"])) as waiting:
            await parts.until(lambda: any(j.tier == "trace" for j in parts.queue.jobs))
            gate.let_go.set()
            await waiting
        paths = [asked.baseline.path for asked in gate.asked if asked.tier is Tier.SCREEN]
        first = paths.index(other)
        screens = paths.count(other)
        assert paths[first : first + screens] == [other] * screens


async def test_no_longer_trusted_stops_everything_that_runs(place: Path, state: Path) -> None:
    add_gemm(place)
    gate = ScriptedGate(holds=lambda asked: True)
    async with running(place, state, gate) as parts:
        await parts.scan()
        await parts.until(lambda: bool(gate.asked))
        await parts.handlers.trust(Trust(False))
        await parts.until_idle()
        assert len(gate.cancelled) == 1
        assert len(gate.asked) == 1
        assert parts.queue.jobs == ()
        assert {s.reason for s in parts.with_candidate()} == {
            "not gated: this worktree is not trusted yet"
        }


async def test_asking_about_a_kernel_that_changes_meanwhile_is_stale(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    gate = ScriptedGate(holds=lambda asked: asked.tier is Tier.CONFIRM)
    async with running(place, state, gate) as parts:
        await parts.save(GEMM)
        await parts.until(lambda: "confirm" in gate.tiers())
        id = parts.suggestion(FASTEST).id
        async with asking(parts.evaluating.suggestion(id, Tier.CONFIRM)) as answer:
            await parts.until(lambda: True)
            await parts.edit(GEMM, "acc", "total")
            with pytest.raises(Stale, match="superseded by a newer save"):
                await answer


async def test_only_skills_that_are_faster_are_ranked_first(place: Path, state: Path) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        shown = [s.offer.entry.card.skill_id for s in parts.kernel().suggestions]
        expected = [skill for skill in SPEEDUPS if skill in shown]
        assert shown[: len(expected)] == expected
        statuses = [s.verdict.status for s in parts.kernel().suggestions if s.verdict]
        assert statuses == sorted(statuses, key=lambda status: status is not Status.FASTER)


async def test_a_full_disk_does_not_stop_the_gating_and_is_said(place: Path, state: Path) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        parts.journal.connection.execute("PRAGMA query_only=ON")
        await parts.save(GEMM)
        await parts.until_idle()
        measured = [s for s in parts.with_candidate() if s.verdict is not None]
        assert measured
        assert {s.stage for s in measured} <= {"screened", "confirmed"}
        said = parts.messages("warning")
        assert any(text.startswith("what launches pass is not kept") for text in said)
        assert any(text.startswith("a verdict is not kept") for text in said)

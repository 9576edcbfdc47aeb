"""What keys do: accept, reject, undo, yank, pause, trust, stop; and what a stray key cannot do."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pilots import Opener
from scene import make_snapshot, make_status, make_suggestion, make_verdict
from scripted_daemon import scripted

from daemon.errors import Stale
from daemon.protocol import Apply, Gate, Redo, Reject, Shutdown, Trust, Undo, Watch
from klineage_tui.state import Link


async def test_a_applies_a_confirmed_suggestion_and_u_takes_it_back(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        await opened.until_shown("faster, confirmed")
        await opened.press("a")
        await opened.until_shown("opencl.vectorize-columns applied to 2 files; undo takes it back")
        (apply,) = daemon.asked_for(Apply)
        assert (apply.suggestion, apply.confirm) == ("0a1b2c3d4e5f", False)
        assert apply.key
        await opened.press("u")
        await opened.until_shown("opencl.vectorize-columns undone; redo applies it again")
        assert daemon.asked_for(Undo) == [Undo(entry=0)]


async def test_a_on_a_screened_suggestion_confirms_first_and_says_so(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        daemon.held["apply"] = asyncio.Event()
        await opened.until_shown("faster, screened")
        await opened.press("j", "a")
        await opened.until_shown("Confirming opencl.unroll-reduction first")
        (apply,) = daemon.asked_for(Apply)
        assert (apply.suggestion, apply.confirm) == ("1a1b2c3d4e5f", True)
        await opened.press("a")
        await opened.until_shown("being worked on already")
        daemon.held["apply"].set()
        await opened.until_shown("applied to 2 files; undo")
        assert len(daemon.asked_for(Apply)) == 1


async def test_a_on_anything_else_says_why_not_and_asks_nothing(
    place: Path, open_window: Opener
) -> None:
    said = {
        "2a1b2c3d4e5f": "still screening",
        "3a1b2c3d4e5f": "waits for the gate",
        "4a1b2c3d4e5f": "is wrong, not faster",
        "5a1b2c3d4e5f": "is tie, not faster",
        "6a1b2c3d4e5f": "2 preconditions not met",
        "7a1b2c3d4e5f": "has no patch",
    }
    async with scripted(place) as daemon, open_window() as opened:
        await opened.until_shown("opencl.block-rows")
        await opened.press("j")
        for suggestion, why in said.items():
            await opened.press("j")
            await opened.until(lambda s=suggestion: opened.window.view.at.suggestion == s)
            await opened.press("a")
            await opened.until_shown(why)
        assert daemon.asked_for(Apply) == []


async def test_a_refusal_is_one_line(place: Path, open_window: Opener) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        daemon.refusals["apply"] = Stale("kernels/gemm.cl changed since; save it again")
        await opened.until_shown("faster, confirmed")
        await opened.press("a")
        await opened.until_shown("error: apply: kernels/gemm.cl changed since; save it again")


async def test_rejecting_asks_for_a_reason_and_keeps_it(place: Path, open_window: Opener) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        await opened.until_shown("opencl.vectorize-columns")
        await opened.press("x")
        await opened.until_shown("REJECT")
        await opened.press("enter")
        assert daemon.asked_for(Reject) == []
        await opened.press(*"aux", "enter")
        await opened.until_shown("Rejected opencl.vectorize-columns: aux")
        assert daemon.asked_for(Reject) == [Reject("0a1b2c3d4e5f", "aux")]


async def test_keys_typed_into_a_prompt_start_nothing_in_the_queue(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        await opened.until_shown("faster, confirmed")
        await opened.press("x")
        await opened.until_shown("REJECT")
        asked = len(daemon.asked)
        await opened.press(*"auUrpqQTR2", "ctrl+r", "tab", "escape")
        await opened.until(lambda: "REJECT" not in opened.screen)
        assert len(daemon.asked) == asked
        assert opened.window.is_running
        assert opened.window.current_mode == "queue"


async def test_a_burst_of_keys_as_a_paste_makes_changes_nothing(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place) as daemon, open_window(clock=lambda: 0.0) as opened:
        await opened.until_shown("faster, confirmed")
        await opened.type_at_once("aurpxqQY")
        await opened.until_shown("came in a burst")
        await opened.press("j")
        await opened.until(lambda: opened.window.view.at.suggestion == "1a1b2c3d4e5f")
        kinds = (Apply, Undo, Gate, Watch, Reject, Shutdown)
        assert [one for one in daemon.asked if isinstance(one, kinds)] == []


async def test_r_measures_again_at_tier_confirm(place: Path, open_window: Opener) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        await opened.until_shown("faster, confirmed")
        await opened.press("r")
        await opened.until_shown("opencl.vectorize-columns: faster.")
        assert daemon.asked_for(Gate) == [Gate(suggestion="0a1b2c3d4e5f", tier="confirm")]


async def test_p_pauses_watching_and_resumes_it(place: Path, open_window: Opener) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        await opened.until_shown("watch inotify")
        await opened.press("p")
        await opened.until_shown("watch paused")
        await opened.press("p")
        await opened.until_shown("watch inotify", "Watching files again")
        assert [one.action for one in daemon.asked_for(Watch)] == ["pause", "resume"]


async def test_y_sends_the_patch_to_the_clipboard_and_claims_no_more(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place), open_window() as opened:
        await opened.until_shown("faster, confirmed")
        await opened.press("y")
        await opened.until_shown("sent to the terminal's clipboard", "save patch writes a file")
        assert "+    float8 acc = (float8)(0.0f);\n" in opened.window.clipboard


async def test_shift_y_writes_the_patch_to_a_new_file_and_replaces_none(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place), open_window() as opened:
        await opened.until_shown("faster, confirmed")
        for expected in ("Wrote", "exists; save the patch under another name"):
            await opened.press("Y")
            await opened.until_shown("SAVE PATCH", "opencl.vectorize-columns.patch")
            await opened.press("enter")
            await opened.until_shown(expected)
        patch = (place / "opencl.vectorize-columns.patch").read_text()
        assert patch.startswith("--- a/kernels/gemm.cl\n+++ b/kernels/gemm.cl\n@@ ")
        assert "b/kernels/gemm_workload.py" in patch


async def test_history_undoes_the_selected_entry_and_explains_when_it_cannot(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        await opened.until_shown("faster, confirmed")
        await opened.press("4")
        await opened.until_shown("inputs must stay fp32")
        await opened.press("u")
        await opened.until_shown("cannot be undone now.")
        await opened.press("j")
        await opened.until_shown("undo takes it back")
        await opened.press("u")
        await opened.until_shown("opencl.coalesce-reads undone; redo")
        assert daemon.asked_for(Undo) == [Undo(entry=1)]
        await opened.press("g", "U")
        await opened.until(lambda: daemon.asked_for(Redo))
        assert daemon.asked_for(Redo) == [Redo(entry=3)]


async def test_an_untrusted_worktree_is_asked_about_once_and_runs_nothing_until_yes(
    place: Path, open_window: Opener
) -> None:
    screened = make_suggestion(stage="screened", verdict=make_verdict(tier="screen"))
    snapshot = make_snapshot(status=make_status(trusted=False), suggestions=(screened,))
    async with scripted(place, snapshot) as daemon, open_window() as opened:
        await opened.until_shown("TRUST THIS WORKTREE?", "kernels/gemm_workload.py")
        await opened.press("escape")
        await opened.until_shown("gate off: untrusted", "[x] met")
        await opened.press("a")
        await opened.until_shown("not trusted, so nothing is run")
        assert daemon.asked_for(Apply) == []
        await opened.press("T")
        await opened.until_shown("TRUST THIS WORKTREE?")
        await opened.press("y")
        await opened.until_shown("gate idle", "Trusted: kernels")
        assert daemon.asked_for(Trust) == [Trust(trusted=True)]


async def test_q_leaves_the_window_and_not_the_daemon(place: Path, open_window: Opener) -> None:
    async with scripted(place) as daemon:
        async with open_window() as opened:
            await opened.until_shown("faster, confirmed")
            await opened.press("q")
            await opened.until(lambda: not opened.window.is_running)
        assert not daemon.stop.is_set()


async def test_shift_q_stops_the_daemon_only_after_another_key(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        await opened.until_shown("faster, confirmed")
        await opened.press("Q")
        await opened.until_shown("STOP THE DAEMON?")
        await opened.press("Q")
        await opened.press("y")
        await opened.until_shown("The daemon stopped (asked to). R starts it")
        assert daemon.asked_for(Shutdown) == [Shutdown(drain=False)]
        assert opened.window.view.queue.link is Link.STOPPED


async def test_the_palette_runs_our_actions(place: Path, open_window: Opener) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        await opened.until_shown("faster, confirmed")
        await opened.press("ctrl+p")
        await opened.until_shown("Search for commands")
        await opened.press(*"pause")
        await opened.until_shown("Pause or resume watching files")
        await opened.press("enter")
        await opened.until(lambda: daemon.asked_for(Watch))


async def test_keys_of_the_configuration_replace_ours_in_bindings_footer_and_help(
    place: Path, open_window: Opener
) -> None:
    snapshot = make_snapshot(keys={"accept": "t", "acept": "v"})
    async with scripted(place, snapshot) as daemon, open_window() as opened:
        await opened.until_shown("t accept", "[keys] has no action 'acept'; did you mean accept?")
        await opened.press("a")
        await opened.press("t")
        await opened.until_shown("applied to 2 files; undo")
        assert len(daemon.asked_for(Apply)) == 1


async def test_a_key_right_after_the_selection_went_to_another_kernel_is_not_taken(
    place: Path, open_window: Opener
) -> None:
    now = [100.0]
    async with scripted(place) as daemon, open_window(clock=lambda: now[0]) as opened:
        await opened.until_shown("faster, confirmed")
        softmax = next(one for one in daemon.snapshot.files if "softmax" in one.path)
        daemon.notices.publish("file.changed", file=softmax)
        await opened.until_shown("opencl.online-softmax")
        await opened.press("a")
        await opened.until_shown("Ignored: the selection had just moved")
        now[0] += 1
        await opened.press("a")
        await opened.until_shown("opencl.online-softmax is not measured yet")
        await opened.press("g", "f")
        assert daemon.asked_for(Apply) == []

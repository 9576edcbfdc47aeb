"""The queue screen against a daemon that follows a script, over a real socket."""

from __future__ import annotations

from pathlib import Path

import pytest
from pilots import Opener
from scene import GEMM, make_snapshot, make_status, make_suggestion, make_verdict
from scripted_daemon import scripted

from daemon.protocol import JobView

SIZES = [(60, 15), (80, 24), (100, 30), (120, 40), (200, 60)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_every_size_shows_the_skill_its_gain_and_its_status(
    place: Path, open_window: Opener, size: tuple[int, int]
) -> None:
    async with scripted(place), open_window(size) as opened:
        await opened.until_shown("opencl.vectorize-columns", "12.0×", "faster, confirmed")
        await opened.until_shown("11.7–12.3", "? help", "daemon ok")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_tab_reaches_every_pane_at_every_size(
    place: Path, open_window: Opener, size: tuple[int, int]
) -> None:
    marks = {
        "files": "gemm.cl",
        "state": "coalesced reads",
        "skills": "opencl.unroll-reduction",
        "diff": "float8 acc",
        "conditions": "[x] met",
        "profile": "123 → 10.3 ms",
    }
    async with scripted(place), open_window(size) as opened:
        await opened.until_shown("opencl.vectorize-columns")
        seen = set()
        for _ in marks:
            await opened.press("tab")
            focused = opened.window.focused
            assert focused is not None
            assert focused.id is not None
            await opened.until_shown(marks[focused.id] if focused.id != "diff" else "gemm.cl")
            seen.add(focused.id)
        assert seen == set(marks)


async def test_wide_windows_show_all_panes_at_once(place: Path, open_window: Opener) -> None:
    async with scripted(place), open_window((120, 40)) as opened:
        await opened.until_shown("FILES", "STATE", "SKILLS", "DIFF", "PRECONDITIONS", "PROFILE")
        await opened.until_shown("RISK", "float acc", "95 %", "registers unavailable", "not run")


async def test_an_expected_gain_is_never_drawn_as_a_measured_one(
    place: Path, open_window: Opener
) -> None:
    queued = make_suggestion(stage="queued", verdict=None, expected="2.4x (7 trials)")
    async with scripted(place, make_snapshot(suggestions=(queued,))), open_window() as opened:
        await opened.until_shown("opencl.vectorize-columns", "expected 2.4x", "queued")
        await opened.until_shown("not measured on this kernel")
        assert "×" not in opened.screen


async def test_a_wrong_kernel_has_no_speedup_on_any_screen(
    place: Path, open_window: Opener
) -> None:
    wrong = make_suggestion(
        stage="screened", verdict=make_verdict(status="wrong", message="off by 3")
    )
    async with scripted(place, make_snapshot(suggestions=(wrong,))), open_window() as opened:
        await opened.until_shown("wrong, confirmed", "off by 3")
        assert "×" not in opened.screen.replace("3 seeds × 4 shapes × 3", "")
        await opened.press("2")
        await opened.until_shown("A wrong verdict has no speedup")
        assert "12.0×" not in opened.screen


async def test_unmet_and_unknown_conditions_say_so_in_words_and_what_would_supply_them(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place), open_window() as opened:
        await opened.until_shown("opencl.subgroup-broadcast")
        await opened.press("G", "k")
        await opened.until_shown("[!] unmet", "[?] unknown", "supply: declare K")
        await opened.until_shown("1 of 3 met")


async def test_moving_twice_in_a_row_moves_by_two(place: Path, open_window: Opener) -> None:
    async with scripted(place), open_window() as opened:
        await opened.until_shown("opencl.block-rows")
        await opened.press("j", "j")
        await opened.until(lambda: opened.window.view.at.suggestion == "2a1b2c3d4e5f")
        await opened.press("G")
        await opened.until(lambda: opened.window.view.at.suggestion == "7a1b2c3d4e5f")
        await opened.press("g")
        await opened.until(lambda: opened.window.view.at.suggestion == "0a1b2c3d4e5f")


async def test_choosing_a_file_shows_the_skills_of_its_kernels(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place), open_window() as opened:
        await opened.until_shown("opencl.block-rows")
        await opened.press("shift+tab", "shift+tab", "G", "k")
        await opened.until_shown("opencl.online-softmax")
        await opened.press("enter")
        assert opened.window.focused is not None
        assert opened.window.focused.id == "skills"


async def test_the_filter_narrows_while_it_is_typed_and_escape_keeps_the_old_one(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place), open_window() as opened:
        await opened.until_shown("opencl.block-rows")
        await opened.press("slash", "u", "n", "r")
        await opened.until_shown("1 of 8", "filter: unr")
        await opened.press("enter")
        await opened.until_shown("1 of 8")
        await opened.press("escape")
        await opened.until_shown("gemm · 8")


async def test_the_diff_splits_wraps_and_scrolls_sideways_with_marks(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place), open_window((120, 40)) as opened:
        await opened.until_shown("unified", "›")
        await opened.press("v")
        await opened.until_shown("split")
        await opened.press("v", "tab", "l", "l")
        await opened.until_shown("‹")
        await opened.press("w")
        await opened.until_shown("wrapped")
        assert "›" not in opened.screen
        assert "‹" not in opened.screen


async def test_a_suggestion_without_a_patch_says_why(place: Path, open_window: Opener) -> None:
    async with scripted(place), open_window() as opened:
        await opened.until_shown("opencl.double-buffer")
        await opened.press("G")
        await opened.until_shown("No patch: its carrier is a sketch")


async def test_a_running_job_shows_its_step_and_the_queue_behind_it(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        await opened.until_shown("gate idle")
        running = JobView("j1", "2a1b2c3d4e5f", "screen", "running", "correctness 3 of 9")
        daemon.notices.publish("job.progress", job=running)
        daemon.notices.publish(
            "job.progress", job=JobView("j2", "3a1b2c3d4e5f", "screen", "queued")
        )
        await opened.until_shown("gate screening, 1 queued", "correctness 3 of 9")
        daemon.notices.publish("job.progress", job=JobView("j1", "2a1b2c3d4e5f", "screen", "done"))
        daemon.notices.publish(
            "job.progress", job=JobView("j2", "3a1b2c3d4e5f", "screen", "cancelled")
        )
        await opened.until_shown("gate idle")


async def test_a_save_that_renumbers_suggestions_keeps_the_same_skill_selected(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place) as daemon, open_window() as opened:
        await opened.until_shown("opencl.block-rows")
        await opened.press("j")
        await opened.until(lambda: opened.window.view.at.suggestion == "1a1b2c3d4e5f")
        renamed = tuple(
            make_suggestion(f"f{one.id[:-1]}", skill=one.skill, rank=one.rank, kernel=one.kernel)
            for one in reversed(daemon.snapshot.suggestions)
            if one.kernel == GEMM
        )
        daemon.notices.publish("suggestions.changed", kernel=GEMM, suggestions=renamed)
        await opened.until(lambda: opened.window.view.at.suggestion == "f1a1b2c3d4e5")
        chosen = opened.window.view.suggestion()
        assert chosen is not None
        assert chosen.skill == "opencl.unroll-reduction"


async def test_zoom_gives_one_pane_the_window_and_takes_it_back(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place), open_window() as opened:
        await opened.until_shown("PROFILE")
        await opened.press("z")
        await opened.until(lambda: "PROFILE" not in opened.screen and "SKILLS" in opened.screen)
        await opened.press("z")
        await opened.until_shown("PROFILE")


async def test_escape_codes_in_what_the_worktree_says_reach_no_terminal(
    place: Path, open_window: Opener
) -> None:
    status = make_status(device="GPU\x1b]52;c;AAAA\x07")
    nasty = make_suggestion(intent="\x1b[2Jgone", risks=("\u202eevil",))
    snapshot = make_snapshot(status=status, suggestions=(nasty,))
    async with scripted(place, snapshot), open_window() as opened:
        await opened.until_shown("opencl.vectorize-columns")
        assert not set("\x1b\x07\u202e") & set(opened.screen)


async def test_the_mouse_picks_a_row_and_a_second_click_opens_it(
    place: Path, open_window: Opener
) -> None:
    async with scripted(place), open_window() as opened:
        await opened.until_shown("opencl.unroll-reduction")
        await opened.settled()
        row = next(
            y for y, line in enumerate(opened.screen.splitlines()) if "opencl.unroll" in line
        )
        await opened.pilot.click(offset=(60, row))
        await opened.until(lambda: opened.window.view.at.suggestion == "1a1b2c3d4e5f")
        row = next(
            y for y, line in enumerate(opened.screen.splitlines()) if "opencl.unroll" in line
        )
        await opened.pilot.click(offset=(60, row))
        await opened.until(lambda: opened.window.focused and opened.window.focused.id == "diff")

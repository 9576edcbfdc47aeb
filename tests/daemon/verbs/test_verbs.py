"""Each verb against a daemon that answers as told: what it asks, prints, and exits with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from answering import (
    answering,
    make_condition,
    make_entry,
    make_file,
    make_skill,
    make_status,
    make_suggestion,
    make_verdict,
)

from daemon.errors import NotConfirmed, Stale
from daemon.protocol import (
    Applied,
    Apply,
    Diff,
    Diffed,
    Entries,
    FileDiff,
    FileView,
    Gate,
    Gated,
    History,
    Ok,
    Redo,
    Reject,
    Shutdown,
    Skills,
    SkillShown,
    Suggest,
    Suggestions,
    Undo,
    Why,
    WhyView,
)
from daemon.verbs import VERBS, main

Printed = pytest.CaptureFixture[str]


def as_json(capsys: Printed) -> Any:
    return json.loads(capsys.readouterr().out)


# ---- the command line itself --------------------------------------------------------------------


def test_help_lists_every_verb(capsys: Printed) -> None:
    assert main([]) == 2
    shown = capsys.readouterr().out
    assert all(verb in shown for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str, capsys: Printed) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "--json" in shown
    assert "--root" in shown


def test_an_unknown_verb_is_a_usage_error(capsys: Printed) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sugest"])
    assert ended.value.code == 2
    assert "sugest" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("daemon", "status", "--json"),
        ("daemon", "--json", "status"),
        ("status", "--json"),
    ],
)
async def test_json_may_be_asked_for_before_and_after_a_verb_of_a_verb(
    place: Path, capsys: Printed, arguments: tuple[str, ...]
) -> None:
    async with answering(place, {"status": make_status(), "ping": Ok("alive")}) as made:
        assert await made.run(*arguments) == 0
    assert as_json(capsys)["pid"] == 4711


def test_a_verb_that_asks_the_daemon_loads_no_asyncio_and_no_library() -> None:
    code = (
        "import sys; import daemon.verbs.status, daemon.verbs.failure, daemon.verbs.connection;"
        "print([m for m in ('asyncio', 'library.store', 'gate.evaluate', 'sqlite3', 'tree_sitter',"
        " 'yaml', 'textual') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- verbs --------------------------------------------------------------------------------------


async def test_status_prints_what_the_daemon_does(place: Path, capsys: Printed) -> None:
    status = make_status(warnings=("[rewriter] has no effect",), trusted=False)
    async with answering(place, {"status": status}) as made:
        assert await made.run("status") == 0
    shown = capsys.readouterr().out
    for text in ("pid 4711", "no: nothing of it is run", "3 files, 4 kernels", "screen", "timing"):
        assert text in shown
    assert "warning: [rewriter] has no effect" in shown


async def test_warnings_of_the_handshake_go_to_standard_error(place: Path, capsys: Printed) -> None:
    async with answering(place, {"status": make_status()}, ("an older daemon",)) as made:
        assert await made.run("status", "--json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["pid"] == 4711
    assert "klineage: warning: an older daemon" in printed.err


async def test_suggest_hides_what_does_not_apply_unless_all_is_wanted(
    place: Path, capsys: Printed
) -> None:
    blocked = make_suggestion(
        id="b" * 12,
        stage="blocked",
        skill="opencl.native-math",
        verdict=None,
        reason="tolerance unmet",
        conditions=(make_condition(truth="unmet"),),
    )
    answer = Suggestions((make_suggestion(), blocked))
    async with answering(place, {"suggest": answer}) as made:
        assert await made.run("suggest", str(place / "gemm.cl"), "--wait") == 0
        shown = capsys.readouterr().out
        assert "coarsen-rows-8" in shown
        assert "native-math" not in shown
        assert made.asked == [Suggest(str(place / "gemm.cl"), True)]
        assert await made.run("suggest", "--all") == 0
        assert "[!] unmet" in capsys.readouterr().out
        assert await made.run("suggest", "--json") == 0
        assert [s["id"] for s in as_json(capsys)] == ["0123456789ab"]
    async with answering(place, {"suggest": Suggestions((blocked,))}) as made:
        assert await made.run("suggest") == 1
        assert "nothing applies" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "what", "since", "exit_code"),
    [
        ("faster", "0123456789ab", 0, 0),
        ("tie", "0123456789ab", 0, 1),
        ("wrong", "0123456789ab", 0, 1),
        ("tie", "gemm.cl", 0, 0),
        ("wrong", "gemm.cl", 0, 1),
        ("unmeasured", "gemm.cl::gemm", 0, 0),
        ("tie", "gemm.cl", 3, 1),
        ("faster", "gemm.cl", 3, 0),
    ],
)
async def test_gate_exits_0_for_faster_and_for_a_correct_kernel_alone(
    place: Path, capsys: Printed, status: str, what: str, since: int, exit_code: int
) -> None:
    more = ["--since", str(since)] if since else []
    async with answering(place, {"gate": Gated(make_verdict(status=status))}) as made:
        assert await made.run("gate", what, *more) == exit_code
        (asked,) = made.asked
    assert isinstance(asked, Gate)
    assert bool(asked.suggestion) == (what == "0123456789ab")
    assert asked.since == since
    assert status in capsys.readouterr().out


async def test_apply_prints_the_entry_and_a_refusal_is_a_negative_answer(
    place: Path, capsys: Printed
) -> None:
    async with answering(place, {"apply": Applied(make_entry(), "applied it")}) as made:
        assert await made.run("apply", "0123456789ab", "--confirm") == 0
        (asked,) = made.asked
        assert isinstance(asked, Apply)
        assert (asked.suggestion, asked.confirm) == ("0123456789ab", True)
        assert asked.key, "so that a repeated request applies once"
        assert capsys.readouterr().out == "applied it\n"
    async with answering(place, {"apply": NotConfirmed("only screened")}) as made:
        assert await made.run("apply", "0123456789ab") == 1
        assert capsys.readouterr().err == "klineage: only screened\n"


async def test_undo_and_redo_take_the_newest_or_the_entry_that_is_named(
    place: Path, capsys: Printed
) -> None:
    done = Applied(make_entry(kind="undone"), "undone it")
    async with answering(place, {"undo": done, "redo": Stale("it was edited since")}) as made:
        assert await made.run("undo") == 0
        assert await made.run("undo", "7", "--json") == 0
        assert await made.run("redo", "8") == 1
        assert made.asked == [Undo(0), Undo(7), Redo(8)]
    printed = capsys.readouterr()
    assert printed.out.startswith("undone it\n")
    assert "it was edited since" in printed.err


async def test_reject_wants_a_reason(place: Path, capsys: Printed) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["reject", "0123456789ab"])
    assert ended.value.code == 2
    capsys.readouterr()
    async with answering(place, {"reject": Ok("rejected")}) as made:
        assert await made.run("reject", "0123456789ab", "--reason", "registers") == 0
        assert made.asked == [Reject("0123456789ab", "registers")]


async def test_history_is_a_table_newest_first(place: Path, capsys: Printed) -> None:
    entries = (
        make_entry(id=12, kind="rejected", gain="", files=(), note="no"),
        make_entry(id=1),
    )
    async with answering(place, {"history": Entries(entries)}) as made:
        assert await made.run("history", "--limit", "5") == 0
        assert made.asked == [History(5)]
    first, second = capsys.readouterr().out.splitlines()
    assert first.split()[:4] == ["12", "2026-11-30T12:00:00Z", "rejected", "-"]
    assert first.endswith("gemm.cl::gemm  no")
    assert second.split()[2] == "applied"
    async with answering(place, {"history": Entries(())}) as made:
        assert await made.run("history") == 0
    assert capsys.readouterr().out == "no history yet\n"


async def test_detect_prints_kernels_features_and_problems(place: Path, capsys: Printed) -> None:
    async with answering(place, {"detect": make_file(problems=("line 9: typo",))}) as made:
        assert await made.run("detect", "gemm.cl") == 0
    shown = capsys.readouterr().out
    assert "gemm.cl: line 9: typo" in shown
    assert "gemm.cl:2  gemm  (opencl; workload.py)" in shown
    assert "fp32 accumulation" in shown
    async with answering(place, {"detect": FileView("empty.cl")}) as made:
        assert await made.run("detect", "empty.cl") == 1
    assert "no kernel found" in capsys.readouterr().out


async def test_skills_are_listed_shown_and_explained(place: Path, capsys: Printed) -> None:
    condition = make_condition(truth="unmet", because="K=45 % 8 == 5")
    why = WhyView("opencl.x", "gemm.cl::gemm", "blocked", ("scope met",), (condition,))
    answers = {
        "skills.list": Skills((make_skill(),)),
        "skills.show": SkillShown(
            make_skill(), '{"skill_id": "x"}', "# Body\n", ('{"at": "now"}',)
        ),
        "skills.why": Why(why),
    }
    async with answering(place, answers) as made:
        assert await made.run("skills", "list", "--language", "opencl") == 0
        assert "opencl.coarsen-rows-8  dddddddd" in capsys.readouterr().out
        assert await made.run("skills", "show", "opencl.coarsen-rows-8") == 0
        assert "# Body" in capsys.readouterr().out
        assert await made.run("skills", "show", "opencl.coarsen-rows-8", "--json") == 0
        assert as_json(capsys)["trials"] == [{"at": "now"}]
        assert await made.run("skills", "why", "opencl.x", "gemm.cl") == 1
        assert "[!] unmet" in capsys.readouterr().out


async def test_daemon_stop_and_status_start_nothing(place: Path, capsys: Printed) -> None:
    assert main(["daemon", "status", "--root", str(place)]) == 1
    assert capsys.readouterr().out == "no daemon is running here\n"
    assert main(["daemon", "stop", "--root", str(place), "--json"]) == 0
    assert as_json(capsys) == {"message": "no daemon was running"}
    async with answering(place, {"shutdown": Ok("the daemon stops")}) as made:
        assert await made.run("daemon", "stop", "--drain") == 0
        assert made.asked == [Shutdown(drain=True)]


def test_init_writes_once_and_prints_without_writing(place: Path, capsys: Printed) -> None:
    assert main(["init", "--root", str(place), "--print"]) == 0
    text = capsys.readouterr().out
    assert not (place / "klineage.toml").exists()
    assert main(["init", "--root", str(place)]) == 0
    assert (place / "klineage.toml").read_text() == text
    assert main(["init", "--root", str(place)]) == 2
    assert "is there already" in capsys.readouterr().err


def test_a_diff_is_on_the_wire_for_clients_that_draw_one() -> None:
    assert Diffed((FileDiff("a", "x", "y"),)).files[0].after == "y"
    assert Diff("0123456789ab").suggestion == "0123456789ab"

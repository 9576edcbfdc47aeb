"""Every verb of `klineage`: one JSON document, and the exit status that its help promises."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest
from person import DONE, NEGATIVE, ONE_SKILL, QUICK, USAGE, Person, living

from daemon.verbs import VERBS

pytestmark = [pytest.mark.serial, pytest.mark.timeout(120)]

KERNEL = "gemm/gemm_naive.cl"
SKILL = "opencl.coarsen-rows-8"


@pytest.fixture(scope="module")
def person() -> Iterator[Person]:
    """A person who trusts their worktree and has a confirmed suggestion in it."""
    with living(QUICK + ONE_SKILL) as someone:
        someone.trust()
        (suggestion,) = someone.json("suggest", KERNEL, "--wait")
        someone.run("gate", suggestion["id"])
        yield someone
        assert "Traceback" not in someone.log()


@pytest.fixture
def suggestion(person: Person) -> str:
    """Its id."""
    (found,) = person.json("suggest", KERNEL)
    return found["id"]


def test_every_verb_has_a_help_that_names_the_shared_options(person: Person) -> None:
    listed = person.run("--help").stdout
    for verb in VERBS:
        assert f"    {verb} " in listed
        assert "usage: klineage" in person.run(verb, "--help").stdout


def test_no_verb_or_an_unknown_one_is_a_matter_of_usage(person: Person) -> None:
    person.run(expect=USAGE)
    assert "invalid choice: 'fly'" in person.run("fly", expect=USAGE).stderr
    assert "required: suggestion" in person.run("apply", expect=USAGE).stderr
    person.run("skills", expect=USAGE)


def test_doctor_says_what_is_here(person: Person) -> None:
    found = person.json("doctor")
    assert found["can_gate"] is True
    assert found["root"] == str(person.root)
    assert any(device["runtime"] == "opencl" for device in found["devices"])
    assert found["packages"]["pyopencl"]


def test_init_writes_once_and_prints_as_often_as_asked(person: Person) -> None:
    shown = person.json("init", "--print")
    assert shown["text"].startswith("#")
    written = person.json("init")
    path = person.root / "klineage.toml"
    assert written == {"written": str(path)}
    assert path.read_text() == shown["text"]
    assert "is there already" in person.json("init", expect=USAGE)["error"]["message"]
    path.unlink()


def test_detect_tells_kernels_from_files_without(person: Person) -> None:
    (kernel,) = person.json("detect", KERNEL)["kernels"]
    assert kernel["id"] == f"{KERNEL}::gemm_naive"
    assert kernel["workload"] == "gemm/workload.py"
    assert {feature["presence"] for feature in kernel["features"]} >= {"present", "absent"}
    assert person.json("detect", "gemm/workload.py", expect=NEGATIVE)["kernels"] == []


def test_suggest_ranks_what_applies_and_shows_the_rest_when_asked(person: Person) -> None:
    (found,) = person.json("suggest", KERNEL)
    assert (found["skill"], found["rank"], found["stage"]) == (SKILL, 1, "confirmed")
    assert found["verdict"]["timings"][0]["speedup"] > 1.0
    assert all(condition["truth"] == "met" for condition in found["conditions"])
    assert person.json("suggest")[0]["id"] == found["id"]
    assert len(person.json("suggest", KERNEL, "--all")) >= 1


def test_gate_answers_with_a_verdict_whatever_it_gates(person: Person, suggestion: str) -> None:
    alone = person.json("gate", KERNEL, "--tier", "screen")
    assert (alone["status"], alone["tier"]) == ("tie", "screen")
    named = person.json("gate", f"{KERNEL}::gemm_naive", "--tier", "screen")
    assert named["status"] == "tie"
    screened = person.json("gate", suggestion, "--tier", "screen")
    assert screened["status"] == "faster"
    missing = person.json("gate", f"{KERNEL}::none", expect=NEGATIVE)
    assert missing["error"]["kind"] == "NotFound"


def test_apply_undo_redo_and_history_tell_the_same_story(person: Person, suggestion: str) -> None:
    before = person.sources()
    applied = person.json("apply", suggestion)["entry"]
    assert (applied["kind"], applied["skill"]) == ("applied", SKILL)
    after = person.sources()
    since = person.json("gate", KERNEL, "--tier", "screen", "--since", str(applied["id"]))
    assert since["status"] == "faster"
    undone = person.json("undo")["entry"]
    assert person.sources() == before
    redone = person.json("redo", str(undone["id"]))["entry"]
    assert person.sources() == after
    again = person.json("undo", str(applied["id"]))["entry"]
    assert person.sources() == before
    listed = person.json("history")
    assert [e["id"] for e in listed] == [entry["id"] for entry in (again, redone, undone, applied)]
    assert [e["kind"] for e in listed] == ["undone", "redone", "undone", "applied"]
    assert len(person.json("history", "--limit", "1")) == 1
    assert person.json("undo", expect=NEGATIVE)["error"]["kind"] == "NotFound"


def test_status_and_the_daemon_group_agree(person: Person) -> None:
    status = person.json("status")
    assert status["trusted"] is True
    assert status["kernels"] == 1
    assert person.json("daemon", "status")["pid"] == status["pid"]
    assert person.json("daemon", "start")["pid"] == status["pid"]


def test_the_daemon_stops_when_told_and_status_starts_none(person: Person) -> None:
    first = person.json("status")["pid"]
    assert "stops" in person.json("daemon", "stop")["message"]
    assert person.json("daemon", "status", expect=NEGATIVE) == {"running": False}
    assert person.json("daemon", "stop")["message"] == "no daemon was running"
    assert person.json("daemon", "start")["pid"] != first


def test_skills_are_listed_shown_and_explained(person: Person) -> None:
    listed = person.json("skills", "list", "--language", "opencl")
    assert SKILL in [skill["skill_id"] for skill in listed]
    assert all("opencl" in skill["languages"] for skill in listed)
    shown = person.json("skills", "show", SKILL)
    assert shown["card"]["skill_id"] == SKILL
    assert shown["trials"], "the confirmation is not among its trials"
    why = person.json("skills", "why", SKILL, KERNEL)
    assert why["answer"] == "applies"
    unknown = person.json("skills", "show", "opencl.nothing", expect=NEGATIVE)
    assert unknown["error"]["kind"] == "NotFound"


def test_a_rejected_suggestion_stays_rejected(person: Person, suggestion: str) -> None:
    person.json("reject", suggestion, "--reason", "the host code picks the group size")
    assert person.json("suggest", KERNEL, expect=NEGATIVE) == []
    (kept,) = [s for s in person.json("suggest", KERNEL, "--all") if s["id"] == suggestion]
    assert kept["stage"] == "rejected"
    assert "the host code picks the group size" in kept["reason"]
    refused = person.json("apply", suggestion, "--confirm", expect=NEGATIVE)
    assert refused["error"]["kind"] == "NotConfirmed"
    assert person.json("history")[0]["kind"] == "rejected"


def test_demo_prepares_a_trusted_scratch_copy(person: Person) -> None:
    made = person.json("demo", "--prepare", "--language", "opencl")
    root = made["root"]
    assert json.loads(person.run("status", "--json", "--root", root).stdout)["trusted"]
    person.run("daemon", "stop", "--root", root)


def test_a_reader_that_goes_away_is_no_failure(person: Person) -> None:
    # `klineage skills list | head -1`
    talking = subprocess.Popen(
        person.argv("skills", "list", "--json"),
        cwd=person.root,
        env=person.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert talking.stdout is not None
    assert talking.stderr is not None
    talking.stdout.close()
    assert talking.stderr.read() == b""
    talking.stderr.close()
    assert talking.wait() == DONE

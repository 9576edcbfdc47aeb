"""The product as a person uses it: a real terminal, the real window, daemon, gate and device."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from person import BIN, Person
from terminal import Terminal

from daemon.protocol import Empty, Snapshot

pytestmark = [
    pytest.mark.serial,
    pytest.mark.timeout(240),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]

GATED_S = 150
"""How long two busy cores may take to screen and confirm one candidate."""


@contextmanager
def window(person: Person, name: str = "window") -> Iterator[Terminal]:
    """`klineage-tui` on the person's worktree, in a terminal of 120 by 40."""
    folder = person.home / name
    folder.mkdir()
    command = [str(BIN / "klineage-tui"), str(person.root)]
    terminal = Terminal(folder, command, person.environment, size=(120, 40))
    try:
        yield terminal
    finally:
        terminal.close()


def confirmed_with(word: str):
    """Whether a screen shows a confirmed gain, and `word` in the code of its diff."""
    return lambda screen: "faster, confirmed" in screen and word in screen


def skill_rows(screen: str) -> list[str]:
    """The rows of the skills pane: rank, skill, gain, interval, status."""
    rows = re.findall(r"(\d+ opencl\.[^│┃║]*?)\s*[│┃║]", screen)
    return [" ".join(row.split()) for row in rows]


def measured(person: Person) -> dict[str, tuple[str, tuple[object, ...]]]:
    """Stage and timings of every suggestion, by id."""
    snapshot: Snapshot = person.call("snapshot", Empty())
    return {
        one.id: (one.stage, one.verdict.timings if one.verdict else ())
        for one in snapshot.suggestions
    }


def test_a_saved_kernel_is_improved_with_one_key_and_restored_with_another(
    person: Person,
) -> None:
    with window(person) as shown:
        shown.wait_for("TRUST THIS WORKTREE?")
        shown.send("y")
        shown.wait_for("Trusted:")

        # An edit in the editor: the same kernel, the accumulator named otherwise.
        edited = person.kernel.read_bytes().replace(b"acc", b"total")
        person.kernel.write_bytes(edited)
        before = person.sources()
        shown.wait_for(confirmed_with("total"), GATED_S)

        shown.send("a")
        shown.wait_for("applied opencl.coarsen-rows-8")
        after = person.sources()
        assert after.keys() == before.keys()
        assert after["gemm/gemm_naive.cl"] != edited

        # Right on inputs it has not seen: exit status 0 says so, and the check by its name.
        verdict = person.json("gate", "gemm/gemm_naive.cl", "--tier", "screen")
        outcomes = {check["name"]: check["outcome"] for check in verdict["checks"]}
        assert outcomes["correctness"] == "passed"

        shown.send("u")
        shown.wait_for("undone opencl.coarsen-rows-8")
        assert person.sources() == before

        serving = person.json("daemon", "status")["pid"]
        shown.send("q")
        shown.wait_for_exit()
    assert person.json("daemon", "status")["pid"] == serving


def test_a_window_that_is_opened_again_shows_the_same_gains(person: Person) -> None:
    with window(person) as shown:
        shown.wait_for("TRUST THIS WORKTREE?")
        shown.send("y")
        rows = skill_rows(shown.wait_for("faster, confirmed", GATED_S))
        known = measured(person)
        shown.send("q")
        shown.wait_for_exit()
    assert any("faster, confirmed" in row for row in rows)

    with window(person, "again") as shown:
        assert skill_rows(shown.wait_for("faster, confirmed")) == rows
        assert measured(person) == known

    # A daemon that starts anew has it from its journal, and measures nothing again.
    person.run("daemon", "stop")
    with window(person, "anew") as shown:
        assert skill_rows(shown.wait_for("faster, confirmed")) == rows
        assert measured(person) == known

        # Nor does one that follows a killed one; the window says so and stays.
        os.kill(person.json("status")["pid"], signal.SIGKILL)
        shown.wait_for("The daemon is gone")
        shown.send("R")
        shown.wait_for("daemon ok")
        assert skill_rows(shown.wait_for("faster, confirmed")) == rows
        assert measured(person) == known


def test_what_one_window_applies_and_the_other_undoes_shows_in_both(person: Person) -> None:
    before = person.sources()
    person.trust()
    with window(person, "left") as left, window(person, "right") as right:
        for shown in (left, right):
            shown.wait_for("faster, confirmed", GATED_S)
        right.send("4")
        right.wait_for("Nothing was applied, undone or rejected yet.")

        left.send("a")
        right.wait_for(lambda screen: re.search(r"applied +opencl\.coarsen-rows-8", screen))
        left.wait_for("applied opencl.coarsen-rows-8")
        assert person.sources() != before

        right.send("u")
        left.wait_for("undone opencl.coarsen-rows-8")
        right.wait_for("undone opencl.coarsen-rows-8")
        assert person.sources() == before
        left.wait_for("faster, confirmed")

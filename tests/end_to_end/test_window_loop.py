"""The product as a person uses it: a real terminal, the real window, daemon, gate and device."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest

from tests.end_to_end.conftest import BIN, Person
from tests.end_to_end.terminal import Terminal

pytestmark = [
    pytest.mark.serial,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


@pytest.fixture
def window(person: Person) -> Iterator[Terminal]:
    command = [str(BIN / "klineage-tui"), str(person.root)]
    terminal = Terminal(person.home, command, person.environment, size=(120, 40))
    yield terminal
    terminal.close()


def test_a_saved_kernel_is_improved_with_one_key_and_restored_with_another(
    person: Person, window: Terminal
) -> None:
    kernel = person.root / "gemm" / "gemm_naive.cl"
    folder = kernel.parent
    window.wait_for("trust")
    window.send("y")
    window.wait_for("gemm_naive")

    # An edit in the editor: the same kernel, the accumulator named otherwise.
    edited = kernel.read_bytes().replace(b"acc", b"total")
    assert edited != kernel.read_bytes()
    kernel.write_bytes(edited)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    window.wait_for("faster", timeout_s=120)
    window.send("a")
    window.wait_for("applied", timeout_s=180)
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert after["gemm_naive.cl"] != before["gemm_naive.cl"]

    verdict = person.json("gate", "gemm/gemm_naive.cl", "--tier", "screen")
    correctness = [check for check in verdict["checks"] if check["name"] == "correctness"]
    assert [check["outcome"] for check in correctness] == ["passed"]

    window.send("u")
    window.wait_for("undone", timeout_s=60)
    restored = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert restored == before

    window.send("q")
    assert person.json("daemon", "status")["pid"] > 0


def test_closing_and_opening_the_window_shows_the_same(person: Person, window: Terminal) -> None:
    window.wait_for("trust")
    window.send("y")
    shown = window.wait_for("faster", timeout_s=120)
    assert "gemm_naive" in shown
    window.send("q")
    history = person.json("suggest")
    command = [str(BIN / "klineage-tui"), str(person.root)]
    again = person.home / "again"
    again.mkdir()
    second = Terminal(again, command, person.environment, size=(120, 40))
    try:
        second.wait_for("faster", timeout_s=60)
    finally:
        second.close()
    measured = [s for s in history if s["verdict"] is not None]
    assert measured, json.dumps(history)[:2000]

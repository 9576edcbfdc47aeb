"""Rounds of apply, undo and redo, each killed at a random instant; run as a program of its own.

    python crash_rounds.py <folder> <rounds> <seed>

A forked child changes two files over and over and writes a byte to a pipe for each answer it got.
The parent kills it with SIGKILL, recovers, and checks that both files have old or new bytes, both
the same, that nothing staged is left, and that every answered change is in the history. It exits
with 1 and says what it found at the first round that breaks this.
"""

from __future__ import annotations

import os
import random
import select
import signal
import sys
from pathlib import Path

from daemon.journal import Journal
from daemon.transaction import ChangeLog, ChangeMeta
from gate.values.candidate import FileEdit
from gate.values.kernel import digest

OLD = {"gemm.cl": b"old kernel\n" * 400, "host/launch.py": b"old launch\r\n" * 40}
NEW = {"gemm.cl": b"new kernel\n" * 500, "host/launch.py": b"new launch\r\n" * 50}
EDITS = [FileEdit(path, digest(OLD[path]), NEW[path]) for path in OLD]


def change_forever(history: ChangeLog, answers: int) -> None:
    """Every answer is one byte into `answers`, written after the call returned."""
    while True:
        history.apply(EDITS, ChangeMeta("s", "opencl.stage", "gemm.cl::gemm"))
        os.write(answers, b".")
        history.undo()
        os.write(answers, b".")
        history.redo()
        os.write(answers, b".")
        history.undo()
        os.write(answers, b".")


def killed_round(root: Path, database: Path, delay_s: float) -> int:
    """How many answers the child got before it was killed `delay_s` after its first one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        journal = Journal(database)
        change_forever(ChangeLog(journal, root), writing)
    os.close(writing)
    select.select([reading], [], [])
    select.select([], [], [], delay_s)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    answered = 0
    while data := os.read(reading, 4096):
        answered += len(data)
    os.close(reading)
    return answered


def check(root: Path, history: ChangeLog, answered: int, before: int) -> str:
    """What is wrong after recovery; empty if nothing."""
    found = {path: (root / path).read_bytes() for path in OLD}
    if found not in (OLD, NEW):
        return "the files are not all old or all new"
    if any(root.rglob(".klineage-*")):
        return "a staged file was left"
    entries = history.entries(1_000_000)
    # The change that was under way may have been finished without an answer.
    if len(entries) - before not in (answered, answered + 1):
        return f"{answered} changes were answered, {len(entries) - before} recorded"
    if entries[0].undoable != (found == NEW):
        return f"the history ends with {entries[0].kind}, the files say otherwise"
    return ""


def main(folder: Path, rounds: int, seed: int) -> int:
    root, database = folder / "worktree", folder / "journal.db"
    (root / "host").mkdir(parents=True)
    for path, data in OLD.items():
        (root / path).write_bytes(data)
    chance = random.Random(seed)
    before = 0
    for number in range(rounds):
        delay_s = chance.uniform(0.0, 0.03)
        answered = killed_round(root, database, delay_s)
        journal = Journal(database)
        history = ChangeLog(journal, root)
        messages = history.recover()
        wrong = check(root, history, answered, before)
        print(f"round {number}: {answered} answered, {messages or 'nothing to recover'} {wrong}")
        if wrong:
            return 1
        if history.entries(1)[0].undoable:
            history.undo()
        before = len(history.entries(1_000_000))
        journal.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))

"""Forked workers: as fresh as started ones, and neither side takes the other with it."""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gate_builders import SCALE_CL, Worktree

from gate.errors import Cancelled
from gate.evaluate import AS_IT_STANDS, Budget, Gate
from gate.messages import Loaded
from gate.pool import WorkerPool
from gate.settings import GateSettings
from gate.values.kernel import Language
from gate.values.platform import Platform
from gate.values.verdict import Outcome, Status, Tier, Verdict
from gate.worker_process import DeadlinePassed, WorkerDied, WorkerProcess

ROOT = Path(__file__).parents[2]

NEVER = threading.Event()


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[WorkerPool]:
    made = WorkerPool(GateSettings(), tmp_path / "scratch", os.environ)
    yield made
    made.end_all()


def server_of(pool: WorkerPool) -> int:
    return pool._servers["opencl"].pid


def load(worker: WorkerProcess, file: Path, code: str, deadline_s: float = 30.0) -> Loaded:
    """Have an oracle execute a workload whose first lines are `code`."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(code + "\ndef make_inputs(): return {}\ndef numpy_ref(): return {}\n")
    params = {"path": str(file), "data": str(file), "root": str(file.parent)}
    return worker.call("load", params, Loaded, deadline_s, NEVER)


def what(worker: WorkerProcess, folder: Path, expression: str) -> object:
    """The value of an expression inside a worker."""
    answer = folder / f"answer-{worker.pid}"
    code = f"import json, os, sys\njson.dump({expression}, open({str(answer)!r}, 'w'))"
    load(worker, folder / "w.py", code)
    return json.loads(answer.read_text())


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import os; os._exit(3)", "exited with status 3"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
    ],
)
def test_a_crash_ends_one_worker_and_tells_how(
    code: str, told: str, pool: WorkerPool, tmp_path: Path
) -> None:
    worker, neighbour = pool.oracle("opencl"), pool.oracle("opencl")
    server = server_of(pool)

    with pytest.raises(WorkerDied, match=told):
        load(worker, tmp_path / "w.py", code)

    load(neighbour, tmp_path / "w.py", "")
    load(pool.oracle("opencl"), tmp_path / "w.py", "")
    assert server_of(pool) == server


def test_a_hanging_worker_is_killed_with_what_it_forked(pool: WorkerPool, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    code = f"import os\nos.fork()\nopen({str(tmp_path / 'fifo')!r}, 'w').write(f'{{os.getpid()}} ')\nwhile True: pass"
    told: list[int] = []

    def read() -> None:
        while len(told) < 2:
            told.extend(map(int, (tmp_path / "fifo").read_text().split()))

    reader = threading.Thread(target=read)
    reader.start()
    with pytest.raises(DeadlinePassed):
        load(pool.oracle("opencl"), tmp_path / "w.py", code, deadline_s=2.0)
    reader.join()

    assert all(ended(pid) for pid in told)
    load(pool.oracle("opencl"), tmp_path / "w.py", "")


def ended(pid: int) -> bool:
    """Whether a process is gone, or is so within ten seconds."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 10.0)[0])
    finally:
        os.close(process)


def test_a_server_that_is_killed_is_replaced_and_its_workers_go_on(
    pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    worker = pool.oracle("opencl")
    before = server_of(pool)
    os.kill(before, signal.SIGKILL)
    assert ended(before)

    with caplog.at_level(logging.WARNING):
        another = pool.oracle("opencl")

    assert "the server that forks opencl workers is gone: killed by SIGKILL" in caplog.text
    assert server_of(pool) != before
    for each in (worker, another):
        load(each, tmp_path / "w.py", "")
        pool.end(each)
        assert ended(each.pid)


def test_nothing_is_left_when_all_are_ended(pool: WorkerPool) -> None:
    workers = [pool.oracle("opencl"), pool.runner("opencl")]
    pids = [server_of(pool), *(worker.pid for worker in workers)]

    pool.end_all()

    assert all(ended(pid) for pid in pids)
    assert list(pool._scratch.iterdir()) == []


def test_server_and_workers_die_with_the_daemon(tmp_path: Path) -> None:
    """The daemon is killed with SIGKILL, so nothing of ours runs; the kernel's signal does it."""
    code = textwrap.dedent(
        f"""
        import os, sys
        from pathlib import Path
        from gate.pool import WorkerPool
        from gate.settings import GateSettings
        pool = WorkerPool(GateSettings(), Path({str(tmp_path)!r}), os.environ)
        pids = [pool.runner("opencl").pid, pool.oracle("opencl").pid, pool._servers["opencl"].pid]
        print(*pids, flush=True)
        sys.stdin.read()
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as daemon:
        assert daemon.stdout is not None
        pids = [int(word) for word in daemon.stdout.readline().split()]
        daemon.kill()

    assert len(pids) == 3
    assert all(ended(pid) for pid in pids)


def test_a_forked_worker_has_the_environment_of_a_started_one(
    pool: WorkerPool, tmp_path: Path
) -> None:
    pool._own["OPENAI_API_KEY"] = "secret"
    forked, started = pool.oracle("opencl"), pool._started("oracle", "opencl")

    seen = [what(worker, tmp_path / "w", "dict(os.environ)") for worker in (forked, started)]
    places = [
        {name: str(value).replace(str(worker.folder), "HERE") for name, value in each.items()}
        for each, worker in zip(seen, (forked, started), strict=True)
    ]

    assert places[0] == places[1]
    assert "secret" not in seen[0].values()
    assert what(forked, tmp_path / "w", "[os.getcwd(), os.getsid(0), os.getpgrp()]") == [
        str(forked.folder),
        forked.pid,
        forked.pid,
    ]


def test_a_worker_holds_no_descriptor_of_another(pool: WorkerPool, tmp_path: Path) -> None:
    workers = [pool.oracle("opencl") for _ in range(3)]
    listed = "[os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')]"

    pipes = [
        {
            name
            for name in what(worker, tmp_path / "w", listed)
            if "pipe" in name or "socket" in name
        }
        for worker in workers
    ]

    assert all(pipes)
    assert not pipes[0] & pipes[1]
    assert not pipes[1] & pipes[2]


def test_what_a_workload_imports_stays_in_its_worker(pool: WorkerPool, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "my_helper.py").write_text("")
    first, second = pool.oracle("opencl"), pool.oracle("opencl")

    assert what(first, folder, "__import__('my_helper').__name__") == "my_helper"
    assert what(second, folder, "'my_helper' in sys.modules") is False
    assert what(pool.oracle("opencl"), folder, "'my_helper' in sys.modules") is False


def test_forks_are_laid_out_apart_and_draw_apart(pool: WorkerPool, tmp_path: Path) -> None:
    expression = (
        "[__import__('mmap').PAGESIZE and __import__('ctypes').addressof("
        "__import__('ctypes').create_string_buffer(1 << 22)), "
        "__import__('numpy').random.randint(1 << 30)]"
    )

    drawn = [what(pool.oracle("opencl"), tmp_path / "w", expression) for _ in range(4)]

    assert len({address for address, _ in drawn}) > 1
    assert len({number for _, number in drawn}) > 1


@pytest.fixture
def threading_python(tmp_path: Path) -> dict[str, str]:
    """An environment in which this interpreter always has a second thread."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    return {"PYTHONPATH": str(folder)}


def test_a_runtime_that_cannot_be_forked_is_started_singly_and_that_is_told(
    threading_python: dict[str, str], tmp_path: Path
) -> None:
    settings = GateSettings(environment=threading_python, device_lock=str(tmp_path / "lock"))
    gate = Gate(tmp_path / "w", settings, tmp_path / "scratch")
    tree = Worktree(tmp_path / "w")

    verdict = gate.evaluate(
        tree.kernel,
        tree.candidate(k="// scales\n" + SCALE_CL),
        tree.workload,
        gate.platform(Language.OPENCL),
        Tier.SCREEN,
        Budget(),
        NEVER,
    )

    check = next(check for check in verdict.checks if check.name == "fork server")
    assert check.outcome is Outcome.NOT_RUN
    assert "its imports leave threads running" in check.detail
    assert verdict.status is Status.TIE, verdict.message
    gate.close()


def test_a_server_that_imports_for_long_can_be_cancelled(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import threading; threading.Event().wait()\n")
    settings = GateSettings(environment={"PYTHONPATH": str(tmp_path)})
    pool = WorkerPool(settings, tmp_path / "scratch", os.environ)
    stop = threading.Event()
    timer = threading.Timer(0.2, stop.set)
    timer.start()

    with pytest.raises(Cancelled):
        pool.runner("opencl", stop)

    pool.end_all()


Evaluate = Callable[..., Verdict]


@pytest.mark.parametrize("when", ["preparing pair 3", "timing pair 2"])
def test_stop_cancels_within_a_second_while_pairs_are_alive(
    when: str, gate: Gate, platform: Platform, worktree: Callable[..., Worktree]
) -> None:
    tree = worktree()
    stop = threading.Event()
    asked: list[float] = []

    def progress(step: str) -> None:
        if step.startswith(when) and not stop.is_set():
            asked.append(os.times().elapsed)
            stop.set()

    with pytest.raises(Cancelled):
        gate.evaluate(
            tree.kernel,
            AS_IT_STANDS,
            tree.workload,
            platform,
            Tier.CONFIRM,
            Budget(),
            stop,
            progress,
        )

    assert os.times().elapsed - asked[0] < 1.0
    alive = [worker.role for worker in gate._pool._running if worker.alive]
    assert "runner" not in alive


@pytest.mark.serial
def test_two_gates_take_turns_and_the_one_that_waits_tells_for_whom(tmp_path: Path) -> None:
    settings = GateSettings(device_lock=str(tmp_path / "lock"))
    first, second = [Gate(tmp_path / name, settings, tmp_path / f"s-{name}") for name in "ab"]
    verdicts: list[Verdict] = []
    told: list[str] = []
    waits = threading.Event()

    def evaluate(gate: Gate, progress: Callable[[str], None]) -> None:
        tree = Worktree(gate._root)
        platform = gate.platform(Language.OPENCL)
        asked = tree.kernel, AS_IT_STANDS, tree.workload, platform, Tier.SCREEN, Budget(), NEVER
        verdicts.append(gate.evaluate(*asked, progress))

    def listen(step: str) -> None:
        told.append(step)
        if step.startswith("waiting"):
            waits.set()

    other = threading.Thread(target=evaluate, args=[second, listen])

    def hold(step: str) -> None:
        if step == "timing block 1":
            other.start()
            assert waits.wait(60.0)

    evaluate(first, hold)
    other.join()
    first.close()
    second.close()

    assert f"waiting for the device: pid {os.getpid()} times scale" in told
    assert [verdict.status for verdict in verdicts] == [Status.TIE, Status.TIE]

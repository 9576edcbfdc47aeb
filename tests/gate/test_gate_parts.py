"""The parent's own parts: environment, static checks, cases, worker processes."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import msgspec
import pytest

from gate.cases import DISTRIBUTIONS, confirm_cases, interpreted_cases, neighbours, screen_cases
from gate.device_lock import device_lock
from gate.environment import worker_environment
from gate.errors import Cancelled, EnvironmentLacks
from gate.evaluate import Gate
from gate.pool import exchange_folder
from gate.room import pairs_at_once
from gate.settings import USER_ONLY, GateSettings
from gate.static import same_but_for
from gate.values.kernel import Language
from gate.values.platform import Platform
from gate.worker.distributions import NAMES
from gate.worker_process import Output

ROOT = Path(__file__).parents[2]


def test_keys_and_home_do_not_reach_a_worker(tmp_path: Path) -> None:
    own = {
        "HOME": "/home/someone",
        "PATH": "/bin",
        "OPENAI_API_KEY": "secret",
        "TRITON_PTXAS_PATH": "/ptxas",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }

    environment = worker_environment(own, {"MY_FLAG": "1"}, tmp_path)

    assert environment["HOME"] == str(tmp_path)
    assert environment["PYTHONUSERBASE"] == "/home/someone/.local"
    assert environment["TRITON_PTXAS_PATH"] == "/ptxas"
    assert environment["MY_FLAG"] == "1"
    assert "secret" not in environment.values()


def test_only_the_launch_bodys_edit_is_the_same_file() -> None:
    before = b"X = 1\ndef launch(axes):\n    return {}\ndef numpy_ref(x):\n    return x\n"

    assert same_but_for(before, before.replace(b"return {}", b"return {'global': 3}"), "launch")
    assert same_but_for(before, b"# why\n" + before, "launch")
    assert not same_but_for(before, before.replace(b"return x", b"return 0"), "launch")
    assert not same_but_for(before, before.replace(b"X = 1", b"X = 2"), "launch")
    assert not same_but_for(before, before.replace(b"(axes)", b"(axes, y=numpy_ref)"), "launch")
    assert not same_but_for(before, before + b"def launch_b(axes):\n    return {}\n", "launch")
    assert not same_but_for(before, b"def broken(", "launch")


def test_the_parent_and_the_oracle_name_the_same_distributions() -> None:
    assert DISTRIBUTIONS == NAMES


def test_confirm_crosses_shapes_seeds_and_distributions() -> None:
    shapes = [{"n": 4, "m": 2}, {"n": 5, "m": 2}]

    plans = confirm_cases(shapes, [1, 2, 3])
    declared = [plan for plan in plans if dict(plan.axes) in shapes]

    assert len(declared) == 2 * 3 * 4
    assert {plan.seed for plan in declared} == {1, 2, 3}
    assert all(plan.promised == (plan.distribution == "normal") for plan in declared)
    assert neighbours(shapes) == [{"n": 3, "m": 2}, {"n": 4, "m": 3}, {"n": 4, "m": 1}]


def test_no_neighbour_has_an_empty_axis() -> None:
    assert neighbours([{"n": 1}]) == [{"n": 2}]


def test_a_screen_ends_on_the_shape_it_times() -> None:
    plans = screen_cases([{"n": 1}, {"n": 2}, {"n": 3}], 9)

    assert [dict(plan.axes) for plan in plans] == [{"n": 2}, {"n": 1}]


def test_an_interpreter_gets_the_smallest_shapes() -> None:
    plans = interpreted_cases([{"n": 4096}, {"n": 8}, {"n": 64}], [1, 2])

    assert [dict(plan.axes) for plan in plans] == [{"n": 8}, {"n": 64}]


def test_output_keeps_both_ends() -> None:
    output = Output(20)
    for _ in range(10):
        output.feed(b"abcdefghij")
    output.feed(b"END")

    assert output.text().startswith("abcdefghij")
    assert output.text().endswith("END")
    assert "83 bytes left out" in output.text()


def test_the_device_lock_waits_and_can_be_cancelled(tmp_path: Path) -> None:
    stop, told = threading.Event(), []

    def waiting(holder: str) -> None:
        told.append(holder)
        stop.set()

    with (
        device_lock(tmp_path / "lock", "times gemm", threading.Event(), told.append),
        pytest.raises(Cancelled, match="times gemm"),
        device_lock(tmp_path / "lock", "times scale", stop, waiting),
    ):
        pass
    assert told == [f"pid {os.getpid()} times gemm"]


def test_the_note_of_a_daemon_that_was_killed_is_not_told(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "lock").write_text(f"pid {gone.pid} times gemm")
    stop, told = threading.Event(), []

    def waiting(holder: str) -> None:
        told.append(holder)
        stop.set()

    with (tmp_path / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Cancelled), device_lock(tmp_path / "lock", "", stop, waiting):
            pass

    assert told == ["another process has it"]


def test_what_a_dead_daemon_left_in_shared_memory_is_removed(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = tmp_path / f"klineage-{os.getuid()}-{gone.pid}-0"
    left.mkdir()

    made = exchange_folder(tmp_path / "scratch", tmp_path)

    assert not left.exists()
    assert made.parent == tmp_path
    assert exchange_folder(tmp_path / "scratch", tmp_path) != made


def test_scratch_serves_where_there_is_no_shared_memory(tmp_path: Path) -> None:
    assert exchange_folder(tmp_path, tmp_path / "none") == tmp_path / "exchange"


def platform(**capabilities: bool | int | float | str) -> Platform:
    return Platform("sm_90a", "a device", {"device_type": "gpu", **capabilities})


def test_pairs_are_as_many_as_fit(tmp_path: Path) -> None:
    large, small = platform(global_memory_bytes=140 * 2**30), platform(global_memory_bytes=2**30)

    assert pairs_at_once(6, 1000, platform(), tmp_path) >= 1
    assert pairs_at_once(1, 1000, large, tmp_path) == 1
    assert pairs_at_once(6, 1000, small, tmp_path) == 1
    assert pairs_at_once(6, 2**40, large, tmp_path) == 1


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    gate = Gate(tmp_path, GateSettings(python="/no/such/python"), tmp_path / "scratch")

    with pytest.raises(EnvironmentLacks, match=r"/no/such/python.*set python in \[gate\]"):
        gate.platform(Language.OPENCL)
    gate.close()


def test_a_device_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    gate = Gate(tmp_path, GateSettings(devices={"opencl": "quantum"}), tmp_path / "scratch")

    with pytest.raises(EnvironmentLacks, match="no OpenCL device matches 'quantum'"):
        gate.platform(Language.OPENCL)
    gate.close()


def test_inspection_tells_versions_devices_and_lacks(gate: Gate) -> None:
    inspection = gate.inspect()

    assert inspection.interpreter == sys.executable
    assert inspection.packages["numpy"]
    assert any(device.runtime == "opencl" for device in inspection.devices)
    assert all(lack.costs for lack in inspection.lacks)


@pytest.mark.parametrize(
    "weak", [{"confirm": {"processes": 1}}, {"screen": {"blocks": 2}}, {"minimum_gain": -1.0}]
)
def test_no_configuration_weakens_the_proof_to_nothing(weak: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(weak, GateSettings)


def test_user_only_fields_exist() -> None:
    assert set(USER_ONLY) <= set(GateSettings.__struct_fields__)


def test_the_parent_loads_no_numpy_and_no_runtime() -> None:
    code = "import sys, gate.evaluate; print([m for m in ('numpy','torch','pyopencl','triton') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


def test_a_worker_dies_with_its_parent_even_in_an_endless_launch(tmp_path: Path) -> None:
    """The parent is killed with SIGKILL, so nothing of ours runs; the kernel's signal does it."""
    (tmp_path / "w.py").write_text(
        "import os\n"
        "os.fork()\n"
        f"with open({str(tmp_path / 'fifo')!r}, 'w') as fifo:\n"
        "    fifo.write(f'{os.getpid()} ')\n"
        "while True: pass\n"
    )
    os.mkfifo(tmp_path / "fifo")
    code = textwrap.dedent(
        f"""
        import os, threading
        from pathlib import Path
        from gate.messages import Loaded
        from gate.pool import WorkerPool
        from gate.settings import GateSettings
        folder = Path({str(tmp_path)!r})
        worker = WorkerPool(GateSettings(), folder / "scratch", os.environ).oracle("opencl")
        params = {{"path": str(folder / "w.py"), "data": str(folder / "w.py"), "root": str(folder)}}
        worker.call("load", params, Loaded, 60.0, threading.Event())
        """
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as parent:
        told: list[str] = []
        while len(told) < 2:
            told += (tmp_path / "fifo").read_text().split()
        watched = [os.pidfd_open(int(pid)) for pid in told]
        os.kill(parent.pid, signal.SIGKILL)

    for process in watched:
        # Readable once the process has ended.
        assert select.select([process], [], [], 10.0)[0] == [process]
        os.close(process)

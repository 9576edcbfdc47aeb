"""The watcher where inotify has no room: limits of a user namespace of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

PROGRAM = """
import asyncio
import sys
from pathlib import Path
from daemon.settings import WatchSettings
from daemon.watcher import Timing
from watching import told, watching

async def main(root, limit):
    settings, timing = WatchSettings(poll_interval_s=0.05), Timing(rescan_s=0.2)
    async with watching(root, settings, timing) as running:
        print(running.watcher.mode)
        (root / "k0/deep/a.cl").write_bytes(b"new")
        print(told((await running.batch()).changes))
        limit.write_text("1000")
        print(await running.until_mode("inotify"))

asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
"""


@pytest.mark.parametrize(
    ("limit", "value", "sysctl"),
    [
        ("max_inotify_watches", 4, "fs.inotify.max_user_watches"),
        ("max_inotify_watches", 1, "fs.inotify.max_user_watches"),
        ("max_inotify_instances", 0, "fs.inotify.max_user_instances"),
    ],
)
def test_a_limit_of_inotify_is_named_and_the_tree_polled_until_it_is_raised(
    limit: str, value: int, sysctl: str, tmp_path: Path
) -> None:
    for number in range(6):
        (tmp_path / f"k{number}/deep").mkdir(parents=True)
    (tmp_path / "k0/deep/a.cl").write_bytes(b"old")
    space = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*space, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no unprivileged user namespaces here")
    knob = f"/proc/sys/user/{limit}"
    shell = f'echo {value} > {knob} && exec "$@"'
    run = subprocess.run(
        [*space, "sh", "-c", shell, "sh", sys.executable, "-c", PROGRAM, str(tmp_path), knob],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY}:{Path(__file__).parent}"},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    mode, change, later = run.stdout.splitlines()
    assert mode == (
        f"degraded: inotify limit {sysctl} reached; raise it with `sysctl {sysctl}=…`;"
        " polling every 0.05 s"
    )
    assert change == "{'k0/deep/a.cl': b'new'}"
    assert later == "inotify"

"""A real overflow of inotify's queue: more events than it holds, while nobody reads them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

PROGRAM = """
import asyncio
import subprocess
import sys
from pathlib import Path
from watching import told, watching

FLOOD = '''
cd "$1" && seq "$2" | xargs touch && mkdir sub && echo new > gemm.cl && echo deep > sub/k.cl
'''

async def main(root, events):
    async with watching(root) as running:
        sys.setswitchinterval(1000.0)  # the observer's threads do not get to run
        flood = subprocess.Popen(["sh", "-c", FLOOD, "sh", str(root / "kernels"), events])
        while flood.poll() is None:
            pass
        sys.setswitchinterval(0.005)
        print(told(await running.until_quiet()))
        (root / "kernels/sub/k.cl").write_bytes(b"again")
        print(told((await running.batch()).changes))
        print(running.watcher.mode)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.proof
def test_an_overflow_loses_no_save_and_no_new_folder(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/gemm.cl").write_bytes(b"old")
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text(encoding="ascii"))
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(2 * queue)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY}:{Path(__file__).parent}"},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "{'kernels/gemm.cl': b'new\\n', 'kernels/sub/k.cl': b'deep\\n'}",
        "{'kernels/sub/k.cl': b'again'}",
        "inotify",
    ]

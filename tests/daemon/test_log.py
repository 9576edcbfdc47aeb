"""The daemon's log is bounded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import logging, os, sys
from pathlib import Path
from daemon.log import LogHandler
logging.basicConfig(handlers=[LogHandler(Path(sys.argv[1]), limit_bytes=1000)])
for number in range(30):
    logging.error("line %d %s", number, "x" * 50)
os.system("echo from a child >&2")
print("printed", flush=True)
"""


def write_log(log: Path, target: Path) -> None:
    with target.open("ab") as file:
        subprocess.run([sys.executable, "-c", SCRIPT, log], stdout=file, stderr=file, check=True)


def test_a_long_log_is_set_aside_and_output_goes_on_in_a_new_one(tmp_path: Path) -> None:
    log = tmp_path / "daemon.log"
    write_log(log, log)
    aside = tmp_path / "daemon.log.1"
    assert sorted(tmp_path.iterdir()) == [log, aside]
    assert 1000 < aside.stat().st_size < 1200
    assert log.read_text().endswith("from a child\nprinted\n")
    lines = (aside.read_text() + log.read_text()).splitlines()[:-2]
    numbers = [int(line.split()[-2]) for line in lines]
    assert numbers == list(range(numbers[0], 30))


def test_output_that_is_not_the_log_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "daemon.log"
    log.write_text("")
    write_log(log, tmp_path / "terminal")
    assert sorted(tmp_path.iterdir()) == [log, tmp_path / "terminal"]
    assert len((tmp_path / "terminal").read_text().splitlines()) == 32

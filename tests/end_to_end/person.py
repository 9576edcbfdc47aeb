"""A person's machine for end-to-end tests: a home of its own, a worktree, the installed commands."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from daemon.call import call_once
from daemon.protocol import Trust, Wire
from daemon.worktree import log_path
from gate.device_lock import lock_path

DONE, NEGATIVE, USAGE, ENVIRONMENT = range(4)
"""Exit statuses, as the command line documents them."""

SAMPLES = Path(__file__).resolve().parents[2] / "sample_kernels"
BIN = Path(sys.executable).parent

DEVICE_LOCK = lock_path("")
"""That of this machine: a person of these tests has a temporary folder of their own."""

QUICK = f"""
[gate]
device_lock = "{DEVICE_LOCK}"
[gate.screen]
blocks = 5
blocks_max = 5
cell_ms = 4.0
seconds = 0.0
[gate.confirm]
seeds = 1
processes = 5
processes_max = 8
blocks = 1
cell_ms = 4.0
"""
"""Settings of a person in a hurry: fewer repeats than the defaults, and wider intervals for it."""

IMPATIENT = f"""
{QUICK}
[gate.deadlines]
original_s = 5.0
run_floor_s = 3.0
reference_s = 3.0
"""
"""As QUICK, and nothing that hangs is waited for long."""

ONE_SKILL = """
[library]
disabled = ["opencl.[!c]*", "opencl.coarsen-rows-4", "opencl.coarsen-outputs-4"]
"""
"""Leaves the skill that gains most on the naive GEMM; screening all of them takes a minute."""

SMALL = '[{"M": 128, "N": 96, "K": 64}]'
"""Shapes of a workload that builds and runs once where the sample does it four times."""


@dataclass(frozen=True)
class Person:
    """Someone with a home, a worktree and the two commands."""

    home: Path
    root: Path

    @property
    def folders(self) -> dict[str, str]:
        """Where their files are; every one below their own home."""
        return {
            "HOME": str(self.home),
            "TMPDIR": str(self.home / "tmp"),
            "XDG_RUNTIME_DIR": str(self.home / "run"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
        }

    @property
    def environment(self) -> dict[str, str]:
        """What their shell exports."""
        return {
            **self.folders,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
        }

    @property
    def kernel(self) -> Path:
        """The naive GEMM of their worktree."""
        return self.root / "gemm" / "gemm_naive.cl"

    @property
    def settings(self) -> Path:
        """Their own klineage.toml."""
        return self.home / "config" / "klineage" / "klineage.toml"

    def sources(self) -> dict[str, bytes]:
        """Every file of the worktree outside of `.git`, by relative path."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.root).parts
        }

    def argv(self, *arguments: str) -> list[str]:
        """The command line of `klineage …`."""
        return [str(BIN / "klineage"), *arguments]

    def run(
        self, *arguments: str, expect: int | None = 0, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """`klineage …` in the worktree; asserts the exit status unless `expect` is None."""
        done = subprocess.run(
            self.argv(*arguments),
            cwd=cwd or self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if expect is not None:
            assert done.returncode == expect, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """`klineage …` in the worktree, not waited for."""
        return subprocess.Popen(
            self.argv(*arguments),
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def json(self, *arguments: str, expect: int | None = 0) -> Any:
        """`klineage … --json`, decoded: one document and nothing else on standard output."""
        return json.loads(self.run(*arguments, "--json", expect=expect).stdout)

    def call(self, method: str, params: Wire) -> Any:
        """One request to their daemon, which is started if it is not running."""
        with self.at_home():
            return call_once(self.root, method, params)

    def trust(self) -> None:
        """Answer the one-time question, as the window's prompt does."""
        self.call("trust", Trust(True))

    def log(self) -> str:
        """What their daemon has logged so far."""
        with self.at_home():
            return log_path(self.root).read_text(errors="replace")

    @contextmanager
    def at_home(self) -> Iterator[None]:
        """This process as theirs, so far as the places of files go."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.folders.items():
                patch.setenv(name, value)
            yield

    def workers(self) -> list[int]:
        """Process ids of the gate's workers that live under this home."""
        return [pid for pid in processes_under(self.home) if b"gate/worker" in _command(pid)]


@contextmanager
def living(
    settings: str = QUICK, samples: Mapping[str, str] | None = None, name: str = "work"
) -> Iterator[Person]:
    """A person whose worktree holds kernels; their daemon is stopped afterwards.

    `samples`: operator → its shapes, as Python source, or empty for the sample's own; by default
    the small GEMM.
    """
    # Not below pytest's own folder: a socket's path may not be longer than about 100 bytes.
    home = Path(tempfile.mkdtemp(prefix="kl-"))
    for folder in ("run", "tmp"):
        (home / folder).mkdir(mode=0o700)
    someone = Person(home, home / name)
    someone.settings.parent.mkdir(parents=True)
    someone.settings.write_text(settings)
    someone.root.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", str(someone.root)], check=True)
    for operator, shapes in ({"gemm": SMALL} if samples is None else samples).items():
        put_sample(someone.root, operator, shapes)
    try:
        yield someone
    finally:
        someone.run("daemon", "stop", expect=None)
        wait_for_end(processes_under(home), 20.0)
        shutil.rmtree(home)


def put_sample(root: Path, operator: str, shapes: str) -> None:
    """Copy the naive kernel of a sample and its workload, with these shapes if there are any."""
    folder = root / operator
    folder.mkdir()
    source = SAMPLES / operator / "opencl"
    (naive,) = source.glob("*_naive.cl")
    shutil.copy(naive, folder)
    text = (source / "workload.py").read_text()
    if shapes:
        begin = text.index("SHAPES = [")
        end = text.index("]\n", begin)
        text = f"{text[:begin]}SHAPES = {shapes}{text[end + 1 :]}"
    (folder / "workload.py").write_text(text)


def told(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a failed verb says, and nothing besides."""
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("klineage: ")
    return line


def processes_under(home: Path) -> list[int]:
    """Processes whose working directory is below `home`: daemons and workers, not this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            cwd = (entry / "cwd").readlink()
        except OSError:
            continue  # it has ended, or is none of ours
        if cwd.is_relative_to(home):
            found.append(int(entry.name))
    return found


def wait_for_end(pids: list[int], within_s: float) -> None:
    """Wait until processes have ended; woken by their ends. Asserts that they do in time."""
    for pid in pids:
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            ended, _, _ = select.select([process], [], [], within_s)
        finally:
            os.close(process)
        assert ended, f"process {pid} still runs after {within_s} s: {_command(pid)!r}"


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""

"""A person's machine for end-to-end tests: a home of its own, a worktree, the installed commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "sample_kernels"
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Person:
    """Someone with a home, a worktree and the two commands."""

    home: Path
    root: Path

    @property
    def environment(self) -> dict[str, str]:
        """What their shell exports; every XDG folder is below their own home."""
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
        return {
            **kept,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.home / "run"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
        }

    def run(self, *arguments: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        """`klineage …` in the worktree; asserts the exit status unless `expect` is None."""
        done = subprocess.run(
            [str(BIN / "klineage"), *arguments],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if expect is not None:
            assert done.returncode == expect, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done

    def json(self, *arguments: str, expect: int | None = 0) -> Any:
        """`klineage … --json`, decoded."""
        return json.loads(self.run(*arguments, "--json", expect=expect).stdout)

    def trust(self) -> None:
        """Answer the one-time question, as the window's prompt does."""
        from daemon.protocol import Trust

        self.call("trust", Trust(True))

    def call(self, method: str, params: object) -> Any:
        """One request to this person's daemon from a process of theirs; the result as JSON."""
        import msgspec

        code = (
            "import sys, msgspec; from pathlib import Path; from daemon.client import call_once;"
            "from daemon.protocol import METHODS;"
            "m = sys.argv[2]; p = msgspec.json.decode(sys.argv[3], type=METHODS[m][0]);"
            "print(msgspec.json.encode(call_once(Path(sys.argv[1]), m, p)).decode())"
        )
        argv = [
            sys.executable,
            "-c",
            code,
            str(self.root),
            method,
            msgspec.json.encode(params).decode(),
        ]
        done = subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)


@pytest.fixture
def person() -> Iterator[Person]:
    """A person whose worktree holds the OpenCL samples; their daemon is stopped afterwards."""
    # Not below pytest's own folder: a socket's path may not be longer than about 100 bytes.
    home = Path(tempfile.mkdtemp(prefix="kl-"))
    (home / "run").mkdir(mode=0o700)
    root = home / "work"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for operator in ("gemm", "row_softmax"):
        shutil.copytree(SAMPLES / operator / "opencl", root / operator)
    someone = Person(home, root)
    yield someone
    someone.run("daemon", "stop", expect=None)
    shutil.rmtree(home)

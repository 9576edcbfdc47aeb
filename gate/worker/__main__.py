"""Start of a worker: `python gate/worker/__main__.py ROLE LANGUAGE FD FD FD FILE_BYTES`.

The three descriptors are the pipes of requests, of replies, and the parent's lifeline.

Runs in the interpreter the user named, where our packages need not exist: this folder loads itself
as the package `_klineage_worker`, so that a `gate.py` in the user's repository stays theirs.
"""

from __future__ import annotations

import fcntl
import importlib
import importlib.util
import os
import resource
import signal
import sys
from pathlib import Path

PACKAGE = "_klineage_worker"


def load_package(folder: Path) -> None:
    """Register this folder as PACKAGE."""
    spec = importlib.util.spec_from_file_location(
        PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)


def die_with_parent(lifeline: int) -> None:
    """Have the kernel end this whole process group when the parent is gone, however it went.

    The parent alone holds the lifeline's other end. Its closing raises the pipe's signal, which
    the kernel delivers to the group even while a launch never returns to Python.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC | os.O_NONBLOCK)


def main() -> None:
    """Limit this process, then answer requests until the parent closes."""
    role, language = sys.argv[1:3]
    requests, replies, lifeline, file_bytes = map(int, sys.argv[3:7])
    die_with_parent(lifeline)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    folder = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != folder]
    load_package(folder)
    serve = importlib.import_module(f"{PACKAGE}.serve")
    serve.serve(role, language, requests, replies)


if __name__ == "__main__":
    main()

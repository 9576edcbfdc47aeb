"""Start of a worker: `python gate/worker/__main__.py ROLE LANGUAGE FILE_BYTES FD FD FD`,
or of a server that forks workers: `… server LANGUAGE FILE_BYTES FD FD`.

A worker's descriptors are the pipes of requests, of replies, and the parent's lifeline; a server's
are its socket and the lifeline.

Runs in the interpreter the user named, where our packages need not exist: this folder loads itself
as the package `_klineage_worker`, so that a `gate.py` in the user's repository stays theirs.
"""

from __future__ import annotations

import importlib
import importlib.util
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


def main() -> None:
    """Limit this process, then answer requests until the parent closes."""
    role, language = sys.argv[1:3]
    file_bytes, *descriptors, lifeline = map(int, sys.argv[3:])
    folder = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != folder]
    load_package(folder)
    held = importlib.import_module(f"{PACKAGE}.lifeline")
    held.die_with_parent(lifeline)
    held.limit_files(file_bytes)
    if role == "server":
        server = importlib.import_module(f"{PACKAGE}.fork_server")
        server.serve(language, file_bytes, *descriptors, lifeline)
    else:
        serve = importlib.import_module(f"{PACKAGE}.serve")
        serve.serve(role, language, *descriptors)


if __name__ == "__main__":
    main()

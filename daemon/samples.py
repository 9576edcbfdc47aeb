"""Scratch copies of the sample kernels: where the demo plays and `make run` opens its window."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from pathlib import Path

from daemon.errors import Unavailable


def samples_folder() -> Path:
    """The installed `sample_kernels`. Raises Unavailable if the installation lacks it."""
    spec = importlib.util.find_spec("sample_kernels")
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise Unavailable(
            "sample_kernels is not installed; reinstall klineage-tui, or run `make run`"
        )
    return Path(places[0])


def scratch_copy(language: str) -> Path:
    """A fresh worktree that holds the samples of one surface language, and nothing of anyone's.

    The copy lies under the temporary folder and belongs to the person who asked for it.
    """
    root = Path(tempfile.mkdtemp(prefix=f"klineage-{language}-samples-"))
    for operator in sorted(samples_folder().iterdir()):
        if (operator / language).is_dir():
            shutil.copytree(
                operator / language,
                root / operator.name,
                ignore=shutil.ignore_patterns("__pycache__", "*.pyc"),
            )
    # A configuration file marks the root, so a repository further up is not taken for it.
    (root / "klineage.toml").write_text("# A scratch copy of the klineage-tui samples.\n")
    return root

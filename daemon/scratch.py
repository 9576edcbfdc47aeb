"""The gate's scratch folder: staged files and workers' homes, below the temporary folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daemon.worktree import worktree_id


@contextmanager
def scratch_folder(root: Path) -> Iterator[Path]:
    """A fresh private folder, removed at the end; what killed daemons of `root` left goes first.

    The caller holds the Instance of the worktree, so no living daemon uses what is found.
    """
    prefix = f"klineage-gate-{worktree_id(root)}-"
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        # One that is another user's, or a link, is refused by the system or by rmtree.
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix) as folder:
        yield Path(folder)

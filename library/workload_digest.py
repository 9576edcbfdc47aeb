"""What of a workload file judges a kernel, as a digest."""

from __future__ import annotations

import ast
import hashlib
import warnings
from functools import lru_cache

from gate.values.workload import Workload

KEPT = 64
"""Workloads remembered: a scan meets the same one beside many kernels."""


@lru_cache(KEPT)
def judging_digest(workload: Workload) -> str:
    """SHA-256 of the file's syntax without its launch functions, 64 hex digits.

    A launch belongs to the closure of the kernel it launches, so editing one voids no verdict on
    the kernels beside it; neither do comments and layout. A file that does not parse stands for
    itself.
    """
    try:
        with warnings.catch_warnings():
            # The user's own invalid escapes are theirs to hear of from Python, not from our log.
            warnings.simplefilter("ignore")
            body = ast.parse(workload.data).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return workload.digest
    kept = "\n".join(ast.dump(node) for node in body if not _is_launch(node))
    return hashlib.sha256(kept.encode("utf-8", "surrogatepass")).hexdigest()


def _is_launch(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and (
        node.name == "launch" or node.name.startswith("launch_")
    )

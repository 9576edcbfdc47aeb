"""What a candidate may edit: kernels, and of a workload file the body of the launch function.

The rest of a workload file says what is right, and is never a kernel's to change.
"""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

from gate.errors import StaleCandidate
from gate.values.candidate import Candidate
from gate.values.kernel import Kernel
from gate.values.workload import Workload


def forbidden_edit(candidate: Candidate, baseline: Kernel, workload: Workload) -> str:
    """Why a candidate may not be run at all; empty if it may.

    Raises StaleCandidate if an edit was made from other bytes than the baseline has.
    """
    known = {file.path: file.digest for file in baseline.files}
    known[workload.path] = workload.digest
    for edit in candidate.edits:
        path = PurePosixPath(edit.path)
        if path.is_absolute() or ".." in path.parts:
            return f"{edit.path} lies outside the worktree"
        if edit.path in known and edit.before_digest != known[edit.path]:
            raise StaleCandidate(f"{edit.path} changed since the candidate was made; make it anew")
        if edit.path == workload.path:
            symbol = baseline.launch.symbol if baseline.launch is not None else ""
            if not same_but_for(workload.data, edit.after, symbol):
                allowed = f"only the body of {symbol} may change" if symbol else "none may change"
                return f"{edit.path}: the workload file is edited; {allowed}"
    return ""


def same_but_for(before: bytes, after: bytes, symbol: str) -> bool:
    """Whether two Python files differ at most in the body of the top-level function `symbol`."""
    try:
        trees = [ast.parse(before), ast.parse(after)]
    except (SyntaxError, ValueError):
        return before == after
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == symbol:
                node.body = []
    return ast.dump(trees[0]) == ast.dump(trees[1])

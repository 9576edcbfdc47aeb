"""The question asked once for a worktree: what would be run, and from where."""

from __future__ import annotations

from klineage_tui.state import QueueState
from klineage_tui.units import count

_NAMED = 6


def trust_text(state: QueueState) -> str:
    """What is run if the person says yes, and what is not run if they say no."""
    root = state.status.root if state.status else ""
    kernels = state.kernels()
    workloads = list(dict.fromkeys(k.workload for k in kernels if k.workload))
    named = [f"  {path}" for path in workloads[:_NAMED]]
    if len(workloads) > _NAMED:
        named.append(f"  … and {len(workloads) - _NAMED} more")
    interpreter = state.hello.interpreter if state.hello else "the configured interpreter"
    return "\n".join(
        [
            f"Measuring means running code of {root}:",
            f"{count(len(kernels), 'kernel')}, compiled and launched on this machine,",
            f"and {count(len(workloads), 'workload file')}, executed by {interpreter}",
            *named,
            "",
            "Without trust, states and preconditions are shown and nothing is run.",
            "The answer is kept for this worktree; the trust action asks again.",
        ]
    )

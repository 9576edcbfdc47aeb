"""The oracle as the parent sees it: makes cases, and says whether outputs are right."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gate.cases import Case, CasePlan
from gate.messages import CaseMade, Controls, Judgement, Loaded, R
from gate.pool import WorkerPool
from gate.values.workload import Workload
from gate.worker_process import WorkerProcess


class Oracle:
    """One workload file in a worker that no kernel shares."""

    def __init__(self, pool: WorkerPool, root: Path, scratch: Path, exchange: Path) -> None:
        self._pool = pool
        self._root = root
        self._scratch = scratch
        self._exchange = exchange
        self._worker: WorkerProcess | None = None
        self._digest = ""
        self.loaded: Loaded | None = None
        self.loads = 0
        """How often a worker took a workload on. It knows no case of before."""

    def load(
        self, workload: Workload, language: str, deadline_s: float, stop: threading.Event
    ) -> Loaded:
        """Execute the workload's bytes unless they already are, in a worker of that language.

        Raises WorkerFailure, EnvironmentLacks, Cancelled.
        """
        alive = self._worker is not None and self._worker.alive
        if alive and self._digest == workload.digest and self.loaded is not None:
            return self.loaded
        self.close()
        self._worker = self._pool.oracle(language, stop)
        data = self._scratch / f"workload-{workload.digest[:16]}.py"
        data.write_bytes(workload.data)
        params = {
            "path": str(self._root / workload.path),
            "data": str(data),
            "root": str(self._root),
        }
        self.loaded = self._worker.call("load", params, Loaded, deadline_s, stop)
        self._digest = workload.digest
        self.loads += 1
        return self.loaded

    def case(
        self,
        plan: CasePlan,
        slot: int,
        keep: Sequence[int],
        deadline_s: float,
        stop: threading.Event,
    ) -> Case:
        """Make the inputs of a case, and work out what is right.

        Cases in the slots `keep` can still be judged afterwards; others are forgotten.
        """
        params = {
            "axes": dict(plan.axes),
            "seed": plan.seed,
            "distribution": plan.distribution,
            "slot": slot,
            "keep": list(keep),
            "folder": str(self._exchange / "inputs" / str(slot)),
        }
        return Case(plan, slot, self._ask("case", params, CaseMade, deadline_s, stop))

    def controls(self, case: Case, deadline_s: float, stop: threading.Event) -> Controls:
        """Which trivial outputs the comparison of a case accepts."""
        return self._ask("controls", {"slot": case.slot}, Controls, deadline_s, stop)

    def judge(
        self,
        case: Case,
        outputs: Sequence[Mapping[str, Any]],
        original: bool,
        deadline_s: float,
        stop: threading.Event,
    ) -> Judgement:
        """Compare outputs of a case; the original's set the error budget."""
        params = {"slot": case.slot, "outputs": list(outputs), "original": original}
        return self._ask("judge", params, Judgement, deadline_s, stop)

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._pool.end(self._worker)
        self._worker = None
        self.loaded = None

    def _ask(
        self,
        method: str,
        params: Mapping[str, Any],
        reply: type[R],
        deadline_s: float,
        stop: threading.Event,
    ) -> R:
        if self._worker is None:
            raise RuntimeError("load comes first")
        return self._worker.call(method, params, reply, deadline_s, stop)

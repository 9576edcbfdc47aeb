"""Process pairs: a worker of each arm, made ready together before any of them is timed.

A pair that is ready sleeps until its turn. So what takes long and disturbs (processes, contexts,
builds, inputs, the reference) happens for all pairs at once, and then one pair after the other is
timed with everything else of ours idle.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from gate.arm import Arm
from gate.cases import Case, CasePlan
from gate.conclusion import Concluded, of_kernel
from gate.evaluation import Evaluation
from gate.messages import Loaded, Outputs, Prepared, Ran
from gate.values.verdict import Outcome, Status
from gate.values.workload import Axes, shape_label
from gate.worker_process import WorkerFailure


@dataclass(slots=True)
class Pair:
    """A baseline and a candidate in processes of their own."""

    number: int
    """From 1, as told to people."""
    baseline: Arm
    candidate: Arm
    case: Case | None = None
    """Whose inputs both hold."""

    @property
    def arms(self) -> tuple[Arm, Arm]:
        """Baseline, candidate."""
        return self.baseline, self.candidate

    def ready_case(self) -> Case:
        """The case both are ready for."""
        if self.case is None:
            raise RuntimeError("prepare comes first")
        return self.case

    def close(self) -> None:
        """End both workers."""
        for arm in self.arms:
            arm.close()


class Readiness:
    """Makes pairs ready for a shape, and looks at what their timed launches left."""

    def __init__(self, evaluation: Evaluation, loaded: Loaded, rng: random.Random) -> None:
        self._evaluation = evaluation
        self._loaded = loaded
        self._rng = rng
        self._at_once = max(2, len(os.sched_getaffinity(0)))

    def fresh(self, number: int) -> Pair:
        """A pair whose processes are yet to be forked."""
        evaluation = self._evaluation
        return Pair(
            number,
            evaluation.baseline.fresh(f"baseline-{number}"),
            evaluation.candidate.fresh(f"candidate-{number}"),
        )

    def prepare(self, pairs: Sequence[Pair], axes: Axes) -> None:
        """New inputs in new buffers; every arm is right on them before any is timed.

        Raises Concluded.
        """
        evaluation = self._evaluation
        trying: list[tuple[Pair, Arm, Future[tuple[Prepared, Ran]]]] = []
        with _threads(self._at_once) as threads:
            for slot, pair in enumerate(pairs):
                plan = CasePlan(axes, evaluation.findings.new_seed())
                evaluation.progress(f"preparing pair {pair.number}: {plan.label}")
                pair.case = case = evaluation.make_case(plan, slot, keep=range(slot))
                # In random order, for what comes first gets other memory.
                attempts = {
                    arm.name: threads.submit(evaluation.prepared, arm, case, self._loaded)
                    for arm in self._rng.sample(pair.arms, 2)
                }
                # The original is judged first: its error is the candidate's budget.
                trying += [(pair, arm, attempts[arm.name]) for arm in pair.arms]
            for pair, arm, attempt in trying:
                self._accept(pair.ready_case(), arm, attempt)

    def check_timed(self, pairs: Sequence[Pair], axes: Axes) -> None:
        """What the timed launches left must be right too. Raises Concluded."""
        stop = self._evaluation.stop
        with _threads(self._at_once) as threads:
            left = [
                (pair, arm, threads.submit(arm.outputs, stop))
                for pair in pairs
                for arm in pair.arms
            ]
            for pair, arm, outputs in left:
                self._accept_timed(pair.ready_case(), arm, outputs, shape_label(axes))

    def _accept(self, case: Case, arm: Arm, attempt: Future[tuple[Prepared, Ran]]) -> None:
        evaluation, label = self._evaluation, case.plan.label
        where = f"check before timing at {label}"
        try:
            _, ran = attempt.result()
        except WorkerFailure as failure:
            raise failed(evaluation, arm, failure, "check before timing", label) from failure
        if arm.name == evaluation.candidate.name:
            evaluation.accept(case, ran, where)
        elif not all(evaluation.judge(case, each, original=True).passed for each in ran.runs):
            raise Concluded(Status.UNGATEABLE, f"the kernel as it stands is wrong: {where}")

    def _accept_timed(self, case: Case, arm: Arm, attempt: Future[Outputs], label: str) -> None:
        evaluation = self._evaluation
        where = f"check after timing at {label}"
        try:
            left = attempt.result()
        except WorkerFailure as failure:
            raise failed(evaluation, arm, failure, "check after timing", label) from failure
        original = arm.name == evaluation.baseline.name
        judgement = evaluation.judge(case, left.outputs, original)
        if not judgement.passed or left.changed_inputs:
            why = judgement.message or f"wrote to input {', '.join(left.changed_inputs)}"
            evaluation.findings.check("timed outputs", Outcome.FAILED, f"{where}: {why}")
            ungateable = original and not evaluation.as_it_stands
            status = Status.UNGATEABLE if ungateable else Status.SUSPICIOUS
            raise Concluded(status, f"{where}: {arm.name}: {why}")


@contextmanager
def _threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads whose unfinished work is waited for, and whose work not begun is dropped."""
    threads = ThreadPoolExecutor(count, "pair")
    try:
        yield threads
    finally:
        threads.shutdown(cancel_futures=True)


def failed(
    evaluation: Evaluation, arm: Arm, failure: WorkerFailure, stage: str, label: str
) -> Concluded:
    """What an arm's failure in a stage concludes."""
    conclusion = of_kernel(failure, stage, label)
    if arm.name == evaluation.candidate.name:
        return conclusion
    return Concluded(
        Status.UNGATEABLE, f"the kernel as it stands, {conclusion.message}", conclusion.log
    )

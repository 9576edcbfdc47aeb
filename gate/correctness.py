"""Correctness: both arms on every case of the tier, a step at a time in three processes at once.

While the arms try one case, the oracle judges what they made of the case before and makes the next.
What is asked, and in which order it counts, is as if one thing were done after the other: the
original decides whether a case lies within the contract, and only then the candidate's answer is
looked at.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from gate.cases import Case, CasePlan, confirm_cases, interpreted_cases, screen_cases
from gate.conclusion import Concluded, NotRun, of_kernel, of_workload
from gate.evaluation import Evaluation
from gate.messages import Loaded, Prepared, Ran
from gate.values.verdict import Outcome, Status, Tier
from gate.values.workload import shape_label
from gate.worker_process import WorkerFailure

Tried = Future[tuple[Prepared, Ran]]

SLOTS = 2
"""A case that is tried, and the one after it that is made meanwhile."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A case that both arms are trying, or have tried."""

    case: Case
    original: Tried
    candidate: Tried | None
    """None if the kernel is gated as it stands: then it is the original."""

    def finish(self) -> None:
        """Wait until neither arm is at it any more."""
        wait([each for each in (self.original, self.candidate) if each is not None])


class Correctness:
    """Tries the cases of one evaluation."""

    def __init__(self, evaluation: Evaluation, loaded: Loaded, can_time: bool) -> None:
        self._evaluation = evaluation
        self._loaded = loaded
        self._plans = self._planned(can_time)
        self._passed = 0
        self._outside: list[str] = []
        self._not_run: list[str] = []

    def run(self) -> None:
        """Raises Concluded unless the candidate is right wherever the original is."""
        begun = time.monotonic()
        before: Trial | None = None
        case = self._made(0, None)
        # Leaving waits for the arms, so that nothing is asked of them twice at once.
        with ThreadPoolExecutor(2, "arm") as threads:
            for number in range(len(self._plans)):
                trial = self._begun(number, case, threads) if case is not None else None
                if before is not None:
                    self._settle(before)
                case = self._made(number + 1, trial)
                if trial is not None:
                    trial.finish()
                before = trial
            if before is not None:
                self._settle(before)
        if not self._passed:
            why = self._not_run[0] if self._not_run else "no case could be run"
            raise Concluded(Status.UNMEASURED, why)
        self._note(time.monotonic() - begun)

    def _planned(self, can_time: bool) -> list[CasePlan]:
        evaluation, shapes = self._evaluation, self._loaded.shapes
        new_seed = evaluation.findings.new_seed
        if not can_time:
            return interpreted_cases(shapes, [new_seed() for _ in range(2)])
        if evaluation.tier is Tier.SCREEN:
            return screen_cases(shapes, new_seed())
        return confirm_cases(shapes, [new_seed() for _ in range(evaluation.settings.confirm.seeds)])

    # ---- making and trying ------------------------------------------------------------------

    def _made(self, number: int, trial: Trial | None) -> Case | None:
        """The case of a plan; None past the last, and for one the workload does not take.

        `trial` is under way, and still to be judged.
        """
        if number == len(self._plans):
            return None
        plan, slot = self._plans[number], number % SLOTS
        keep = [trial.case.slot] if trial is not None else []
        if plan.promised:
            case = self._evaluation.make_case(plan, slot, keep)
            return case if case.made.available else None
        made = self._made_if_taken(plan, slot, keep, trial)
        return made if made is not None and made.made.available else None

    def _made_if_taken(
        self, plan: CasePlan, slot: int, keep: list[int], trial: Trial | None
    ) -> Case | None:
        evaluation = self._evaluation
        limit_s = evaluation.at_most(evaluation.deadlines.reference_s)
        loads = evaluation.oracle.loads
        try:
            return evaluation.oracle.case(plan, slot, keep, limit_s, evaluation.stop)
        except WorkerFailure as failure:
            refusal = of_workload(failure, evaluation.workload.path).message
        self._outside.append(f"{plan.label} ({refusal})")
        evaluation.load()
        if trial is not None and evaluation.oracle.loads != loads:
            # The oracle died of it, and with it what it knew of the case under way.
            trial.finish()
            evaluation.make_case(trial.case.plan, trial.case.slot)
        return None

    def _begun(self, number: int, case: Case, threads: ThreadPoolExecutor) -> Trial:
        evaluation, plan = self._evaluation, case.plan
        evaluation.progress(f"correctness {number + 1} of {len(self._plans)}: {plan.label}")
        if evaluation.as_it_stands:
            alone = threads.submit(evaluation.prepared, evaluation.candidate, case, self._loaded)
            return Trial(case, alone, None)
        new_shape = shape_label(plan.axes) not in evaluation.baseline.built_for
        original = threads.submit(evaluation.prepared, evaluation.baseline, case, self._loaded)
        after = original if new_shape else None
        return Trial(case, original, threads.submit(self._try_candidate, case, after))

    def _try_candidate(self, case: Case, after: Tried | None) -> tuple[Prepared, Ran]:
        """At a new shape after the original, whose build says how long this one's may take."""
        if after is not None:
            after.result()
        evaluation = self._evaluation
        return evaluation.prepared(evaluation.candidate, case, self._loaded)

    # ---- judging ----------------------------------------------------------------------------

    def _settle(self, trial: Trial) -> None:
        """Judge a trial that is over. Raises Concluded."""
        plan = trial.case.plan
        try:
            complaint = self._complaint(trial)
            if complaint:
                self._outside.append(f"{plan.label} ({complaint})")
                return
            if trial.candidate is not None:
                self._judge_candidate(trial.case, trial.original.result(), trial.candidate)
        except NotRun as reason:
            self._not_run.append(reason.message)
            return
        self._passed += 1

    def _complaint(self, trial: Trial) -> str:
        """Why the case lies outside the original's contract, empty if it does not.

        A kernel gated as it stands has no other original. Raises Concluded.
        """
        evaluation, case = self._evaluation, trial.case
        plan, alone = case.plan, evaluation.as_it_stands
        try:
            _, ran = trial.original.result()
        except WorkerFailure as failure:
            conclusion = of_kernel(failure, "correctness", plan.label)
            if not plan.promised:
                return conclusion.message
            if alone or isinstance(conclusion, NotRun):
                raise conclusion from failure
            raise Concluded(
                Status.UNGATEABLE, f"the kernel as it stands: {conclusion.message}", conclusion.log
            ) from failure
        judgements = [evaluation.judge(case, outputs, original=True) for outputs in ran.runs]
        complaint = next((each.message for each in judgements if not each.passed), "")
        if not complaint and ran.changed_inputs:
            complaint = f"writes to its input {', '.join(ran.changed_inputs)}; see MUTATES"
        if complaint and plan.promised:
            status = Status.WRONG if alone else Status.UNGATEABLE
            raise Concluded(status, f"the kernel as it stands at {plan.label}: {complaint}")
        if not complaint and not self._passed:
            self._check_controls(case)
        return complaint

    def _judge_candidate(self, case: Case, original: tuple[Prepared, Ran], tried: Tried) -> None:
        evaluation = self._evaluation
        try:
            built, ran = tried.result()
        except WorkerFailure as failure:
            conclusion = of_kernel(failure, "correctness", case.plan.label)
            if not isinstance(conclusion, NotRun):
                name = "compile" if conclusion.status is Status.COMPILE_ERROR else "correctness"
                evaluation.findings.check(name, Outcome.FAILED, conclusion.message)
            raise conclusion from failure
        evaluation.accept(case, ran, f"correctness at {case.plan.label}")
        before, original_ran = original
        evaluation.identical &= built.digest == before.digest and ran.launch == original_ran.launch

    def _check_controls(self, case: Case) -> None:
        evaluation, label = self._evaluation, case.plan.label
        limit_s = evaluation.at_most(evaluation.deadlines.reference_s)
        try:
            fooled = evaluation.oracle.controls(case, limit_s, evaluation.stop).fooled_by
        except WorkerFailure as failure:
            raise of_workload(failure, evaluation.workload.path) from failure
        if fooled:
            names = " and ".join(fooled)
            evaluation.findings.check("controls", Outcome.FAILED, f"accepted at {label}: {names}")
            raise Concluded(
                Status.UNGATEABLE,
                f"{evaluation.workload.path} cannot tell right from wrong at {label}: "
                f"{names} would pass; tighten TOLERANCE or check_outputs",
            )
        evaluation.findings.check("controls", Outcome.PASSED, "zeros and input copies are refused")

    def _note(self, took_s: float) -> None:
        evaluation = self._evaluation
        note, candidate = evaluation.findings.check, evaluation.candidate
        slowest_s = max(evaluation.baseline.slowest_build_s, candidate.slowest_build_s)
        note("compile", Outcome.PASSED, f"built for every case, the slowest in {slowest_s:.2f} s")
        cases = "1 case" if self._passed == 1 else f"{self._passed} cases"
        detail = f"{cases} against a float64 reference where it has one"
        if self._outside:
            detail += (
                f"; {len(self._outside)} outside the original's contract, such as "
                f"{self._outside[0]}"
            )
        if self._not_run:
            detail += f"; {len(self._not_run)} could not be run here: {self._not_run[0]}"
        note("correctness", Outcome.PASSED, f"{detail}; {took_s:.1f} s")
        note("poison", Outcome.PASSED, "outputs hold NaN bits before every launch")
        note("inputs unchanged", Outcome.PASSED, "compared after every launch")
        if candidate.opened is not None and candidate.opened.trust == "harness-launched":
            note("red zones", Outcome.PASSED, "64 KiB on both sides of every buffer untouched")
        else:
            note("red zones", Outcome.NOT_RUN, "the kernel's own host code allocates")

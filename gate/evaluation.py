"""One evaluation: static checks, build, correctness, and then time. Its result is a verdict."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from gate.arm import Arm
from gate.cases import CasePlan, confirm_cases, interpreted_cases, screen_cases
from gate.conclusion import Concluded, NotRun, of_kernel, of_workload
from gate.messages import CaseMade, Judgement, Loaded, Prepared, Ran
from gate.oracle import Oracle
from gate.settings import DeadlineSettings, GateSettings
from gate.values.artifact import BuildArtifact
from gate.values.verdict import Check, Outcome, Status, Tier, Timing, Trust
from gate.values.workload import Axes, Workload
from gate.worker_process import WorkerFailure

T = TypeVar("T")

BUILD_FACTOR = 3.0
RUN_FACTOR = 20.0
"""A candidate may take this many times what the original took, beyond the settings' floors."""


@dataclass(slots=True)
class Findings:
    """What an evaluation has found so far; the verdict is made of it."""

    status: Status = Status.UNMEASURED
    message: str = ""
    log: str = ""
    checks: list[Check] = field(default_factory=list)
    timings: tuple[Timing, ...] = ()
    seeds: list[int] = field(default_factory=list)
    artifacts: tuple[BuildArtifact | None, BuildArtifact | None] = (None, None)
    """The baseline's and the candidate's."""
    trust: Trust = Trust.HARNESS

    def check(self, name: str, outcome: Outcome, detail: str) -> None:
        """Note what was checked, or was not and why."""
        self.checks.append(Check(name, outcome, detail))

    def new_seed(self) -> int:
        """A secret seed; it is told once the verdict stands."""
        seed = secrets.randbelow(2**31)
        self.seeds.append(seed)
        return seed


@dataclass(slots=True)
class Evaluation:
    """A baseline and a candidate on one workload, up to the point where they may be timed."""

    workload: Workload
    oracle: Oracle
    baseline: Arm
    candidate: Arm
    as_it_stands: bool
    """The candidate has no edits: the kernel itself is being gated."""
    tier: Tier
    settings: GateSettings
    until: float
    """time.monotonic() at which the budget is used up."""
    stop: threading.Event
    progress: Callable[[str], None]
    findings: Findings = field(default_factory=Findings)
    identical: bool = True
    """So far both arms' binaries and launches are the same."""
    _original_ran: Ran | None = None

    @property
    def deadlines(self) -> DeadlineSettings:
        """The settings' deadlines."""
        return self.settings.deadlines

    def load(self) -> Loaded:
        """Execute the workload. Raises Concluded."""
        self.progress("loading the workload")
        try:
            return self.oracle.load(self.workload, self.at_most(self.deadlines.start_s), self.stop)
        except WorkerFailure as failure:
            raise of_workload(failure, self.workload.path) from failure

    def correctness(self, loaded: Loaded) -> None:
        """Try both arms on every case of the tier. Raises Concluded unless the candidate is right."""
        can_time = self._open_both()
        plans = self._plans(loaded, can_time)
        done = 0
        outside: list[str] = []
        not_run: list[str] = []
        for number, plan in enumerate(plans, 1):
            self.progress(f"correctness {number} of {len(plans)}: {plan.label}")
            made = self._make_if_promised(plan)
            if isinstance(made, str):
                outside.append(f"{plan.label} ({made})")
                continue
            if not made.available:
                continue
            try:
                complaint = self._original(plan, made, loaded, check_controls=done == 0)
                if complaint:
                    outside.append(f"{plan.label} ({complaint})")
                    continue
                self._candidate(plan, made, loaded)
            except NotRun as reason:
                not_run.append(reason.message)
                continue
            done += 1
        if not done:
            raise Concluded(Status.UNMEASURED, not_run[0] if not_run else "no case could be run")
        self._note_correctness(done, outside, not_run)

    def make_case(self, plan: CasePlan) -> CaseMade:
        """Inputs and what is right for them. Raises Concluded."""
        try:
            return self.oracle.case(plan, self.at_most(self.deadlines.reference_s), self.stop)
        except WorkerFailure as failure:
            raise of_workload(failure, self.workload.path) from failure

    def _make_if_promised(self, plan: CasePlan) -> CaseMade | str:
        """The case; or, for one that is not promised, why the workload does not take it."""
        if plan.promised:
            return self.make_case(plan)
        limit_s = self.at_most(self.deadlines.reference_s)
        try:
            return self.oracle.case(plan, limit_s, self.stop)
        except WorkerFailure as failure:
            refusal = of_workload(failure, self.workload.path).message
        # Its worker may have died of it.
        self.load()
        return refusal

    def prepared(
        self, arm: Arm, axes: Axes, made: CaseMade, loaded: Loaded
    ) -> tuple[Prepared, Ran]:
        """Build and launch once. Raises WorkerFailure."""
        deadlines = self.deadlines
        build_s = run_s = deadlines.original_s
        if arm is self.candidate and not self.as_it_stands:
            build_s = max(deadlines.compile_floor_s, BUILD_FACTOR * self.baseline.slowest_build_s)
            run_s = max(deadlines.run_floor_s, RUN_FACTOR * self.baseline.slowest_run_s)
        built = arm.prepare(axes, made, loaded.mutates, self.at_most(build_s), self.stop)
        return built, arm.run(self.at_most(run_s), self.stop)

    def judge(self, outputs: Sequence[dict[str, object]], original: bool) -> Judgement:
        """Compare outputs of the present case. Raises Concluded if that cannot be done."""
        limit_s = self.at_most(self.deadlines.reference_s)
        try:
            return self.oracle.judge(outputs, original, limit_s, self.stop)
        except WorkerFailure as failure:
            raise of_workload(failure, self.workload.path) from failure

    def accept(self, ran: Ran, where: str) -> None:
        """Raises Concluded unless a candidate's outputs are right and its inputs unchanged."""
        if ran.changed_inputs:
            self.findings.check("inputs unchanged", Outcome.FAILED, ", ".join(ran.changed_inputs))
            names = ", ".join(ran.changed_inputs)
            raise Concluded(Status.WRONG, f"{where}: the kernel wrote to its input {names}")
        for outputs in ran.runs:
            judgement = self.judge(outputs, original=False)
            if not judgement.passed:
                self.findings.check("correctness", Outcome.FAILED, f"{where}: {judgement.message}")
                raise Concluded(Status.WRONG, f"{where}: {judgement.message}")

    def _open_both(self) -> bool:
        """Start the workers; whether launches can be timed. Raises Concluded, EnvironmentLacks."""
        self.progress("starting workers")
        opened = []
        for arm in self._arms():
            arm.start()
        for arm in self._arms():
            try:
                opened.append(arm.open(self.stop))
            except WorkerFailure as failure:
                raise of_kernel(failure, "start", f"the {arm.name}") from failure
        return all(each.can_time for each in opened)

    def _arms(self) -> list[Arm]:
        return [self.candidate] if self.as_it_stands else [self.baseline, self.candidate]

    def _plans(self, loaded: Loaded, can_time: bool) -> list[CasePlan]:
        if not can_time:
            seeds = [self.findings.new_seed() for _ in range(2)]
            return interpreted_cases(loaded.shapes, seeds)
        if self.tier is Tier.SCREEN:
            return screen_cases(loaded.shapes, self.findings.new_seed())
        seeds = [self.findings.new_seed() for _ in range(self.settings.confirm.seeds)]
        return confirm_cases(loaded.shapes, seeds)

    def _original(
        self, plan: CasePlan, made: CaseMade, loaded: Loaded, check_controls: bool
    ) -> str:
        """Run the original; why the case lies outside its contract, empty if it does not.

        A kernel gated as it stands has no other original. Raises Concluded.
        """
        arm = self.candidate if self.as_it_stands else self.baseline
        try:
            _, ran = self.prepared(arm, plan.axes, made, loaded)
            judgements = [self.judge(outputs, original=True) for outputs in ran.runs]
        except WorkerFailure as failure:
            conclusion = of_kernel(failure, "correctness", plan.label)
            if not plan.promised:
                return conclusion.message
            if self.as_it_stands or isinstance(conclusion, NotRun):
                raise conclusion from failure
            raise Concluded(
                Status.UNGATEABLE, f"the kernel as it stands: {conclusion.message}", conclusion.log
            ) from failure
        complaint = next((each.message for each in judgements if not each.passed), "")
        if not complaint and ran.changed_inputs:
            complaint = f"writes to its input {', '.join(ran.changed_inputs)}; see MUTATES"
        if complaint and plan.promised:
            status = Status.WRONG if self.as_it_stands else Status.UNGATEABLE
            raise Concluded(status, f"the kernel as it stands at {plan.label}: {complaint}")
        if check_controls and not complaint:
            self._controls(plan)
        self._original_ran = ran
        return complaint

    def _candidate(self, plan: CasePlan, made: CaseMade, loaded: Loaded) -> None:
        if self.as_it_stands:
            return
        try:
            built, ran = self.prepared(self.candidate, plan.axes, made, loaded)
        except WorkerFailure as failure:
            conclusion = of_kernel(failure, "correctness", plan.label)
            if not isinstance(conclusion, NotRun):
                name = "compile" if conclusion.status is Status.COMPILE_ERROR else "correctness"
                self.findings.check(name, Outcome.FAILED, conclusion.message)
            raise conclusion from failure
        self.accept(ran, f"correctness at {plan.label}")
        before = self.baseline.prepared
        assert before is not None
        assert self._original_ran is not None
        self.identical &= built.digest == before.digest and ran.launch == self._original_ran.launch

    def _controls(self, plan: CasePlan) -> None:
        try:
            limit_s = self.at_most(self.deadlines.reference_s)
            fooled = self.oracle.controls(limit_s, self.stop).fooled_by
        except WorkerFailure as failure:
            raise of_workload(failure, self.workload.path) from failure
        if fooled:
            names = " and ".join(fooled)
            self.findings.check("controls", Outcome.FAILED, f"accepted at {plan.label}: {names}")
            raise Concluded(
                Status.UNGATEABLE,
                f"{self.workload.path} cannot tell right from wrong at {plan.label}: "
                f"{names} would pass; tighten TOLERANCE or check_outputs",
            )
        self.findings.check("controls", Outcome.PASSED, "zeros and input copies are refused")

    def _note_correctness(self, done: int, outside: Sequence[str], not_run: Sequence[str]) -> None:
        note = self.findings.check
        note("compile", Outcome.PASSED, "built for every case")
        detail = f"{done} cases against a float64 reference where it has one"
        if outside:
            detail += f"; {len(outside)} outside the original's contract, such as {outside[0]}"
        if not_run:
            detail += f"; {len(not_run)} could not be run here: {not_run[0]}"
        note("correctness", Outcome.PASSED, detail)
        note("poison", Outcome.PASSED, "outputs hold NaN bits before every launch")
        note("inputs unchanged", Outcome.PASSED, "compared after every launch")
        if self.candidate.opened is not None and self.candidate.opened.trust == "harness-launched":
            note("red zones", Outcome.PASSED, "64 KiB on both sides of every buffer untouched")
        else:
            note("red zones", Outcome.NOT_RUN, "the kernel's own host code allocates")

    def at_most(self, limit_s: float) -> float:
        """`limit_s`, while the budget lasts: it ends an evaluation between steps, not within one.

        Raises Concluded once the budget is used up.
        """
        if time.monotonic() >= self.until:
            raise Concluded(Status.UNMEASURED, "the budget was used up before an answer")
        return limit_s

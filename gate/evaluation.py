"""One evaluation: what is evaluated, within which limits, and what was found. Its result is a
verdict."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gate.arm import Arm
from gate.cases import Case, CasePlan
from gate.conclusion import Concluded, of_kernel, of_workload
from gate.messages import Judgement, Loaded, Prepared, Ran
from gate.oracle import Oracle
from gate.settings import DeadlineSettings, GateSettings
from gate.values.artifact import BuildArtifact
from gate.values.platform import Platform
from gate.values.verdict import Check, Outcome, Status, Tier, Timing, Trust
from gate.values.workload import Workload
from gate.worker_process import WorkerFailure

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
    """A baseline and a candidate on one workload."""

    workload: Workload
    platform: Platform
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
    largest_case_bytes: int = 0
    """Inputs and outputs of the largest case so far."""

    @property
    def deadlines(self) -> DeadlineSettings:
        """The settings' deadlines."""
        return self.settings.deadlines

    def load(self) -> Loaded:
        """Execute the workload. Raises Concluded."""
        language, limit_s = self.candidate.kernel.language, self.at_most(self.deadlines.start_s)
        try:
            return self.oracle.load(self.workload, language, limit_s, self.stop)
        except WorkerFailure as failure:
            raise of_workload(failure, self.workload.path) from failure

    def make_case(self, plan: CasePlan, slot: int = 0, keep: Sequence[int] = ()) -> Case:
        """Inputs, and what is right for them. Raises Concluded."""
        limit_s = self.at_most(self.deadlines.reference_s)
        try:
            case = self.oracle.case(plan, slot, keep, limit_s, self.stop)
        except WorkerFailure as failure:
            raise of_workload(failure, self.workload.path) from failure
        self.largest_case_bytes = max(self.largest_case_bytes, case.size_bytes)
        return case

    def prepared(self, arm: Arm, case: Case, loaded: Loaded) -> tuple[Prepared, Ran]:
        """Build and launch once. Raises WorkerFailure."""
        deadlines = self.deadlines
        build_s = run_s = deadlines.original_s
        if arm.name == self.candidate.name and not self.as_it_stands:
            build_s = max(deadlines.compile_floor_s, BUILD_FACTOR * self.baseline.slowest_build_s)
            run_s = max(deadlines.run_floor_s, RUN_FACTOR * self.baseline.slowest_run_s)
        built = arm.prepare(case, loaded.mutates, self.at_most(build_s), self.stop)
        return built, arm.run(case.slot, self.at_most(run_s), self.stop)

    def judge(self, case: Case, outputs: Sequence[dict[str, object]], original: bool) -> Judgement:
        """Compare outputs of a case. Raises Concluded if that cannot be done."""
        limit_s = self.at_most(self.deadlines.reference_s)
        try:
            return self.oracle.judge(case, outputs, original, limit_s, self.stop)
        except WorkerFailure as failure:
            raise of_workload(failure, self.workload.path) from failure

    def accept(self, case: Case, ran: Ran, where: str) -> None:
        """Raises Concluded unless a candidate's outputs are right and its inputs unchanged."""
        if ran.changed_inputs:
            self.findings.check("inputs unchanged", Outcome.FAILED, ", ".join(ran.changed_inputs))
            names = ", ".join(ran.changed_inputs)
            raise Concluded(Status.WRONG, f"{where}: the kernel wrote to its input {names}")
        for outputs in ran.runs:
            judgement = self.judge(case, outputs, original=False)
            if not judgement.passed:
                self.findings.check("correctness", Outcome.FAILED, f"{where}: {judgement.message}")
                raise Concluded(Status.WRONG, f"{where}: {judgement.message}")

    def open_both(self) -> bool:
        """Start the workers; whether launches can be timed. Raises Concluded, EnvironmentLacks."""
        arms = [self.candidate] if self.as_it_stands else [self.baseline, self.candidate]
        opened = []
        for arm in arms:
            arm.start(self.stop)
        for arm in arms:
            try:
                opened.append(arm.open(self.stop))
            except WorkerFailure as failure:
                raise of_kernel(failure, "start", f"the {arm.name}") from failure
        return all(each.can_time for each in opened)

    def at_most(self, limit_s: float) -> float:
        """`limit_s`, while the budget lasts: it ends an evaluation between steps, not within one.

        Raises Concluded once the budget is used up.
        """
        if time.monotonic() >= self.until:
            raise Concluded(Status.UNMEASURED, "the budget was used up before an answer")
        return limit_s

"""Gate: does a candidate build, compute the right answer, and run faster? The package's front."""

from __future__ import annotations

import itertools
import math
import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gate.arm import Arm, StagedKernel, stage
from gate.cases import CasePlan
from gate.conclusion import Concluded, of_kernel, of_workload
from gate.errors import EnvironmentLacks, GateError, WorkloadError
from gate.evaluation import Evaluation, Findings
from gate.inspection import Inspection, inspection_of
from gate.judgement import latency_text
from gate.messages import Probed, Report
from gate.oracle import Oracle
from gate.pool import WorkerPool, exchange_folder
from gate.profile import Profile
from gate.settings import GateSettings
from gate.static import forbidden_edit
from gate.values.candidate import Candidate
from gate.values.kernel import Kernel, Language
from gate.values.platform import Platform
from gate.values.trace import ArgumentTrace, LaunchTrace
from gate.values.verdict import Equivalence, Outcome, Status, Tier, Trust, Verdict
from gate.values.workload import Workload
from gate.worker_process import WorkerFailure, WorkerRaised

AS_IT_STANDS = Candidate(skill="", edits=())
"""The candidate that gates a kernel as it is."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How long an evaluation may take; looked at between steps."""

    wall_s: float = math.inf


def _silent(step: str) -> None:
    """Progress for nobody."""


class Gate:
    """Evaluates candidates over one worktree. Called from one thread at a time.

    Holds, between calls, an oracle with the latest workload, a worker with the latest baseline, and
    a spare; `release_idle` gives them back.
    """

    def __init__(self, root: Path, settings: GateSettings, scratch: Path) -> None:
        """`scratch` is a private folder for staged files and workers' homes."""
        self._root = root
        self._settings = settings
        self._scratch = scratch
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._exchange = exchange_folder(scratch)
        self._pool = WorkerPool(settings, scratch, os.environ)
        self._oracle = Oracle(self._pool, root, scratch, self._exchange)
        self._baseline: Arm | None = None
        self._baseline_key = ""
        self._numbers = itertools.count(1)
        self._platforms: dict[Language, Platform] = {}

    def platform(self, language: Language) -> Platform:
        """The device that kernels of a language run on, asked once.

        Raises EnvironmentLacks with what to install or set.
        """
        if language not in self._platforms:
            self._platforms[language] = self._ask_platform(language)
        return self._platforms[language]

    def inspect(self) -> Inspection:
        """What the kernels' interpreter and this machine have, for `klineage doctor`.

        Raises EnvironmentLacks if the interpreter cannot be run at all.
        """
        worker = self._pool.probe()
        try:
            probed = worker.call(
                "probe", {}, Probed, self._settings.deadlines.start_s, threading.Event()
            )
        except WorkerFailure as failure:
            raise EnvironmentLacks(
                f"{self._pool.python} cannot run a worker: {failure.message}",
                "set python in [gate] to a Python 3.10 or newer with numpy",
            ) from failure
        finally:
            self._pool.end(worker)
        return inspection_of(probed)

    def trace(
        self,
        kernel: Kernel,
        workload: Workload,
        stop: threading.Event,
        progress: Callable[[str], None] = _silent,
    ) -> tuple[LaunchTrace, ...]:
        """Run the kernel once at each declared shape and give what was passed to it.

        Raises WorkloadError, EnvironmentLacks, Cancelled, and GateError if the kernel fails.
        """
        arm = self._baseline_arm(kernel)
        deadlines = self._settings.deadlines
        traces = []
        try:
            loaded = self._oracle.load(workload, deadlines.start_s, stop)
        except WorkerFailure as failure:
            raise WorkloadError(of_workload(failure, workload.path).message) from failure
        for axes in loaded.shapes:
            progress(f"tracing {kernel.entry}")
            plan = CasePlan(axes, seed=0)
            try:
                made = self._oracle.case(plan, deadlines.reference_s, stop)
            except WorkerFailure as failure:
                raise WorkloadError(of_workload(failure, workload.path).message) from failure
            try:
                arm.prepare(axes, made, loaded.mutates, deadlines.compile_floor_s, stop)
                arm.run(deadlines.interpreted_s, stop)
                traced = arm.trace(stop)
            except WorkerFailure as failure:
                conclusion = of_kernel(failure, f"{kernel.path} {kernel.entry} at {plan.label}")
                raise GateError(conclusion.message) from failure
            traces.append(
                LaunchTrace(
                    axes=traced.axes,
                    kernel=traced.kernel,
                    grid=traced.grid,
                    block=traced.block,
                    options=traced.options,
                    arguments={
                        name: ArgumentTrace(
                            kind=each.kind,
                            dtype=each.dtype,
                            value=each.value,
                            alignment_bytes=each.alignment_bytes,
                            shape=each.shape,
                            strides=each.strides,
                            overlaps=each.overlaps,
                        )
                        for name, each in traced.arguments.items()
                    },
                )
            )
        return tuple(traces)

    def evaluate(
        self,
        baseline: Kernel,
        candidate: Candidate,
        workload: Workload,
        platform: Platform,
        tier: Tier,
        budget: Budget,
        stop: threading.Event,
        progress: Callable[[str], None] = _silent,
    ) -> Verdict:
        """Judge a candidate against the kernel it was made from.

        A candidate with no edits gates the kernel as it stands: right or wrong, and its latency
        against itself. Raises Cancelled soon after `stop` is set, StaleCandidate,
        EnvironmentLacks; everything a kernel or workload does wrong is in the verdict.
        """
        begun = time.monotonic()
        findings = Findings()
        arms: tuple[Arm, Arm] | None = None
        try:
            if reason := self._ungateable(baseline, candidate, workload):
                raise reason
            kept = self._baseline_arm(baseline)
            arms = kept, self._candidate_arm(baseline, candidate, kept)
            evaluation = Evaluation(
                workload=workload,
                oracle=self._oracle,
                baseline=arms[0],
                candidate=arms[1],
                as_it_stands=not candidate.edits,
                tier=tier,
                settings=self._settings,
                until=begun + budget.wall_s,
                stop=stop,
                progress=progress,
                findings=findings,
            )
            self._judge(evaluation)
        except Concluded as conclusion:
            findings.status = conclusion.status
            findings.message = conclusion.message
            findings.log = conclusion.log[-self._settings.log_bytes :]
        finally:
            if arms is not None:
                self._put_away(arms, tier)
        self._note_not_run(findings, tier)
        return Verdict(
            status=findings.status,
            tier=tier,
            closure=baseline.closure,
            candidate=candidate.digest,
            workload=workload.digest,
            platform=platform.name,
            device=platform.device,
            message=findings.message,
            checks=tuple(findings.checks),
            timings=findings.timings,
            baseline_artifact=findings.artifacts[0],
            candidate_artifact=findings.artifacts[1],
            equivalent_to=Equivalence.REFERENCE,
            trust=findings.trust,
            seeds=tuple(findings.seeds),
            toolchain=dict(platform.toolchain),
            cost_s=time.monotonic() - begun,
            log=findings.log,
        )

    def release_idle(self) -> None:
        """End the workers kept between calls; the next call starts its own."""
        self._oracle.close()
        self._forget_baseline()
        self._pool.end_all()

    def close(self) -> None:
        """End every worker and remove what was staged."""
        self.release_idle()
        shutil.rmtree(self._exchange, ignore_errors=True)
        shutil.rmtree(self._scratch, ignore_errors=True)

    # ---- the steps of an evaluation ---------------------------------------------------------

    def _ungateable(
        self, baseline: Kernel, candidate: Candidate, workload: Workload
    ) -> Concluded | None:
        if baseline.launch is None:
            return Concluded(
                Status.UNGATEABLE, f"no launch was found for {baseline.entry} in {baseline.path}"
            )
        if baseline.language not in PACKAGES:
            return Concluded(
                Status.UNGATEABLE, f"the gate cannot run {baseline.language.value} kernels yet"
            )
        forbidden = forbidden_edit(candidate, baseline, workload)
        return Concluded(Status.FORBIDDEN, forbidden) if forbidden else None

    def _judge(self, evaluation: Evaluation) -> None:
        findings = evaluation.findings
        try:
            loaded = evaluation.load()
            evaluation.correctness(loaded)
            runner = evaluation.candidate.opened
            if runner is None or not runner.can_time:
                findings.check("profile", Outcome.NOT_RUN, "launches are interpreted here")
                findings.message = "right on every case; not timed: no device for it here"
                return
            if evaluation.identical and not evaluation.as_it_stands:
                findings.check("profile", Outcome.NOT_RUN, "both binaries are the same")
                findings.status, findings.message = Status.TIE, "the compiler made the same binary"
                return
            profile = Profile(evaluation, loaded)
            profile.screen() if evaluation.tier is Tier.SCREEN else profile.confirm()
            if evaluation.as_it_stands:
                latency = latency_text(findings.timings[0].candidate_us)
                findings.status = Status.TIE
                findings.message = f"the kernel as it stands is right and takes {latency}"
        finally:
            findings.artifacts = (evaluation.baseline.artifact, evaluation.candidate.artifact)
            if evaluation.candidate.opened is not None:
                findings.trust = Trust(evaluation.candidate.opened.trust)

    def _note_not_run(self, findings: Findings, tier: Tier) -> None:
        names = {check.name for check in findings.checks}
        for name in ("correctness", "profile"):
            if name not in names:
                findings.check(name, Outcome.NOT_RUN, "an earlier stage ended the evaluation")
        findings.check(
            "sanitizer",
            Outcome.NOT_RUN,
            "no sanitizer for this device" if tier is Tier.ADMIT else "only at tier admit",
        )
        findings.check(
            "sandbox",
            Outcome.NOT_RUN,
            "own session, file-size limit and a short environment; no namespaces, no Landlock",
        )

    # ---- arms ------------------------------------------------------------------------------

    def _baseline_arm(self, kernel: Kernel) -> Arm:
        """The kept baseline if it is this kernel's bytes, else a new one."""
        key = "\n".join([kernel.entry, *(f"{f.path} {f.digest}" for f in kernel.files)])
        if self._baseline is None or key != self._baseline_key:
            self._forget_baseline()
            staged = self._stage(kernel, AS_IT_STANDS)
            deadlines = self._settings.deadlines
            self._baseline = Arm("baseline", staged, self._pool, deadlines, self._exchange)
            self._baseline_key = key
        return self._baseline

    def _candidate_arm(self, kernel: Kernel, candidate: Candidate, baseline: Arm) -> Arm:
        """A kernel as it stands is one staged kernel, built once, in two arms."""
        staged = self._stage(kernel, candidate) if candidate.edits else baseline.kernel
        return Arm("candidate", staged, self._pool, self._settings.deadlines, self._exchange)

    def _stage(self, kernel: Kernel, candidate: Candidate) -> StagedKernel:
        if kernel.launch is None:
            raise GateError(f"{kernel.path}: no launch was found for {kernel.entry}")
        folder = self._scratch / f"kernel-{next(self._numbers)}"
        files = candidate.files_over(kernel)
        device = self._settings.devices.get(kernel.language.value, "")
        return stage(kernel, kernel.launch, files, self._root, folder, device)

    def _put_away(self, arms: tuple[Arm, Arm], tier: Tier) -> None:
        """End the candidate's worker; keep the baseline's for the next candidate of a screen."""
        baseline, candidate = arms
        candidate.close()
        if candidate.kernel is not baseline.kernel:
            shutil.rmtree(candidate.kernel.folder, ignore_errors=True)
        if tier is Tier.SCREEN:
            self._pool.make_ready(candidate.kernel.language)
        else:
            baseline.close()

    def _forget_baseline(self) -> None:
        if self._baseline is not None:
            self._baseline.close()
            shutil.rmtree(self._baseline.kernel.folder, ignore_errors=True)
        self._baseline = None

    def _ask_platform(self, language: Language) -> Platform:
        worker = self._pool.runner(language.value)
        params = {
            "language": language.value,
            "device": self._settings.devices.get(language.value, ""),
        }
        try:
            report = worker.call(
                "report", params, Report, self._settings.deadlines.start_s, threading.Event()
            )
        except WorkerFailure as failure:
            known = isinstance(failure, WorkerRaised) and failure.kind == "environment"
            install = f"{self._pool.python} -m pip install {PACKAGES.get(language, '')}"
            raise EnvironmentLacks(
                f"no platform for {language.value}: {failure.message}",
                f"try: {install}" if known else failure.log[-500:],
            ) from failure
        finally:
            self._pool.end(worker)
        return Platform(
            report.name,
            report.device,
            report.capabilities,
            report.toolchain,
            report.can_run,
        )


PACKAGES = {Language.OPENCL: "'pyopencl[pocl]' numpy", Language.TRITON: "torch triton numpy"}
"""What makes a language's worker run, for pip."""

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
from gate.conclusion import Concluded
from gate.correctness import Correctness
from gate.errors import GateError
from gate.evaluation import Evaluation, Findings
from gate.inspection import Inspection
from gate.judgement import latency_text
from gate.machine import PACKAGES, ask_platform, inspect_machine
from gate.oracle import Oracle
from gate.pool import WorkerPool, exchange_folder
from gate.profile import Profile
from gate.settings import GateSettings
from gate.static import forbidden_edit
from gate.tracing import trace_launches
from gate.values.candidate import Candidate
from gate.values.kernel import Kernel, Language
from gate.values.platform import Platform
from gate.values.trace import LaunchTrace
from gate.values.verdict import Equivalence, Outcome, Status, Tier, Trust, Verdict
from gate.values.workload import Workload

AS_IT_STANDS = Candidate(skill="", edits=())
"""The candidate that gates a kernel as it is."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How long an evaluation may take; looked at between steps."""

    wall_s: float = math.inf


def _silent(step: str) -> None:
    """Progress for nobody."""


class Gate:
    """Evaluates candidates over one worktree, one call at a time; a second thread waits.

    Holds, between calls, an oracle with the latest workload, a worker with the latest baseline, and
    the servers that fork workers; `release_idle` gives them back.
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
        self._busy = threading.Lock()

    def platform(self, language: Language) -> Platform:
        """The device that kernels of a language run on, asked once.

        Raises EnvironmentLacks with what to install or set.
        """
        with self._busy:
            return self._platform(language)

    def inspect(self) -> Inspection:
        """What the kernels' interpreter and this machine have, for `klineage doctor`.

        Raises EnvironmentLacks if the interpreter cannot be run at all.
        """
        with self._busy:
            return inspect_machine(self._pool, self._settings)

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
        with self._busy:
            self._platform(kernel.language)
            arm = self._baseline_arm(kernel)
            deadlines = self._settings.deadlines
            return trace_launches(arm, self._oracle, workload, deadlines, stop, progress)

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
        with self._busy:
            begun = time.monotonic()
            findings = self._findings(
                baseline, candidate, workload, platform, tier, begun + budget.wall_s, stop, progress
            )
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
        """End the workers kept between calls, unless a call is going on; the next starts its own."""
        if self._busy.acquire(blocking=False):
            try:
                self._end_workers()
            finally:
                self._busy.release()

    def close(self) -> None:
        """End every worker and remove what was staged. Waits for a call that is going on."""
        with self._busy:
            self._end_workers()
        shutil.rmtree(self._exchange, ignore_errors=True)
        shutil.rmtree(self._scratch, ignore_errors=True)

    # ---- the steps of an evaluation ---------------------------------------------------------

    def _findings(
        self,
        baseline: Kernel,
        candidate: Candidate,
        workload: Workload,
        platform: Platform,
        tier: Tier,
        until: float,
        stop: threading.Event,
        progress: Callable[[str], None],
    ) -> Findings:
        findings = Findings()
        arms: tuple[Arm, Arm] | None = None
        try:
            if reason := self._ungateable(baseline, candidate, workload):
                raise reason
            kept = self._baseline_arm(baseline)
            arms = kept, self._candidate_arm(baseline, candidate, kept)
            self._pool.expect(baseline.language.value, platform.can_run)
            evaluation = Evaluation(
                workload=workload,
                platform=platform,
                oracle=self._oracle,
                baseline=arms[0],
                candidate=arms[1],
                as_it_stands=not candidate.edits,
                tier=tier,
                settings=self._settings,
                until=until,
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
        return findings

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
            evaluation.progress("loading the workload")
            loaded = evaluation.load()
            evaluation.progress("starting workers")
            can_time = evaluation.open_both()
            self._note_processes(findings, evaluation.candidate.kernel.language)
            Correctness(evaluation, loaded, can_time).run()
            if not can_time:
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

    def _note_processes(self, findings: Findings, language: str) -> None:
        refusal = self._pool.unforked.get(language)
        if refusal is not None:
            findings.check("fork server", Outcome.NOT_RUN, f"processes started singly: {refusal}")
        else:
            findings.check(
                "fork server", Outcome.PASSED, "processes forked before any device opened"
            )

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

    def _platform(self, language: Language) -> Platform:
        if language not in self._platforms:
            platform = ask_platform(self._pool, self._settings, language)
            self._pool.expect(language.value, platform.can_run)
            self._platforms[language] = platform
        return self._platforms[language]

    # ---- arms ------------------------------------------------------------------------------

    def _baseline_arm(self, kernel: Kernel) -> Arm:
        """The kept baseline if it is this kernel's bytes, else a new one."""
        key = repr((kernel.language, kernel.path, kernel.entry, kernel.launch)) + "\n".join(
            f"{file.path} {file.digest}" for file in kernel.files
        )
        if self._baseline is None or key != self._baseline_key:
            self._forget_baseline()
            staged = self._stage(kernel, AS_IT_STANDS)
            deadlines = self._settings.deadlines
            exchange = self._exchange / "baseline"
            self._baseline = Arm("baseline", staged, self._pool, deadlines, exchange)
            self._baseline_key = key
        return self._baseline

    def _candidate_arm(self, kernel: Kernel, candidate: Candidate, baseline: Arm) -> Arm:
        """A kernel as it stands is one staged kernel, built once, in two arms."""
        staged = self._stage(kernel, candidate) if candidate.edits else baseline.kernel
        exchange = self._exchange / "candidate"
        return Arm("candidate", staged, self._pool, self._settings.deadlines, exchange)

    def _stage(self, kernel: Kernel, candidate: Candidate) -> StagedKernel:
        if kernel.launch is None:
            raise GateError(f"{kernel.path}: no launch was found for {kernel.entry}")
        folder = self._scratch / f"kernel-{next(self._numbers)}"
        files = candidate.files_over(kernel)
        device = self._settings.devices.get(kernel.language.value, "")
        return stage(kernel, kernel.launch, files, self._root, folder, device)

    def _put_away(self, arms: tuple[Arm, Arm], tier: Tier) -> None:
        """End the candidate's worker; keep the baseline's and the oracle for the next screen.

        After a confirmation the oracle would go on holding the cases of all pairs.
        """
        baseline, candidate = arms
        candidate.close()
        if candidate.kernel is not baseline.kernel:
            shutil.rmtree(candidate.kernel.folder, ignore_errors=True)
        if tier is not Tier.SCREEN:
            baseline.close()
            self._oracle.close()
        for left in self._exchange.iterdir():
            shutil.rmtree(left, ignore_errors=True)

    def _end_workers(self) -> None:
        self._oracle.close()
        self._forget_baseline()
        self._pool.end_all()

    def _forget_baseline(self) -> None:
        if self._baseline is not None:
            self._baseline.close()
            shutil.rmtree(self._baseline.kernel.folder, ignore_errors=True)
        self._baseline = None

"""Trials: verdicts and rejections written down as evidence of their cards."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from daemon.loop.board import KernelState, Suggestion
from daemon.loop.publishing import Publisher
from gate.values.verdict import Status, Tier, Verdict
from library.errors import LibraryError
from library.store import Store
from library.trial import Trial, TrialTiming
from library.workload_source import read_workload

TELLING = {Status.WRONG, Status.COMPILE_ERROR, Status.CRASHED, Status.TIMEOUT, Status.SUSPICIOUS}
"""Statuses that are evidence at any tier. A mere screening of the speed is not."""


class Trials:
    """Adds one file a trial to the user's place of the library."""

    def __init__(self, store: Store, publisher: Publisher, now: Callable[[], str]) -> None:
        """`now` gives UTC in ISO 8601."""
        self._store = store
        self._publisher = publisher
        self.now = now

    def of_verdict(self, suggestion: Suggestion, state: KernelState, verdict: Verdict) -> None:
        """Keep a confirmation, or a failure at any tier."""
        if verdict.tier is Tier.SCREEN and verdict.status not in TELLING:
            return
        self._add(
            suggestion,
            state,
            status=verdict.status.value,
            tier=verdict.tier.value,
            reason=verdict.message,
            platform=verdict.platform,
            device=verdict.device,
            timings=tuple(
                TrialTiming(
                    dict(t.axes),
                    t.baseline_us,
                    t.candidate_us,
                    t.speedup,
                    t.speedup_low,
                    t.speedup_high,
                    t.confidence,
                    t.method,
                )
                for t in verdict.timings
            ),
            toolchain=dict(verdict.toolchain),
            cost_s=verdict.cost_s,
        )

    def of_rejection(
        self, suggestion: Suggestion, state: KernelState, reason: str, platform: str, device: str
    ) -> None:
        """Keep a person's no, with the reason."""
        self._add(
            suggestion,
            state,
            status="rejected",
            tier="human",
            reason=reason,
            platform=platform,
            device=device,
        )

    def _add(
        self,
        suggestion: Suggestion,
        state: KernelState,
        *,
        status: str,
        tier: str,
        reason: str,
        platform: str,
        device: str,
        timings: tuple[TrialTiming, ...] = (),
        toolchain: dict[str, str] | None = None,
        cost_s: float = 0.0,
    ) -> None:
        at = self.now()
        entry = suggestion.offer.entry
        case = read_workload(state.workload).operator if state.workload else ""
        unique = hashlib.sha256(f"{at}\0{suggestion.id}\0{tier}".encode()).hexdigest()[:8]
        trial = Trial(
            trial_id=f"{at.replace(':', '').replace('-', '').split('.')[0].rstrip('Z')}-{unique}",
            at=at,
            card=entry.digest,
            case=case or "",
            language=state.kernel.language.value,
            platform=platform,
            device=device,
            closure=state.kernel.closure,
            kernel=state.id,
            status=status,
            tier=tier,  # type: ignore[arg-type]
            reason=reason,
            # A shipped card was learned from none of this person's kernels.
            held_out=entry.card.provenance.kind == "shipped",
            timings=timings,
            toolchain=toolchain or {},
            cost_s=cost_s,
        )
        try:
            self._store.add_trial(entry, trial)
        except LibraryError as error:
            # The verdict stands and is in the journal; only the library does not learn from it.
            self._publisher.message("warning", f"evidence not kept: {error}")

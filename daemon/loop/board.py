"""Board: what is known now. Files, kernels, ranked suggestions. Changed on the event loop only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from daemon.protocol import Stage
from gate.values.candidate import Candidate
from gate.values.kernel import Kernel
from gate.values.verdict import Status, Tier, Verdict
from gate.values.workload import Workload
from library.retrieval import Offer
from library.target import Feature


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A skill at one place of one kernel, with what is known of it."""

    id: str
    kernel: str
    offer: Offer
    stage: Stage
    reason: str = ""
    candidate: Candidate | None = None
    after_closure: str = ""
    """Closure digest the kernel would have; with the closure before, the key of its verdicts."""
    verdict: Verdict | None = None
    verdict_at: str = ""

    @property
    def is_confirmed_faster(self) -> bool:
        """Whether one key may apply it."""
        verdict = self.verdict
        return (
            verdict is not None and verdict.tier != Tier.SCREEN and verdict.status is Status.FASTER
        )


@dataclass(frozen=True, slots=True)
class KernelState:
    """A kernel with its state and its suggestions, best first."""

    id: str
    kernel: Kernel
    line: int
    workload: Workload | None
    features: tuple[Feature, ...]
    suggestions: tuple[Suggestion, ...] = ()
    traced: bool = False


@dataclass(frozen=True, slots=True)
class FileState:
    """A watched file that holds kernels, or says why it does not."""

    path: str
    digest: str
    kernels: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    depends: frozenset[str] = frozenset()
    """Paths whose change means this file must be looked at again, itself included."""


class Board:
    """The present. Everything in it is frozen; a change replaces an entry."""

    def __init__(self) -> None:
        self.files: dict[str, FileState] = {}
        self.kernels: dict[str, KernelState] = {}

    def put(self, file: FileState, kernels: Iterable[KernelState]) -> tuple[str, ...]:
        """Replace a file and its kernels; ids of kernels it no longer has."""
        listed = {kernel.id: kernel for kernel in kernels}
        gone = self._drop_kernels(file.path, kept=set(listed))
        self.files[file.path] = file
        self.kernels.update(listed)
        return gone

    def drop(self, path: str) -> tuple[str, ...]:
        """Forget a file; ids of the kernels it had."""
        gone = self._drop_kernels(path, kept=set())
        self.files.pop(path, None)
        return gone

    def _drop_kernels(self, path: str, kept: set[str]) -> tuple[str, ...]:
        had = self.files[path].kernels if path in self.files else ()
        gone = tuple(kernel for kernel in had if kernel not in kept)
        for kernel in gone:
            self.kernels.pop(kernel, None)
        return gone

    def depending_on(self, paths: Iterable[str]) -> set[str]:
        """Files to look at again when any of `paths` changed."""
        changed = set(paths)
        return {file.path for file in self.files.values() if not changed.isdisjoint(file.depends)}

    def closures(self) -> set[str]:
        """Every closure that a kernel has now."""
        return {state.kernel.closure for state in self.kernels.values()}

    def suggestion(self, id: str) -> Suggestion | None:
        """The suggestion with this id, if the code it was made for is still there."""
        for state in self.kernels.values():
            for suggestion in state.suggestions:
                if suggestion.id == id:
                    return suggestion
        return None

    def all_suggestions(self) -> tuple[Suggestion, ...]:
        """Kernel by kernel, best first."""
        return tuple(s for state in self.kernels.values() for s in state.suggestions)

    def update(self, suggestion: Suggestion) -> KernelState:
        """Replace a suggestion in its kernel and rank that kernel's anew."""
        state = self.kernels[suggestion.kernel]
        others = (suggestion if s.id == suggestion.id else s for s in state.suggestions)
        state = replace(state, suggestions=ranked(others))
        self.kernels[state.id] = state
        return state


def ranked(suggestions: Iterable[Suggestion]) -> tuple[Suggestion, ...]:
    """Best first: measured gains by their lower bound, then what may still gain, then the rest."""
    return tuple(sorted(suggestions, key=_rank))


def _rank(suggestion: Suggestion) -> tuple[int, float, int]:
    verdict = suggestion.verdict
    if suggestion.stage == "rejected":
        return (6, 0.0, suggestion.offer.rank)
    if suggestion.stage == "blocked":
        return (5, 0.0, suggestion.offer.rank)
    if verdict is None:
        return (1 if suggestion.stage != "manual" else 2, 0.0, suggestion.offer.rank)
    if verdict.status is Status.FASTER and verdict.headline is not None:
        return (0, -verdict.headline.speedup_low, suggestion.offer.rank)
    if verdict.status is Status.UNMEASURED:
        return (2, 0.0, suggestion.offer.rank)
    if verdict.status in (Status.TIE, Status.NOISY):
        return (3, 0.0, suggestion.offer.rank)
    return (4, 0.0, suggestion.offer.rank)

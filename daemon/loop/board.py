"""Board: what is known now. Files, kernels, ranked suggestions. Changed on the event loop only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from daemon.protocol import Stage
from gate.values.candidate import Candidate
from gate.values.kernel import Kernel
from gate.values.verdict import Status, Tier, Verdict
from gate.values.workload import Workload
from library.retrieval import Offer
from library.target import Feature


class Basis(NamedTuple):
    """What a verdict holds for, besides its candidate and platform: another basis voids it."""

    closure: str
    """Closure digest of the kernel; empty for what is about no kernel."""
    workload: str = ""
    """Digest of what judges it in the workload file; empty without one."""


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
    def is_faster(self) -> bool:
        """Whether the gate found it so, at any tier."""
        return self.verdict is not None and self.verdict.status is Status.FASTER

    @property
    def is_confirmed_faster(self) -> bool:
        """Whether one key may apply it."""
        return self.is_faster and self.verdict is not None and self.verdict.tier != Tier.SCREEN


@dataclass(frozen=True, slots=True)
class KernelState:
    """A kernel with its state and its suggestions, best first."""

    id: str
    kernel: Kernel
    line: int
    workload: Workload | None
    basis: Basis
    """What its verdicts hold for."""
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
    depends: Mapping[str, str | None] = field(default_factory=dict)
    """Digest of everything that was read for it, itself included; None for what was looked for and
    not found, such as a workload file yet to be written. Where one changes, it is looked at again."""


class Board:
    """The present. Everything in it is frozen; a change replaces an entry."""

    def __init__(self) -> None:
        self.files: dict[str, FileState] = {}
        self.kernels: dict[str, KernelState] = {}
        self._kernel_of: dict[str, str] = {}

    def put(self, file: FileState, kernels: Iterable[KernelState]) -> tuple[str, ...]:
        """Replace a file and its kernels; ids of kernels it no longer has."""
        listed = tuple(kernels)
        gone = self._drop_kernels(file.path, kept={kernel.id for kernel in listed})
        self.files[file.path] = file
        for kernel in listed:
            self.place(kernel)
        return gone

    def place(self, state: KernelState) -> None:
        """Replace one kernel's state."""
        self._forget_suggestions(state.id)
        self.kernels[state.id] = state
        self._kernel_of.update((suggestion.id, state.id) for suggestion in state.suggestions)

    def drop(self, path: str) -> tuple[str, ...]:
        """Forget a file; ids of the kernels it had."""
        gone = self._drop_kernels(path, kept=set())
        self.files.pop(path, None)
        return gone

    def _drop_kernels(self, path: str, kept: set[str]) -> tuple[str, ...]:
        had = self.files[path].kernels if path in self.files else ()
        gone = tuple(kernel for kernel in had if kernel not in kept)
        for kernel in gone:
            self._forget_suggestions(kernel)
            self.kernels.pop(kernel, None)
        return gone

    def _forget_suggestions(self, kernel: str) -> None:
        if kernel in self.kernels:
            for suggestion in self.kernels[kernel].suggestions:
                self._kernel_of.pop(suggestion.id, None)

    def depending_on(self, present: Mapping[str, str | None]) -> set[str]:
        """Files that were looked at when a path of `present` had another digest than this."""
        return {
            file.path
            for file in self.files.values()
            for path in file.depends.keys() & present.keys()
            if file.depends[path] != present[path]
        }

    def bases(self) -> set[Basis]:
        """What verdicts on the kernels of now hold for."""
        return {state.basis for state in self.kernels.values()}

    def suggestion(self, id: str) -> Suggestion | None:
        """The suggestion with this id, if the code it was made for is still there."""
        state = self.kernels.get(self._kernel_of.get(id, ""))
        return next((s for s in state.suggestions if s.id == id), None) if state else None

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

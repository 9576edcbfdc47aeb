"""Target: what retrieval sees. A kernel, its state, its facts, its workload and its platform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gate.values.kernel import Kernel
from gate.values.platform import Platform
from gate.values.workload import Axes, Workload
from library.fact import Answer, Argument


class Presence(StrEnum):
    """Whether a kernel has an optimization feature."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Layer(StrEnum):
    """What shows a feature."""

    SOURCE = "source"
    IR = "ir"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Locus:
    """A byte range of one file of the kernel."""

    path: str
    start: int
    end: int
    """Byte offsets into the file as it is on disk; `end` is exclusive."""
    line: int
    """1-based line of `start`."""
    text: str
    """The source text of the range, decoded."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One row of a kernel's state."""

    id: str
    """`F01` … `F34`, as docs/features.md names them."""
    name: str
    presence: Presence
    layer: Layer
    locus: Locus | None = None
    """Where it was found; None when absent or unknown."""
    detail: str = ""
    """What was seen, or why it is unknown."""


Captures = Mapping[str, tuple[Locus, ...]]
"""Capture name (without @) → ranges, for one match of an anchor query."""


class Analysis(Protocol):
    """One kernel, parsed once: its state, its facts, and its anchors. See library/languages/."""

    @property
    def features(self) -> tuple[Feature, ...]:
        """The kernel's state."""
        ...

    @property
    def shapes(self) -> tuple[Axes, ...]:
        """Shapes the workload declares, read without running it; empty when unknown."""
        ...

    def anchors(self, query: str) -> tuple[Captures, ...]:
        """Every match of a tree-sitter query inside the kernel's function (or its launch)."""
        ...

    def name(self, name: str, axes: Axes | None) -> Answer:
        """The value of a bare name: an axis at this shape, a constant of the kernel, `language`."""
        ...

    def call(self, function: str, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
        """The value of a fact function, e.g. call("trip_count", (locus,), axes)."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """A kernel with everything that decides which skills apply to it."""

    kernel: Kernel
    analysis: Analysis
    workload: Workload | None
    platform: Platform | None
    """None until the device has been asked; capability facts are then missing."""
    case: str = ""
    """Operator family when known (`gemm`, `softmax`, …): OPERATOR of the workload file."""

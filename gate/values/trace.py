"""LaunchTrace: what one real launch of the baseline passed to its kernel. Facts come from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gate.values.workload import Axes


@dataclass(frozen=True, slots=True)
class ArgumentTrace:
    """One argument as it was passed."""

    kind: Literal["pointer", "scalar", "constexpr"]
    dtype: str
    """`float32`, `bfloat16`, `int32`, …; for a constexpr the Python type's name."""
    value: int | float | bool | str | None = None
    """Scalars and constexprs; None for pointers."""
    alignment_bytes: int | None = None
    """Largest power of two up to 4096 that divides the pointer."""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    """In elements. Empty for bare buffers."""
    overlaps: tuple[str, ...] = ()
    """Other pointer arguments whose byte ranges intersect this one's."""


@dataclass(frozen=True, slots=True)
class LaunchTrace:
    """One launch at one shape of the workload."""

    axes: Axes
    kernel: str
    grid: tuple[int, ...]
    """Programs (Triton) or the global size (OpenCL)."""
    block: tuple[int, ...]
    """Local size (OpenCL; empty when the driver chose); (num_warps * 32,) for Triton."""
    options: Mapping[str, int | str]
    """`num_warps`, `num_stages`, … or build options."""
    arguments: Mapping[str, ArgumentTrace]
    """By parameter name, in order."""

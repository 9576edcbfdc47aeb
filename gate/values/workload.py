"""Workload: how to call a kernel and judge its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gate.values.kernel import digest

Axes = Mapping[str, int]
"""Axis name → extent, e.g. {"M": 256, "N": 256, "K": 256}."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload file in the official KLineage problem form, with our optional extensions.

    docs/workloads.md lists the names it may define: `make_inputs`, `torch_ref` or `numpy_ref`,
    `OPERATOR`, `check_outputs`, `SHAPES`, `TOLERANCE`, `FLOPS`, `BYTES`, `MUTATES`, `launch`.
    """

    path: str
    """Relative to the worktree root."""
    data: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return digest(self.data)


def shape_label(axes: Axes) -> str:
    """One line for a shape, as shown to people: `M=256 N=256 K=256`."""
    return " ".join(f"{name}={extent}" for name, extent in axes.items()) or "default"

"""Platform: what a kernel runs on, with capabilities queried from it and never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Capability = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Platform:
    """A device as its own driver describes it, or a compile-only target.

    Capability names used by conditions: `device_type` ("cpu" | "gpu"), `compute_units` (SMs),
    `local_memory_bytes`, `shared_memory_per_block_optin_bytes`, `registers_per_sm`, `l2_bytes`,
    `preferred_vector_float`, `tma`, `wgmma`, `cp_async`, `clusters`. An absent name is unknown.
    """

    name: str
    """`pocl-cpu`, `sm_90a`, `sm_80`, …"""
    device: str
    """The name the driver reports."""
    capabilities: Mapping[str, Capability] = field(default_factory=dict)
    toolchain: Mapping[str, str] = field(default_factory=dict)
    """Compiler, driver and runtime versions, by name."""
    can_run: bool = True
    """False for a target that is only compiled for: nothing on it can be timed."""

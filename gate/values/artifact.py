"""BuildArtifact: what a real compiler made of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BuildArtifact:
    """The binary that was built, and what the toolchain says of it."""

    digest: str
    """SHA-256 of the binary (or of the program source where the runtime gives no binary)."""
    ir: Mapping[str, str] = field(default_factory=dict)
    """Text by layer: `ttgir`, `ptx`, `sass`, … Empty where the toolchain shows none."""
    resources: Mapping[str, int | None] = field(default_factory=dict)
    """`registers`, `spill_bytes`, `shared_bytes`, `local_bytes`, …; None is "unavailable"."""
    log: str = ""
    """Compiler output, at most 16 KiB."""

"""What Triton made of one kernel: its cubin, its IR, and what a launch of it takes."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from typing import Any

from .triton_launch import options_of


@dataclass(frozen=True, slots=True)
class Binary:
    """One compiled kernel."""

    digest: str
    ir: dict[str, str]
    resources: dict[str, int | None]
    options: dict[str, int | str] = field(default_factory=dict)


def binary_of(compiled: Any) -> Binary:
    """What Triton made: the cubin's digest, IR by layer, and what a launch of it takes."""
    metadata = compiled.metadata._asdict()
    loaded = getattr(compiled, "n_regs", None) is not None
    usage = (
        # Triton divides the driver's local memory size by four: 32-bit slots.
        {"registers": int(compiled.n_regs), "spill_bytes": int(compiled.n_spills) * 4}
        if loaded
        else _resource_usage(compiled.asm["cubin"])
    )
    options = options_of(metadata)
    return Binary(
        digest=hashlib.sha256(compiled.asm["cubin"]).hexdigest(),
        ir={layer: compiled.asm[layer] for layer in ("ttgir", "ptx") if layer in compiled.asm},
        resources={
            **usage,
            "shared_bytes": int(metadata["shared"]),
            "num_warps": int(metadata["num_warps"]),
            "num_stages": int(metadata["num_stages"]),
        },
        options=options,
    )


def _resource_usage(cubin: bytes) -> dict[str, int | None]:
    """Registers and local memory by the cuobjdump of Triton's wheel; None where it has none."""
    from triton import knobs

    unavailable: dict[str, int | None] = {"registers": None, "spill_bytes": None}
    try:
        tool = knobs.nvidia.cuobjdump.path
    except RuntimeError:
        return unavailable
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run(
            [tool, "-res-usage", file.name], capture_output=True, text=True, check=False
        )
    found = dict(re.findall(r"\b(REG|STACK|LOCAL):(\d+)", done.stdout))
    if "REG" not in found:
        return unavailable
    local_bytes = int(found.get("STACK", 0)) + int(found.get("LOCAL", 0))
    return {"registers": int(found["REG"]), "spill_bytes": local_bytes}

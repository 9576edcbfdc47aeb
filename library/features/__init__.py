"""The optimization features a kernel's state is made of: their ids and names, nothing more.

How a language shows each is in `library/features/<language>*.py`; docs/features.md describes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "F01": "tiling",
        "F02": "shared-memory staging",
        "F03": "vector access",
        "F04": "coalescing / transpose through shared memory",
        "F05": "register blocking",
        "F06": "tensor-core MMA",
        "F07": "wgmma",
        "F08": "fp32 accumulation",
        "F09": "cp.async",
        "F10": "TMA / descriptor",
        "F11": "multi-stage pipeline",
        "F12": "warp specialization",
        "F13": "persistent grid",
        "F14": "L2 rasterization",
        "F15": "shared-memory swizzle / padding",
        "F16": "split-K",
        "F17": "stream-K / flattened loop",
        "F18": "clusters / DSMEM / multicast",
        "F19": "programmatic dependent launch",
        "F20": "warp-shuffle reduction",
        "F21": "online softmax",
        "F22": "fused prologue / epilogue",
        "F23": "recompute instead of store",
        "F24": "tuned constants",
        "F25": "mask elision",
        "F26": "alignment / no-alias facts",
        "F27": "cache hints",
        "F28": "fast math",
        "F29": "unrolling",
        "F30": "hoisting / strength reduction",
        "F31": "register / occupancy control",
        "F32": "radix / threshold select",
        "F33": "chunked linear-attention phases",
        "F34": "implicit GEMM",
    }
)
"""Feature id → name, in table order."""

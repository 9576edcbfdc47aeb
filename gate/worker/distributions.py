"""Inputs other than those make_inputs drew: what a kernel tuned to zero-mean noise gets wrong.

Applied to floating inputs only. A distribution on which the original itself fails lies outside the
kernel's contract and is not held against a candidate; the parent keeps that rule.
"""

from __future__ import annotations

import math

import numpy as np

NAMES = ("normal", "shifted", "wide", "structured")
"""`normal` is what make_inputs gave."""


def redraw(values: np.ndarray, name: str, seed: int) -> np.ndarray:
    """`values` (float64) as distribution `name`, at a scale like theirs.

    shifted: their mean moved by one standard deviation, so that sums no longer cancel.
    wide: each scaled by a power of two from 2^-6 to 2^6, so that small terms count.
    structured: a period of seven exact values, so that a misplaced element is seen exactly.
    """
    spread = float(values.std()) if values.size else 0.0
    scale = spread if spread > 0.0 and np.isfinite(spread) else 1.0
    if name == "normal":
        return values
    if name == "shifted":
        return values + scale
    if name == "wide":
        rng = np.random.default_rng(seed)
        return np.asarray(np.ldexp(values, rng.integers(-6, 7, size=values.shape)))
    if name == "structured":
        period = (np.arange(values.size) % 7 - 3.0).reshape(values.shape)
        return np.asarray(np.ldexp(period, round(math.log2(scale))))
    raise ValueError(f"no distribution {name}; there are {', '.join(NAMES)}")

"""Inputs other than those make_inputs drew: what a kernel tuned to zero-mean noise gets wrong.

Applied to floating inputs only. A distribution on which the original itself fails lies outside the
kernel's contract and is not held against a candidate; the parent keeps that rule.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .namespace import is_tensor, namespace_of, size_of

NAMES = ("normal", "shifted", "wide", "structured")
"""`normal` is what make_inputs gave."""


def redraw(values: Any, name: str, seed: int) -> Any:
    """`values` (float64, numpy's or torch's) as distribution `name`, at a scale like theirs.

    shifted: their mean moved by one standard deviation, so that sums no longer cancel.
    wide: each scaled by a power of two from 2^-6 to 2^6, so that small terms count.
    structured: a period of seven exact values, so that a misplaced element is seen exactly.
    """
    if name == "normal":
        return values
    scale = _scale(values)
    if name == "shifted":
        return values + scale
    if name == "wide":
        return values * _powers_of_two(values, seed)
    if name == "structured":
        return _period_of_seven(values) * 2.0 ** round(math.log2(scale))
    raise ValueError(f"no distribution {name}; there are {', '.join(NAMES)}")


def _scale(values: Any) -> float:
    if not size_of(values):
        return 1.0
    xp = namespace_of(values)
    spread = math.sqrt(float(xp.square(values - values.mean()).mean()))
    return spread if spread > 0.0 and math.isfinite(spread) else 1.0


def _powers_of_two(like: Any, seed: int) -> Any:
    if not is_tensor(like):
        return np.ldexp(1.0, np.random.default_rng(seed).integers(-6, 7, size=like.shape))
    torch = namespace_of(like)
    generator = torch.Generator(device=like.device).manual_seed(seed)
    drawn = torch.randint(0, 13, like.shape, generator=generator, device=like.device)
    powers = torch.tensor([2.0**power for power in range(-6, 7)], dtype=like.dtype)
    return powers.to(like.device)[drawn]


def _period_of_seven(like: Any) -> Any:
    if not is_tensor(like):
        return (np.arange(like.size) % 7 - 3.0).reshape(like.shape)
    torch = namespace_of(like)
    count = torch.arange(like.numel(), dtype=like.dtype, device=like.device)
    return (count % 7 - 3.0).reshape(like.shape)

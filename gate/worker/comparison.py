"""Is an output right? Elementwise against a float64 reference, a chunk at a time.

Two things are asked. Every element must lie within the tolerance, which is the workload's or a
default by dtype. And the largest error, relative to the output's magnitude, must be at most twice
that of the kernel as it stood, unless both drown in the dtype's rounding: otherwise a candidate
could spend precision that nobody offered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import is_float, to_float64
from .languages import Tensor
from .namespace import elements, float64_beside, namespace_of, size_of

CHUNK = 1 << 20
"""Elements compared at a time: 8 MiB of float64."""

SMALLEST = float(np.finfo(np.float64).tiny)

LARGEST = {
    "float64": float(np.finfo(np.float64).max),
    "float32": float(np.finfo(np.float32).max),
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0,
}
"""Largest finite value of a dtype."""

DEFAULT_RTOL = {
    "float64": 1e-10,
    "float32": 1e-4,
    "float16": 1e-2,
    "bfloat16": 2e-2,
    "float8_e4m3fn": 0.15,
    "float8_e5m2": 0.3,
}
"""Relative tolerance where the workload declares none; the absolute one is this times the root mean
square of the expected output, so that an output of small numbers is not waved through."""

ERROR_FLOOR = {
    "float64": 3e-14,
    "float32": 1.6e-5,
    "float16": 4e-3,
    "bfloat16": 3.2e-2,
    "float8_e4m3fn": 0.15,
    "float8_e5m2": 0.3,
}
"""Largest error, relative to magnitude, that any order of the same arithmetic may show: 128 rounding
units for wide dtypes, 4 for narrow ones, which are accumulated in a wider one."""

ERROR_GROWTH = 2.0
"""How many times the original's error a candidate may have above the floor."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """An element passes if |actual - expected| <= atol + rtol * |expected|."""

    atol: float
    rtol: float


@dataclass(frozen=True, slots=True)
class Difference:
    """How one output differs from what was expected."""

    name: str
    wrong: int
    """Elements outside the tolerance."""
    elements: int
    max_abs: float
    error: float
    """Largest |actual - expected| / (|expected| + rms of expected); infinity for NaN or infinity."""
    first: str
    """`C[3, 17] = 0.5, expected 0.25` for the worst element, or what is wrong with the whole."""


def tolerance_for(dtype: str, rms: float, declared: dict[str, float] | None) -> Tolerance:
    """The tolerance of one output; integers and booleans must be equal."""
    if not is_float(dtype):
        return Tolerance(0.0, 0.0)
    if declared is not None:
        return Tolerance(declared["atol"], declared["rtol"])
    rtol = DEFAULT_RTOL[dtype]
    return Tolerance(rtol * rms, rtol)


def scaled(declared: dict[str, float] | None, growth: float) -> dict[str, float] | None:
    """A declared tolerance for outputs `growth` times as large as those it was declared for."""
    if declared is None:
        return None
    return {"atol": declared["atol"] * growth, "rtol": declared["rtol"]}


def within_budget(error: float, original_error: float, dtype: str) -> bool:
    """Whether an error is at most twice the original's, or below the floor of the dtype."""
    if not is_float(dtype):
        return error == 0.0
    return error <= max(ERROR_GROWTH * original_error, ERROR_FLOOR[dtype])


def root_mean_square(expected: Any) -> float:
    """Over the finite elements; 0 if there are none."""
    xp = namespace_of(expected)
    total, count = 0.0, 0
    for part in _chunks(expected):
        finite = xp.isfinite(part)
        total += float((xp.where(finite, part, 0.0) ** 2).sum())
        count += int(finite.sum())
    return math.sqrt(total / count) if count else 0.0


def compare(
    name: str,
    actual: Tensor,
    expected: Any,
    dtype: str,
    declared: dict[str, float] | None,
    rms: float | None = None,
) -> Difference:
    """`expected` holds float64 (or, for integers, the dtype itself); shapes and dtypes must match.

    It is numpy's or torch's, and is compared where it is. `rms` is its root mean square, if known.
    NaN equals only an expected NaN, infinity only an expected infinity of the same sign, where an
    expected value too large for the dtype counts as infinity.
    """
    shape, size = tuple(expected.shape), size_of(expected)
    if actual.array.shape != shape or actual.dtype != dtype:
        got = f"{actual.dtype}{list(actual.array.shape)}"
        whole = f"{name} is {got}, expected {dtype}{list(shape)}"
        return Difference(name, size, size, math.inf, math.inf, whole)
    floating = is_float(dtype)
    if floating and rms is None:
        rms = root_mean_square(expected)
    tolerance = tolerance_for(dtype, rms or 0.0, declared)
    wrong, max_abs, worst_error, worst_index = 0, 0.0, 0.0, -1
    flat = np.ascontiguousarray(actual.array).reshape(-1)
    for start, want in zip(range(0, size, CHUNK), _chunks(expected), strict=True):
        have = Tensor(dtype, flat[start : start + CHUNK])
        gaps = _float_gap(have, want, tolerance, rms or 0.0) if floating else _gap(have.array, want)
        bad, gap, error = gaps
        wrong += int(bad.sum())
        max_abs = max(max_abs, float(gap.max()))
        at = int(error.argmax())
        if float(error[at]) > worst_error:
            worst_error, worst_index = float(error[at]), start + at
    first = _element(name, flat, expected, worst_index, dtype)
    return Difference(name, wrong, size, max_abs, worst_error, first)


def _gap(have: np.ndarray, want: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `_float_gap`, for integers: what is not equal is wrong."""
    bad = have != want
    gap = np.abs(have.astype(np.float64) - want.astype(np.float64))
    return bad, gap, bad.astype(np.float64)


def _float_gap(
    actual: Tensor, expected: Any, tolerance: Tolerance, rms: float
) -> tuple[Any, Any, Any]:
    """Wrong elements, absolute gaps and relative errors; the latter infinite where no number fits."""
    xp = namespace_of(expected)
    have = float64_beside(actual, expected)
    with np.errstate(invalid="ignore", over="ignore"):
        want = _rounded_to_infinity(expected, actual.dtype)
        gap = xp.abs(have - want)
        same = (have == want) | (xp.isnan(have) & xp.isnan(want))
        finite = xp.isfinite(have) & xp.isfinite(want)
        gap = xp.where(same, 0.0, xp.where(finite, gap, math.inf))
        magnitude = xp.where(finite, xp.abs(want), 0.0)
        bad = gap > tolerance.atol + tolerance.rtol * magnitude
        scale = xp.clip(magnitude + rms, SMALLEST, None)
        error = xp.where(gap == 0.0, 0.0, gap / scale)
    return bad, gap, error


def _rounded_to_infinity(want: Any, dtype: str) -> Any:
    xp = namespace_of(want)
    return xp.where(xp.abs(want) > LARGEST[dtype], xp.sign(want) * math.inf, want)


def _element(name: str, flat: np.ndarray, expected: Any, at: int, dtype: str) -> str:
    if at < 0:
        return ""
    index = tuple(int(i) for i in np.unravel_index(at, tuple(expected.shape)))
    where = ", ".join(map(str, index))
    if not is_float(dtype):
        return f"{name}[{where}] = {flat[at]}, expected {expected[index]}"
    have = to_float64(Tensor(dtype, flat[at : at + 1]))[0]
    return f"{name}[{where}] = {have:.9g}, expected {float(expected[index]):.9g}"


def _chunks(array: Any) -> Iterator[Any]:
    flat = elements(array)
    for start in range(0, size_of(array), CHUNK):
        yield flat[start : start + CHUNK]

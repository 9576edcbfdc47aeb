"""Is an output right? Elementwise against a float64 reference, a chunk at a time.

Two things are asked. Every element must lie within the tolerance, which is the workload's or a
default by dtype. And the largest error, relative to the output's magnitude, must be at most twice
that of the kernel as it stood, unless both drown in the dtype's rounding: otherwise a candidate
could spend precision that nobody offered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .arrays import is_float, to_float64
from .languages import Tensor

CHUNK = 1 << 20
"""Elements compared at a time: 8 MiB of float64."""

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


def root_mean_square(expected: np.ndarray) -> float:
    """Over the finite elements; 0 if there are none."""
    total, count = 0.0, 0
    for part in _chunks(expected):
        finite = part[np.isfinite(part)]
        total += float(np.dot(finite, finite))
        count += finite.size
    return math.sqrt(total / count) if count else 0.0


def compare(
    name: str,
    actual: Tensor,
    expected: np.ndarray,
    dtype: str,
    declared: dict[str, float] | None,
) -> Difference:
    """`expected` holds float64 (or, for integers, the dtype itself); shapes and dtypes must match.

    NaN equals only an expected NaN, infinity only an expected infinity of the same sign, where an
    expected value too large for the dtype counts as infinity.
    """
    if actual.array.shape != expected.shape or actual.dtype != dtype:
        got = f"{actual.dtype}{list(actual.array.shape)}"
        whole = f"{name} is {got}, expected {dtype}{list(expected.shape)}"
        return Difference(name, expected.size, expected.size, math.inf, math.inf, whole)
    floating = is_float(dtype)
    rms = root_mean_square(expected) if floating else 0.0
    tolerance = tolerance_for(dtype, rms, declared)
    wrong, max_abs, worst_error, worst_index = 0, 0.0, 0.0, -1
    flat = np.ascontiguousarray(actual.array).reshape(-1)
    reference = np.ascontiguousarray(expected).reshape(-1)
    for start in range(0, reference.size, CHUNK):
        part = slice(start, start + CHUNK)
        if floating:
            have = to_float64(Tensor(dtype, flat[part]))
            want = _rounded_to_infinity(reference[part], dtype)
            bad, gap, error = _float_gap(have, want, tolerance, rms)
        else:
            bad = flat[part] != reference[part]
            gap = np.abs(flat[part].astype(np.float64) - reference[part].astype(np.float64))
            error = bad.astype(np.float64)
        wrong += int(np.count_nonzero(bad))
        max_abs = max(max_abs, float(gap.max(initial=0.0)))
        at = int(error.argmax()) if error.size else 0
        if error.size and float(error[at]) > worst_error:
            worst_error, worst_index = float(error[at]), start + at
    first = _element(name, flat, reference, expected.shape, worst_index, dtype)
    return Difference(name, wrong, reference.size, max_abs, worst_error, first)


def _float_gap(
    have: np.ndarray, want: np.ndarray, tolerance: Tolerance, rms: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Wrong elements, absolute gaps and relative errors; the latter infinite where no number fits."""
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(have - want)
        same = (have == want) | (np.isnan(have) & np.isnan(want))
        finite = np.isfinite(have) & np.isfinite(want)
        gap = np.where(same, 0.0, np.where(finite, gap, np.inf))
        bad = gap > tolerance.atol + tolerance.rtol * np.where(finite, np.abs(want), 0.0)
        scale = np.where(finite, np.abs(want), 0.0) + rms
        error = np.where(gap == 0.0, 0.0, gap / np.maximum(scale, np.finfo(np.float64).tiny))
    return bad, gap, error


def _rounded_to_infinity(want: np.ndarray, dtype: str) -> np.ndarray:
    largest = {
        "float64": np.finfo(np.float64).max,
        "float32": float(np.finfo(np.float32).max),
        "float16": 65504.0,
        "bfloat16": 3.3895313892515355e38,
        "float8_e4m3fn": 448.0,
        "float8_e5m2": 57344.0,
    }[dtype]
    return np.where(np.abs(want) > largest, np.sign(want) * np.inf, want)


def _element(
    name: str, flat: np.ndarray, reference: np.ndarray, shape: tuple[int, ...], at: int, dtype: str
) -> str:
    if at < 0:
        return ""
    where = ", ".join(str(int(i)) for i in np.unravel_index(at, shape)) if shape else ""
    if not is_float(dtype):
        return f"{name}[{where}] = {flat[at]}, expected {reference[at]}"
    have = to_float64(Tensor(dtype, flat[at : at + 1]))[0]
    return f"{name}[{where}] = {have:.9g}, expected {reference[at]:.9g}"


def _chunks(array: np.ndarray) -> list[np.ndarray]:
    flat = array.reshape(-1)
    return [flat[start : start + CHUNK] for start in range(0, flat.size, CHUNK)]

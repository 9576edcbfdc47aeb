"""Numbers as people read them: latency, ratio, size, age. Each keeps the digits that were measured."""

from __future__ import annotations

from datetime import datetime

_LATENCIES = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns"))
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def latency_pair(before_us: float, after_us: float) -> tuple[str, str, str]:
    """Both latencies in one unit, and the unit: the largest in which the smaller is at least 1."""
    smaller = min(before_us, after_us)
    scale, unit = next((pair for pair in _LATENCIES if smaller >= pair[0]), _LATENCIES[-1])
    return _three_digits(before_us / scale), _three_digits(after_us / scale), unit


def _three_digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio_triple(middle: float, low: float, high: float) -> tuple[str, str, str]:
    """A ratio and its interval with equal decimals: three near 1, where the third one decides."""
    if min(abs(value - 1) for value in (middle, low, high)) < 0.05:
        decimals = 3
    else:
        decimals = 1 if middle >= 10 else 2
    return f"{middle:.{decimals}f}", f"{low:.{decimals}f}", f"{high:.{decimals}f}"


def percent(share: float) -> str:
    """0.95 as `95 %`, 0.999 as `99.9 %`."""
    return f"{share * 100:.4g} %"


def resource(name: str, value: int | None) -> str:
    """A resource of a build; None is `unavailable`, never 0. Names ending in `bytes` are sizes."""
    if value is None:
        return "unavailable"
    if not name.endswith("bytes"):
        return f"{value:,}"
    for scale, unit in _SIZES:
        if value >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value} B"


def clock(at: str) -> str:
    """Local `2026-11-30 14:02:51` of a UTC ISO 8601 time; the text itself where it is not one."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return at
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def duration(seconds: float) -> str:
    """`4 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count(number: int, noun: str) -> str:
    """`1 kernel`, `3 kernels`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

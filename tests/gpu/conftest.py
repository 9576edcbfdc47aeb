"""Everything here needs a CUDA GPU; where there is none each test is skipped and says so."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def why_no_gpu() -> str:
    """Empty if the driver shows a GPU, else what is missing. Needs no torch."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no CUDA GPU: libcuda.so.1 is not installed"
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return "no CUDA GPU: the driver does not start"
    return "" if count.value else "no CUDA GPU: the driver shows none"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    reason = why_no_gpu() if ours else ""
    for item in ours:
        item.add_marker(pytest.mark.gpu)
        item.add_marker(pytest.mark.timeout(300))
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))

"""The environment a worker starts with: a short allow-list, and a home of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

KEPT = frozenset(
    {
        "PATH",
        "LANG",
        "LC_ALL",
        "TZ",
        "CC",
        "CXX",
        "CUDA_HOME",
        "CUDA_PATH",
        "CUDA_VISIBLE_DEVICES",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "PYTHONUSERBASE",
        "VIRTUAL_ENV",
        "OMP_NUM_THREADS",
    }
)
"""What a toolchain needs to find itself. Keys and tokens live under other names."""

KEPT_PREFIXES = ("TRITON_", "OCL_ICD_", "POCL_", "NVIDIA_", "LC_")


def worker_environment(
    own: Mapping[str, str], added: Mapping[str, str], home: Path
) -> dict[str, str]:
    """Variables for a worker, from the daemon's own and those the settings add.

    `home` stands in for the person's home folder, so that caches stay in scratch; packages they
    installed with `pip install --user` go on being found.
    """
    kept = {
        name: value for name, value in own.items() if name in KEPT or name.startswith(KEPT_PREFIXES)
    }
    if "HOME" in own:
        kept.setdefault("PYTHONUSERBASE", str(Path(own["HOME"]) / ".local"))
    return {
        **kept,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "TMPDIR": str(home),
        "PYTHONUNBUFFERED": "1",
        "PYOPENCL_NO_CACHE": "1",
        **added,
    }

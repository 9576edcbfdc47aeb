"""What holds for the whole project: directions of imports at run time, and whose packages these are."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("klineage_tui", "daemon", "library", "gate", "sample_kernels")


@pytest.mark.parametrize("package", PACKAGES)
def test_the_package_of_this_name_is_ours(package: str) -> None:
    # python-daemon also installs a package called `daemon`.
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert [Path(place) for place in spec.submodule_search_locations or ()] == [ROOT / package]


def test_the_window_loads_neither_gate_nor_library_nor_torch() -> None:
    heavy = {"gate", "library", "torch", "triton", "numpy", "pyopencl", "watchdog", "openai"}
    code = "import sys, klineage_tui.app; print('\\n'.join({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert heavy.isdisjoint(loaded.stdout.split())


def test_the_daemon_at_rest_loads_no_device_runtime() -> None:
    heavy = {"torch", "triton", "numpy", "pyopencl", "textual", "openai"}
    code = "import sys, daemon.supervisor; print('\\n'.join({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert heavy.isdisjoint(loaded.stdout.split())


def test_no_module_is_named_after_a_drawer() -> None:
    drawers = {"utils", "util", "common", "helpers", "misc", "constants"}
    named = [
        path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if drawers & {path.stem, path.parent.name}
    ]
    assert named == []


def test_nothing_sleeps_and_nothing_is_left_undone() -> None:
    found = []
    for package in ("klineage_tui", "daemon", "library", "gate", "tests"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and node.attr == "sleep":
                    owner = node.value.id if isinstance(node.value, ast.Name) else ""
                    # The blocking client waits for a daemon it has just started.
                    if owner == "time" and path != ROOT / "daemon" / "call.py":
                        found.append(f"{path.relative_to(ROOT)}:{node.lineno} time.sleep")
                if isinstance(node, ast.Name) and node.id == "NotImplementedError":
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} NotImplementedError")
    assert found == []

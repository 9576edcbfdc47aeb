"""`klineage demo`: what a newcomer runs first."""

from __future__ import annotations

import json

import pytest
from person import QUICK, living

pytestmark = [pytest.mark.serial, pytest.mark.timeout(240)]

SETTINGS = f"""
{QUICK}
[daemon]
gate_at_start = 0
[library]
disabled = ["opencl.[!cv]*", "opencl.coarsen-[!r]*", "opencl.*-4", "opencl.vector-columns-8"]
"""
"""Only what is asked for is gated, and of the skills for it the two that the demo ends with."""


def test_the_demo_measures_a_fourfold_gain_and_takes_it_back() -> None:
    with living(SETTINGS, samples={}) as person:
        done = json.loads(person.run("demo", "--json", "--language", "opencl").stdout)
    told = json.dumps(done["steps"], indent=1)
    total = done["total"]
    assert total["status"] == "faster", told
    assert total["tier"] == "confirm"
    assert total["timings"][0]["speedup"] >= 4.0, told
    assert done["applied"] >= 1
    assert done["identical_after_undo"] is True

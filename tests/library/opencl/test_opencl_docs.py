"""docs/opencl.md lists what there is."""

from __future__ import annotations

import re
from pathlib import Path

import opencl_cases as cases
from opencl_builders import SHIPPED, target_of

from library.facts.opencl import OpenCLAnalysis

PAGE = (Path(__file__).parents[3] / "docs" / "opencl.md").read_text("utf-8")


def test_every_fact_is_listed_and_every_listed_fact_exists() -> None:
    analysis = target_of(cases.SGEMM.files()).analysis
    assert isinstance(analysis, OpenCLAnalysis)
    table = PAGE.split("## Facts")[1].split("\nStrides are")[0]
    assert set(re.findall(r"`(\w+)\(", table)) == set(analysis.facts)


def test_every_skill_is_listed() -> None:
    listed = PAGE.split("## Transforms")[1].split("\nExtents need")[0]
    for folder in SHIPPED.glob("opencl-*"):
        name = folder.name.removeprefix("opencl-")
        stem, _, factor = name.rpartition("-")
        assert name in listed or (f"`-{factor}`" in listed and stem in listed), name

"""One person for a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from person import ONE_SKILL, QUICK, Person, living


@pytest.fixture
def person() -> Iterator[Person]:
    """A person in a hurry, with a small GEMM and the one skill that gains most on it."""
    with living(QUICK + ONE_SKILL) as someone:
        yield someone

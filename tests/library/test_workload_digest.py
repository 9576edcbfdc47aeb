"""What of a workload file judges a kernel."""

from __future__ import annotations

import pytest

from gate.values.workload import Workload
from library.workload_digest import judging_digest

SOURCE = """
SHAPES = [{"M": 256}]

def make_inputs(M, seed):
    return {}

def launch_scale(axes):
    return {"global": (axes["M"],)}
"""


def digest_of(text: str) -> str:
    return judging_digest(Workload("workload.py", text.encode()))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"global": (axes["M"],)}', '{"global": (axes["M"] // 4,)}'),
        ("def launch_scale", "def launch_add(axes):\n    return {}\n\ndef launch_scale"),
        ("SHAPES = ", "# every shape we serve\nSHAPES = "),
    ],
)
def test_a_launch_a_comment_and_layout_judge_nothing(before: str, after: str) -> None:
    assert digest_of(SOURCE.replace(before, after)) == digest_of(SOURCE)


@pytest.mark.parametrize(
    ("before", "after"),
    [("256", "512"), ("return {}", 'return {"x": 1}'), ("make_inputs", "make_other_inputs")],
)
def test_shapes_and_inputs_judge(before: str, after: str) -> None:
    assert digest_of(SOURCE.replace(before, after)) != digest_of(SOURCE)


def test_a_file_that_does_not_parse_stands_for_itself() -> None:
    broken = Workload("workload.py", b"def make_inputs(:\n")
    assert judging_digest(broken) == broken.digest

"""Every shipped Triton skill on kernels it was not written for, run in Triton's interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from triton_builders import Subject, applies, edited, subject, target, workload

GEMM_SHAPES = [[[130, 72], [72, 40]], [[256, 128], [128, 128]], [[65, 33], [33, 129]]]
LINEAR_SHAPES = [[[130, 72], [72, 40], [40]], [[64, 64], [64, 136], [136]]]
ROW_SHAPES = [[[5, 500]], [[3, 1024]], [[2, 257]]]
NORM_SHAPES = [[[5, 500], [500]], [[2, 257], [257]]]

OPERATORS = {
    "gemm_naive": ("gemm", GEMM_SHAPES),
    "linear_relu": ("linear", LINEAR_SHAPES),
    "scores": ("scores", GEMM_SHAPES),
    "softmax_naive": ("softmax", ROW_SHAPES),
    "softmax_temperature": ("softmax_temperature", ROW_SHAPES),
    "log_softmax": ("log_softmax", ROW_SHAPES),
    "rms_norm": ("rms_norm", NORM_SHAPES),
}

TILE, WIDE = "triton.gemm-tile-128x128x64", "triton.gemm-tile-128x256x64"
GROUP, EVEN, DOT = "triton.grouped-order", "triton.even-k", "triton.dot-accumulate"
TMA, PERSISTENT, STAGES = (
    "triton.tensor-descriptors",
    "triton.persistent-grid",
    "triton.num-stages-4",
)
ROW, ONLINE, HINTS = "triton.whole-row", "triton.online-softmax", "triton.eviction-hints"
ALIGN, WARP = "triton.row-alignment", "triton.row-warps-1"

CHAINS: list[tuple[str, tuple[str, ...]]] = [
    *[("gemm_naive", (skill,)) for skill in (TILE, WIDE, GROUP, EVEN, DOT, TMA, STAGES)],
    *[("linear_relu", (skill,)) for skill in (TILE, GROUP, EVEN, DOT, TMA, STAGES)],
    *[("scores", (skill,)) for skill in (TILE, EVEN, DOT, TMA, STAGES)],
    ("gemm_naive", (TILE, GROUP, DOT, EVEN, TMA, PERSISTENT)),
    ("gemm_naive", (TILE, WIDE, STAGES, TMA, PERSISTENT, GROUP, DOT)),
    ("gemm_naive", (TMA, WIDE, GROUP, DOT)),
    ("linear_relu", (TILE, EVEN, TMA, GROUP)),
    ("scores", (TMA, TILE, PERSISTENT)),
    *[("softmax_naive", (skill,)) for skill in (ROW, ONLINE, HINTS, WARP)],
    *[("softmax_temperature", (skill,)) for skill in (ROW, ONLINE, HINTS, WARP)],
    *[("log_softmax", (skill,)) for skill in (ROW, ONLINE, HINTS, WARP)],
    *[("rms_norm", (skill,)) for skill in (ROW, HINTS, WARP)],
    ("softmax_naive", (ONLINE, HINTS, ROW)),
    ("log_softmax", (HINTS, ONLINE, WARP)),
]


def chained(start: Subject, skills: Sequence[str]) -> str:
    """The source after the skills, each of whose conditions must hold where it is applied."""
    source = start.source
    for skill in skills:
        on = target(source, start.workload, path=start.path)
        assert applies(skill, on), f"{skill} does not apply after {skills[: skills.index(skill)]}"
        source = edited(skill, on)
    return source


def interpret(jobs: list[dict[str, object]]) -> dict[str, float | str]:
    """Largest relative error by name, or the traceback."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("interpret.py"))],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, float | str] = json.loads(done.stdout)
    return answers


def label(case: tuple[str, tuple[str, ...]]) -> str:
    return f"{case[0]}: {' > '.join(skill.removeprefix('triton.') for skill in case[1])}"


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float | str]:
    """Every chain, materialized once and run in one interpreter process."""
    folder = tmp_path_factory.mktemp("candidates")
    jobs: list[dict[str, object]] = []
    for number, case in enumerate(CHAINS):
        path = folder / f"candidate_{number}.py"
        path.write_text(chained(subject(case[0]), case[1]))
        operator, shapes = OPERATORS[case[0]]
        jobs.append(
            {
                "name": label(case),
                "path": str(path),
                "operator": operator,
                "shapes": shapes,
                "strided": False,
            }
        )
        if TMA in case[1]:
            jobs.append({**jobs[-1], "name": f"{label(case)}, strided", "strided": True})
    return interpret(jobs)


@pytest.mark.parametrize("case", CHAINS, ids=label)
def test_candidate_agrees_with_the_reference_at_ragged_shapes(
    case: tuple[str, tuple[str, ...]], errors: dict[str, float | str]
) -> None:
    answer = errors[label(case)]
    assert isinstance(answer, float), answer
    assert answer < 2e-3


STRIDED = [case for case in CHAINS if TMA in case[1] and case[0] != "scores"]
"""`scores` takes no column strides, before or after."""


@pytest.mark.parametrize("case", STRIDED, ids=label)
def test_descriptor_candidate_falls_back_to_pointers_for_strided_operands(
    case: tuple[str, tuple[str, ...]], errors: dict[str, float | str]
) -> None:
    answer = errors[f"{label(case)}, strided"]
    assert isinstance(answer, float), answer
    assert answer < 2e-3


@pytest.mark.parametrize("name", ["softmax_naive", "softmax_temperature", "rms_norm"])
def test_row_alignment_is_right_whatever_divides_the_row(name: str, tmp_path: Path) -> None:
    inputs = "x: (rows, cols), w: (cols)" if name == "rms_norm" else "x: (rows, cols)"
    start = subject(name)
    on = target(start.source, workload(inputs, "rows=8192 cols=1000"), path=start.path)
    assert applies(ALIGN, on)
    path = tmp_path / "aligned.py"
    path.write_text(edited(ALIGN, on))
    operator, shapes = OPERATORS[name]
    widths = [[[5, 1000]], [[5, 1008]], [[5, 257]], [[5, 20]]]
    rows = [[shape[0], [shape[0][1]]] for shape in widths] if name == "rms_norm" else widths
    job = {"name": name, "path": str(path), "operator": operator, "strided": False}
    answer = interpret([{**job, "shapes": [*shapes, *rows]}])[name]
    assert isinstance(answer, float), answer
    assert answer < 2e-3


def test_sources_outside_the_edit_keep_every_byte() -> None:
    start = subject("linear_relu")
    after = chained(start, (TMA,))
    kept = [
        line
        for line in start.source.splitlines()
        if "tl.load(" not in line and "def linear_kernel" not in line
    ]
    lines = iter(after.splitlines())
    assert all(any(line == other for other in lines) for line in kept)

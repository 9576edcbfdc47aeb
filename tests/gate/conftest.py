"""One gate over one worktree for all tests here: it goes by bytes, so tests do not meet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gate_builders import Worktree

from gate.evaluate import AS_IT_STANDS, Budget, Gate
from gate.settings import ConfirmSettings, DeadlineSettings, GateSettings, ScreenSettings
from gate.values.candidate import Candidate
from gate.values.kernel import Language
from gate.values.platform import Platform
from gate.values.verdict import Tier, Verdict

QUICK = GateSettings(
    screen=ScreenSettings(blocks=5, cell_ms=4.0, seconds=0.0),
    confirm=ConfirmSettings(cell_ms=2.0, seeds=3, processes=6, processes_max=6, blocks=1),
    deadlines=DeadlineSettings(run_floor_s=2.0, reference_s=3.0),
)
"""Short cells and short deadlines; enough where an answer is right or wrong."""

Evaluate = Callable[..., Verdict]


@pytest.fixture(scope="session")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    base = tmp_path_factory.mktemp("gate")
    settings = GateSettings(
        screen=QUICK.screen,
        confirm=QUICK.confirm,
        deadlines=QUICK.deadlines,
        device_lock=str(base / "device.lock"),
    )
    made = Gate(base / "worktree", settings, base / "scratch")
    yield made
    made.close()


@pytest.fixture(scope="session")
def platform(gate: Gate) -> Platform:
    return gate.platform(Language.OPENCL)


@pytest.fixture
def worktree(gate: Gate) -> Callable[..., Worktree]:
    """Builds a worktree under the gate's root, with the defaults of `Worktree`."""

    def build(**parts: object) -> Worktree:
        return Worktree(gate._root, **parts)  # type: ignore[arg-type]

    return build


@pytest.fixture
def evaluate(gate: Gate, platform: Platform) -> Evaluate:
    """Evaluates a worktree's kernel, at tier screen and as it stands unless told otherwise."""

    def run(
        tree: Worktree,
        candidate: Candidate = AS_IT_STANDS,
        tier: Tier = Tier.SCREEN,
        stop: threading.Event | None = None,
        budget: Budget | None = None,
    ) -> Verdict:
        return gate.evaluate(
            tree.kernel,
            candidate,
            tree.workload,
            platform,
            tier,
            budget or Budget(),
            stop or threading.Event(),
        )

    return run


@pytest.fixture
def scratch_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder

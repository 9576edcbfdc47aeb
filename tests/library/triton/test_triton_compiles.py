"""What the compiler makes of candidates for sm_90a: the claims of the cards, read in the PTX."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from triton_builders import edited, subject, target, workload

UNIT = {"stride_ak": 1, "stride_bn": 1, "stride_cn": 1}
TILE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8, "EVEN_K": True}


def after(name: str, *skills: str, declared: str = "") -> str:
    start = subject(name)
    source = start.source
    for skill in skills:
        on = target(source, declared or start.workload, path=start.path)
        source = edited(f"triton.{skill}", on)
    return source


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    folder = tmp_path_factory.mktemp("compiled")
    odd = workload("x: (rows, cols)", "rows=8192 cols=1000")
    tiled = ("gemm-tile-128x128x64", "grouped-order", "even-k", "tensor-descriptors")
    gemm = {"kernel": "gemm_kernel", "unaligned": [], "options": {"num_warps": 8}}
    row = {
        "kernel": "softmax_kernel",
        "descriptors": {},
        "unaligned": ["stride_x", "stride_y", "n_cols"],
        "options": {"num_warps": 4},
    }
    descriptors = {"a_desc": [128, 64], "b_desc": [64, 128]}
    absent = {"a_desc": None, "b_desc": None}
    chain = after("gemm_naive", *tiled)
    jobs = {
        "pointers": (after("gemm_naive", *tiled[:1]), gemm | {"constants": TILE | UNIT, "descriptors": {}}),
        "descriptors": (chain, gemm | {"constants": TILE | UNIT, "descriptors": descriptors}),
        "fallback": (chain, gemm | {"constants": TILE | UNIT | absent, "descriptors": {}}),
        "persistent": (
            after("gemm_naive", *tiled, "persistent-grid"),
            gemm | {"constants": TILE | UNIT, "descriptors": descriptors},
        ),
        "adds": (subject("gemm_naive").source, gemm | {"constants": TILE | UNIT, "descriptors": {}}),
        "row": (after("softmax_naive", "whole-row"), row | {"constants": {"BLOCK": 1024}}),
        "aligned row": (
            after("softmax_naive", "row-alignment", "whole-row", declared=odd),
            row | {"constants": {"BLOCK": 1024, "ALIGN": 8}},
        ),
        "hints": (after("softmax_naive", "eviction-hints"), row | {"constants": {"BLOCK": 256}}),
        "online": (after("softmax_naive", "online-softmax"), row | {"constants": {"BLOCK": 256}}),
    }  # fmt: skip
    given = []
    for name, (source, job) in jobs.items():
        path = folder / f"{name.replace(' ', '_')}.py"
        path.write_text(source)
        given.append({"name": name, "path": str(path), **job})
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("compile_candidate.py"))],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        env={**environment, "TRITON_CACHE_DIR": str(folder / "cache")},
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, dict[str, int]] = json.loads(done.stdout)
    return answers


def test_descriptors_become_tma_loads_that_feed_wgmma(built: dict[str, dict[str, int]]) -> None:
    assert built["descriptors"]["tma"] > 0
    assert built["descriptors"]["wgmma"] > 0
    assert built["descriptors"]["cp_async"] == 0


def test_without_descriptors_the_same_kernel_keeps_its_pointer_path(
    built: dict[str, dict[str, int]],
) -> None:
    assert built["fallback"]["tma"] == 0
    assert built["fallback"]["cp_async"] > 0


def test_stages_take_the_shared_memory_the_card_counts(built: dict[str, dict[str, int]]) -> None:
    counted = 3 * (128 * 64 + 64 * 128) * 2
    assert counted <= built["pointers"]["shared"] <= counted + 4096


def test_a_persistent_candidate_compiles_with_its_flattened_loop(
    built: dict[str, dict[str, int]],
) -> None:
    assert built["persistent"]["tma"] > 0
    assert built["persistent"]["wgmma"] > 0


def test_row_alignment_turns_scalar_loads_into_vectors(built: dict[str, dict[str, int]]) -> None:
    assert built["row"]["vector_loads"] == 0
    assert built["row"]["scalar_loads"] > 0
    assert built["aligned row"]["vector_loads"] > 0
    assert built["aligned row"]["scalar_loads"] == 0


def test_eviction_hints_reach_the_ptx(built: dict[str, dict[str, int]]) -> None:
    assert built["hints"]["evict_first"] > 0
    assert built["online"]["evict_first"] == 0

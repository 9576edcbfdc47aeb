"""Kernels a skill must not fire on, each one step away from one it fires on."""

from __future__ import annotations

import pytest
from triton_builders import HOPPER, applies, edited, hopper, subject, target, unmet, workload

from library.edits import Refusal
from library.transforms.triton import TRANSFORMS

NAIVE = subject("gemm_naive")
SOFTMAX = subject("softmax_naive")
LINEAR = subject("linear_relu")


def changed(source: str, *edits: tuple[str, str]) -> str:
    for before, after in edits:
        assert before in source, before
        source = source.replace(before, after)
    return source


GEMM_MISSES: list[tuple[str, tuple[tuple[str, str], ...], str]] = [
    # (skill, edits of the naive GEMM, the condition that must not hold)
    ("gemm-tile-128x128x64", (("BLOCK_M=64", "BLOCK_M=128"), ("BLOCK_N=64", "BLOCK_N=256")), "grows"),
    ("gemm-tile-128x128x64", (('meta["BLOCK_M"]', "64"),), "grid-follows"),
    ("gemm-tile-128x128x64", ((", mask=c_mask", ""),), "masked"),
    ("gemm-tile-128x128x64", (("BLOCK_M=64", "BLOCK_M=pick(M)"),), "tile-written"),
    ("gemm-tile-128x128x64", (("dtype=tl.float32", "dtype=tl.float16"),), "accumulator"),
    (
        "gemm-tile-128x128x64",
        (("    return c\n", "    gemm_kernel[grid](a, b, c, M, N, K, 1, 1, 1, 1, 1, 1)\n    return c\n"),),
        "one-launch",
    ),
    ("grouped-order", (("    offs_m =", "    last = tl.program_id(0) == 7\n    offs_m ="),), "plain-order"),
    ("grouped-order", (("tl.store(c_ptrs, acc", "tl.atomic_add(c_ptrs, acc"),), "any-order"),
    (
        "grouped-order",
        (("pid_m = tl.program_id(0)", "pid_m = tl.num_programs(0) - 1 - tl.program_id(0)"),),
        "plain-order",
    ),
    ("grouped-order", (("tl.program_id(1)", "tl.program_id(2)"),), "plain-order"),
    ("even-k", (("offs_k[None, :] < K - k", "offs_k[None, :] < limit - k"),), "tail-term"),
    ("even-k", (("offs_k[None, :] < K - k", "offs_k[None, :] <= K - k"),), "tail-term"),
    ("even-k", (("< K - k * BLOCK_K) & (offs_n", "< K - k * BLOCK_M) & (offs_n"),), "tail-term"),
    ("even-k", (("BLOCK_K=32", "BLOCK_K=48"),), "divides"),
    (
        "even-k",
        (("@triton.jit\n", ""), ("\n\ndef gemm(", "\n\ngemm_kernel = triton.jit(gemm_kernel)\n\n\ndef gemm(")),
        "heuristic",
    ),
    ("dot-accumulate", (("acc += tl.dot(a, b)", "acc = tl.dot(a, b, acc)"),), "adds"),
    ("dot-accumulate", (("acc += tl.dot(a, b)", "acc += 2 * tl.dot(a, b)"),), "product"),
    ("dot-accumulate", (("dtype=tl.float32", "dtype=tl.float16"),), "accumulator"),
    ("tensor-descriptors", (("offs_m[:, None] * stride_am", "offs_m[:, None] * K"),), "whole-matrices"),
    ("tensor-descriptors", (("a_ptr + offs_m", "a_ptr + pid_n + offs_m"),), "whole-matrices"),
    ("tensor-descriptors", (("(offs_m[:, None] < M) & (offs_k", "(offs_m[:, None] < N) & (offs_k"),), "whole-matrices"),
    ("tensor-descriptors", (("a_ptrs += BLOCK_K * stride_ak", "a_ptrs += 2 * BLOCK_K * stride_ak"),), "whole-matrices"),
    ("tensor-descriptors", (("        a.stride(0)", "        b.stride(0)"),), "whole-matrices"),
    ("tensor-descriptors", (("BLOCK_K=32", "BLOCK_K=max(16, 32)"),), "host-knows-tile"),
    (
        "tensor-descriptors",
        (("    pid_m =", "    M = M - 1\n    pid_m ="),),
        "whole-matrices",
    ),
    (
        "tensor-descriptors",
        (("mask=a_mask, other=0.0", "mask=a_mask, other=1.0"),),
        "whole-matrices",
    ),
    ("even-k", (("a_ptrs, mask=a_mask", "a_ptrs, a_mask"),), "tail-term"),
    ("persistent-grid", (), "requires"),
    ("num-stages-4", (("BLOCK_K=32", "BLOCK_K=32,\n        num_stages=5"),), "fewer"),
    ("num-stages-4", (("BLOCK_K=32", "BLOCK_K=1024"),), "shared-memory"),
    ("num-stages-4", (("BLOCK_K=32", "BLOCK_K=32,\n        num_stages=pick(K)"),), "written"),
    ("num-warps-8", (), "large-tile"),
    ("num-warps-4", (), "eight"),
    ("dot-accumulate", (("acc += tl.dot(a, b)", "acc = acc + tl.dot(a, b) * 0.5"),), "product"),
    ("dot-accumulate", (("acc += tl.dot(a, b)", "acc = acc + tl.dot(a, b) + 1.0"),), "product"),
    ("gemm-tile-128x128x64", (("acc += tl.dot(a, b)", "acc += tl.dot(a, b)\n        acc *= 0.5"),), "product"),
    ("gemm-tile-128x128x64", (("    acc = tl.zeros", "    steps = 0\n    acc = tl.zeros"), ("        a_ptrs +=", "        steps += 1\n        a_ptrs +="), ("acc.to(c", "(acc * steps).to(c")), "masked"),
    ("gemm-tile-128x128x64", (('triton.cdiv(M, meta["BLOCK_M"])', 'M // meta["BLOCK_M"]'),), "grid-follows"),
    ("gemm-tile-128x128x64", (('triton.cdiv(M, meta["BLOCK_M"])', 'triton.cdiv(M, meta["BLOCK_M"]) - 1'),), "grid-follows"),
    ("gemm-tile-128x128x64", (("mask=a_mask, other=0.0", "mask=a_mask, other=1.0"),), "masked"),
    ("gemm-tile-128x128x64", (("mask=b_mask, other=0.0", "mask=b_mask"),), "masked"),
    ("gemm-tile-128x128x64", (("(offs_m[:, None] < M) & (offs_n", "(tl.arange(0, BLOCK_M)[:, None] < M) & (offs_n"),), "masked"),
    ("gemm-tile-128x128x64", (("    c_ptrs =", "    tl.store(c_ptr + pid_m, tl.sum(tl.sum(acc, 1), 0))\n    c_ptrs ="),), "masked"),
    ("gemm-tile-128x128x64", (("        a = tl.load", "        s = tl.load(c_ptr + k)\n        a = tl.load"),), "masked"),
    ("gemm-tile-128x128x64", (("\n\ndef gemm(", "\n\nTILE = 64\nOTHER = TILE * 2\n\n\ndef gemm("), ("BLOCK_M=64", "BLOCK_M=TILE")), "tile-written"),
    ("grouped-order", (("\n@triton.jit\ndef gemm", "\n@triton.jit\ndef count(p):\n    tl.atomic_add(p, 1.0)\n\n\n@triton.jit\ndef gemm"), ("    c_ptrs =", "    count(c_ptr)\n    c_ptrs =")), "any-order"),
    ("grouped-order", (("\n@triton.jit\ndef gemm", "\n@triton.jit\ndef mine():\n    return tl.program_id(0)\n\n\n@triton.jit\ndef gemm"), ("    c_ptrs =", "    acc += mine()\n    c_ptrs =")), "any-order"),
]  # fmt: skip


@pytest.mark.parametrize(("skill", "edits", "condition"), GEMM_MISSES)
def test_a_near_miss_of_a_gemm_skill_is_not_offered(
    skill: str, edits: tuple[tuple[str, str], ...], condition: str
) -> None:
    on = target(changed(NAIVE.source, *edits), NAIVE.workload)
    assert not applies(f"triton.{skill}", on)
    assert condition in unmet(f"triton.{skill}", on)


ROW_MISSES: list[tuple[str, tuple[tuple[str, str], ...], str]] = [
    ("whole-row", (("tl.store(y_ptr + row * stride_y + offs, y.to(y_ptr.dtype.element_ty), mask=offs < n_cols)", "tl.store(y_ptr + row * stride_y + offs, y.to(y_ptr.dtype.element_ty))"),), "masked"),
    ("whole-row", (("BLOCK=256", "BLOCK=pick(n_cols)"),), "written"),
    ("whole-row", (("mask=offs < n_cols, other", "mask=offs < n_cols - 1, other"),), "masked"),
    ("online-softmax", (("    row_sum = 0.0\n", "    row_sum = 1.0\n"),), "two-passes"),
    ("online-softmax", (("    row_sum = 0.0\n", "    row_max = row_max * 2\n    row_sum = 0.0\n"),), "two-passes"),
    ("online-softmax", (("- row_max), axis=0)", "- row_max) * 2, axis=0)"),), "two-passes"),
    ("eviction-hints", (('other=-float("inf"))', 'other=-float("inf"), eviction_policy="evict_last")'),), "provides"),
    ("row-warps-1", (("BLOCK=256", "BLOCK=1024"),), "narrow"),
    ("row-warps-1", (("BLOCK=256", "BLOCK=256, num_warps=1"),), "more"),
    ("row-alignment", (), "not-sixteen"),
    ("row-warps-8", (), "whole-row"),
    ("whole-row", (("        row_sum += tl.sum(", "        row_sum = row_sum * 0.5 + tl.sum("),), "written"),
    ("whole-row", (("        y = tl.exp(", "        step = tl.max(x, axis=0)\n        y = step * tl.exp("),), "written"),
    ("whole-row", ((', other=-float("inf")', ""),), "masked"),
    ("online-softmax", (("row_max, tl.max(x.to(tl.float32), axis=0)", "row_max, tl.max(x.to(tl.float32), axis=0, keep_dims=True)"),), "two-passes"),
]  # fmt: skip


@pytest.mark.parametrize(("skill", "edits", "condition"), ROW_MISSES)
def test_a_near_miss_of_a_row_skill_is_not_offered(
    skill: str, edits: tuple[tuple[str, str], ...], condition: str
) -> None:
    on = target(changed(SOFTMAX.source, *edits), SOFTMAX.workload)
    assert not applies(f"triton.{skill}", on)
    assert condition in unmet(f"triton.{skill}", on)


@pytest.mark.parametrize(
    "body",
    [
        "        offs = 2 * start + cols\n",
        "        offs = cols - start + cols\n",
        "        offs = start + cols\n        first = start\n",
    ],
)
def test_a_loop_that_uses_its_variable_otherwise_is_refused(body: str) -> None:
    source = changed(SOFTMAX.source, ("        offs = start + cols\n", body))
    on = target(source, SOFTMAX.workload)
    answer = TRANSFORMS["triton.whole-row"](on, {}, {})
    assert isinstance(answer, Refusal)


@pytest.mark.parametrize("leave", ["break", "continue", "return"])
def test_loops_that_are_left_early_are_not_straightened(leave: str) -> None:
    line = f"        offs = start + cols\n        if start > 4096:\n            {leave}\n"
    source = changed(SOFTMAX.source, ("        offs = start + cols\n", line))
    assert "passes" in unmet("triton.whole-row", target(source, SOFTMAX.workload))


def test_a_kernel_that_returns_early_is_not_made_persistent() -> None:
    with_descriptors = edited("triton.tensor-descriptors", target(NAIVE.source, NAIVE.workload))
    assert applies("triton.persistent-grid", target(with_descriptors, NAIVE.workload))
    early = changed(
        with_descriptors,
        ("    offs_m = pid", "    if pid_m > 99:\n        return\n    offs_m = pid"),
    )
    assert "two-axes" in unmet("triton.persistent-grid", target(early, NAIVE.workload))


def test_what_is_set_before_the_ids_would_last_from_tile_to_tile() -> None:
    zeroed = "    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)\n"
    ids = "    pid_m = tl.program_id(0)\n"
    source = changed(NAIVE.source, (zeroed, ""), (ids, zeroed + ids))
    with_descriptors = edited("triton.tensor-descriptors", target(source, NAIVE.workload))
    answer = TRANSFORMS["triton.persistent-grid"](target(with_descriptors, NAIVE.workload), {}, {})
    assert isinstance(answer, Refusal)
    assert "acc is set before" in answer.reason


def test_a_heuristic_cannot_read_a_stride_that_the_launch_leaves_out() -> None:
    norm = subject("rms_norm")
    source = changed(
        norm.source,
        ("stride, N, eps, BLOCK: tl.constexpr", "N, eps, BLOCK: tl.constexpr, stride=500"),
        ("x, w, y, x.stride(0), N, 1e-6", "x, w, y, N, 1e-6"),
    )
    on = target(source, workload("x: (rows, cols), w: (cols)", "rows=64 cols=500"))
    assert "rows" in unmet("triton.row-alignment", on)


def test_the_one_config_of_an_autotuner_is_edited_in_its_place() -> None:
    source = changed(
        NAIVE.source,
        (
            "@triton.jit\n",
            '@triton.autotune([triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32})], ["K"])\n'
            "@triton.jit\n",
        ),
        ("        BLOCK_M=64,\n        BLOCK_N=64,\n        BLOCK_K=32,\n", ""),
    )
    after = edited("triton.gemm-tile-128x128x64", target(source, NAIVE.workload))
    assert '"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}, num_warps=8)' in after
    assert after.count("num_warps") == 1


def test_rows_too_wide_for_one_block_keep_their_loops() -> None:
    on = target(SOFTMAX.source, workload("x: (rows, cols)", "rows=64 cols=4096,rows=64 cols=65536"))
    assert unmet("triton.whole-row", on) == {"width"}


@pytest.mark.parametrize(
    ("capability", "value", "skill", "condition"),
    [
        ("tma", False, "tensor-descriptors", "tma"),
        ("shared_memory_per_block_optin_bytes", 65536, "gemm-tile-128x128x64", "shared-memory"),
        ("l2_bytes", 512 * 2**20, "grouped-order", "exceeds-l2"),
        ("wgmma", False, "gemm-tile-128x256x64", "wgmma"),
        ("compute_units", 4096, "gemm-tile-128x128x64", "fills-the-gpu"),
    ],
)
def test_the_device_decides(capability: str, value: int, skill: str, condition: str) -> None:
    on = target(NAIVE.source, NAIVE.workload, platform=hopper(**{capability: value}))
    assert applies(f"triton.{skill}", target(NAIVE.source, NAIVE.workload))
    assert condition in unmet(f"triton.{skill}", on)


@pytest.mark.parametrize("capability", sorted(HOPPER.keys() & {"tma", "l2_bytes", "compute_units"}))
def test_an_unreported_capability_never_counts_as_met(capability: str) -> None:
    on = target(NAIVE.source, NAIVE.workload, platform=hopper(**{capability: None}))
    skill = {"tma": "tensor-descriptors", "l2_bytes": "grouped-order"}.get(
        capability, "gemm-tile-128x128x64"
    )
    assert not applies(f"triton.{skill}", on)


def test_without_a_workload_facts_of_the_launch_are_missing_and_nothing_is_offered() -> None:
    on = target(NAIVE.source)
    assert not applies("triton.tensor-descriptors", on)
    assert not applies("triton.gemm-tile-128x128x64", on)


def test_an_odd_row_stride_blocks_descriptors() -> None:
    on = target(NAIVE.source, workload(shapes="M=4096 N=4096 K=4095"))
    assert unmet("triton.tensor-descriptors", on) == {"rows-aligned"}


def test_several_autotune_configs_keep_launch_options_out_of_reach() -> None:
    source = changed(
        NAIVE.source,
        (
            "@triton.jit\n",
            '@triton.autotune(configs=[triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}), '
            'triton.Config({"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32})], key=["K"])\n@triton.jit\n',
        ),
        ("        BLOCK_M=64,\n        BLOCK_N=64,\n        BLOCK_K=32,\n", ""),
    )
    on = target(source, NAIVE.workload)
    assert {"tile-written", "not-tuned"} <= unmet("triton.gemm-tile-128x128x64", on)
    assert applies("triton.grouped-order", target(LINEAR.source, LINEAR.workload))


@pytest.mark.parametrize("name", ["gemm_expert", "softmax_expert"])
def test_an_expert_kernel_is_left_alone(name: str) -> None:
    from triton_builders import SHIPPED

    on = subject(name).target
    offered = [
        e.card.skill_id
        for e in SHIPPED.entries
        if e.card.skill_id.startswith("triton.") and applies(e.card.skill_id, on)
    ]
    assert offered == []

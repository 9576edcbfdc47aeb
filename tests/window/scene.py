"""A worktree as a daemon would tell of it: two files, three kernels, suggestions at every stage."""

from __future__ import annotations

from typing import Any

import msgspec

from daemon.protocol import (
    CheckView,
    ConditionView,
    EntryView,
    FeatureView,
    FileDiff,
    FileView,
    KernelView,
    Snapshot,
    StatusView,
    SuggestionView,
    TimingView,
    VerdictView,
)

GEMM = "kernels/gemm.cl::gemm"

BEFORE = """\
// C = A B, row-major; one work-item computes one element.
__kernel void gemm(__global const float *A, __global const float *B,
                   __global float *C, const int M, const int N, const int K)
{
    const int row = get_global_id(1);
    const int col = get_global_id(0);

    float acc = 0.0f;
    for (int k = 0; k < K; ++k)
        acc += A[row * K + k] * B[k * N + col];

    C[row * N + col] = acc;
}
"""

AFTER = """\
// C = A B, row-major; one work-item computes one element.
__kernel void gemm(__global const float *A, __global const float *B,
                   __global float *C, const int M, const int N, const int K)
{
    const int row = get_global_id(1);
    const int col = get_global_id(0) * 8;

    float8 acc = (float8)(0.0f);
    for (int k = 0; k < K; ++k)
        acc += A[row * K + k] * vload8(0, B + k * N + col);  /* eight neighbouring columns of one row, one load */

    vstore8(acc, 0, C + row * N + col);
}
"""

HOST_BEFORE = """\
def launch(axes):
    M, N = axes["M"], axes["N"]
    return {"global": (N, M), "local": None}
"""
HOST_AFTER = """\
def launch(axes):
    M, N = axes["M"], axes["N"]
    return {"global": (N // 8, M), "local": None}
"""

DIFFS = (
    FileDiff("kernels/gemm.cl", BEFORE, AFTER),
    FileDiff("kernels/gemm_workload.py", HOST_BEFORE, HOST_AFTER),
)


def make_status(**changes: Any) -> StatusView:
    status = StatusView(
        pid=4711,
        version="0.1.0",
        root="/home/ada/flash-ops",
        uptime_s=754.0,
        trusted=True,
        watching="inotify",
        platform="pocl-cpu",
        device="AMD EPYC 9654",
        files=2,
        kernels=3,
        clients=1,
        skills=14,
    )
    return msgspec.structs.replace(status, **changes)


def make_feature(id: str, name: str, presence: Any, **changes: Any) -> FeatureView:
    return msgspec.structs.replace(FeatureView(id, name, presence, "source"), **changes)


FEATURES = (
    make_feature("F01", "register blocking", "absent"),
    make_feature("F02", "local-memory tile", "absent"),
    make_feature("F03", "vector loads", "absent"),
    make_feature("F04", "coalesced reads", "present", line=10, detail="B[k*N + col], col = id(0)"),
    make_feature("F05", "loop unrolling", "unknown", layer="binary", detail="no disassembly"),
    make_feature("F06", "fused multiply-add", "present", layer="ir", line=10),
    make_feature("F07", "bank-conflict padding", "absent"),
    make_feature("F08", "software pipelining", "absent"),
)


def make_kernel(id: str = GEMM, **changes: Any) -> KernelView:
    path, _, entry = id.partition("::")
    kernel = KernelView(
        id=id,
        path=path,
        entry=entry,
        language="opencl",
        line=2,
        closure="c" * 64,
        workload="kernels/gemm_workload.py",
        features=FEATURES,
        applicable=4,
    )
    return msgspec.structs.replace(kernel, **changes)


CHECKS = (
    CheckView("compile", "passed", "clBuildProgram, 0 warnings, 0.31 s"),
    CheckView("inputs unchanged", "passed", "A, B read back equal after 12 launches"),
    CheckView(
        "correctness",
        "passed",
        "3 seeds × 4 shapes × 3 distributions; worst error 0.21 of tolerance",
    ),
    CheckView("hidden shapes", "passed", "M=513 N=520 K=509; M=64 N=8 K=1"),
    CheckView("poison", "passed", "output prefilled with NaN; every element written"),
    CheckView("guard zones", "passed", "64 KiB before and after each buffer untouched"),
    CheckView("profile", "passed", "ABBA, 5 fresh processes, every shape non-inferior"),
    CheckView("sanitizer", "not run", "compute-sanitizer needs a CUDA device"),
)


def make_timing(**changes: Any) -> TimingView:
    timing = TimingView(
        shape="M=512 N=512 K=512",
        before_us=123_400.0,
        after_us=10_300.0,
        speedup=11.98,
        speedup_low=11.71,
        speedup_high=12.26,
        confidence=0.95,
        method="median of 40, ABBA interleaved, 5 fresh processes, cold L2; bootstrap interval",
    )
    return msgspec.structs.replace(timing, **changes)


def make_verdict(**changes: Any) -> VerdictView:
    verdict = VerdictView(
        status="faster",
        tier="confirm",
        message="Faster at every shape; the slowest gained 9.4×.",
        at="2026-11-30T14:02:51+00:00",
        platform="pocl-cpu",
        device="AMD EPYC 9654",
        trust="harness-launched",
        equivalent_to="reference",
        checks=CHECKS,
        timings=(
            make_timing(),
            make_timing(
                shape="M=64 N=512 K=2048", before_us=61_700.0, after_us=6_560.0,
                speedup=9.41, speedup_low=9.10, speedup_high=9.70,
            ),
        ),
        resources_before={"registers": None, "local_memory_bytes": 0, "binary_bytes": 5212},
        resources_after={"registers": None, "local_memory_bytes": 0, "binary_bytes": 7904},
        log="clBuildProgram -cl-std=CL1.2 -cl-mad-enable\nbuild ok in 0.31 s\nconfirm: process 1 of 5 …",
        cost_s=21.4,
    )  # fmt: skip
    return msgspec.structs.replace(verdict, **changes)


CONDITIONS = (
    ConditionView("p1", "shape", "N is divisible by 8", "met", "N=512 % 8 == 0 at all 4 SHAPES"),
    ConditionView("p2", "aliasing", "C does not alias A or B", "met", "workload allocates C apart"),
    ConditionView(
        "p3",
        "alignment",
        "rows of B start at 32 bytes",
        "met",
        "B is 64-byte aligned, N*4 % 32 == 0",
    ),
    ConditionView(
        "p4",
        "platform",
        "float8 maps to vector registers",
        "met",
        "preferred_vector_width_float = 8",
    ),
)


def make_suggestion(id: str = "0a1b2c3d4e5f", **changes: Any) -> SuggestionView:
    suggestion = SuggestionView(
        id=id,
        kernel=GEMM,
        path="kernels/gemm.cl",
        line=8,
        skill="opencl.vectorize-columns",
        card="d" * 64,
        intent="Compute eight neighbouring columns in one work-item with vector loads and stores",
        stage="confirmed",
        rank=1,
        conditions=CONDITIONS,
        risks=(
            "Register pressure: eight accumulators a work-item; watch for spills on narrow register files.",
            "A tail kernel is needed where N is not a multiple of 8.",
        ),
        verdict=make_verdict(),
        files=("kernels/gemm.cl", "kernels/gemm_workload.py"),
        expected="8.1x (4 trials)",
    )
    return msgspec.structs.replace(suggestion, **changes)


SUGGESTIONS = (
    make_suggestion(),
    make_suggestion(
        "1a1b2c3d4e5f", skill="opencl.unroll-reduction", rank=2, stage="screened",
        intent="Unroll the K loop by four",
        verdict=make_verdict(
            tier="screen", message="Faster at the first shape; not confirmed yet.",
            timings=(make_timing(after_us=100_900.0, speedup=1.223, speedup_low=1.181, speedup_high=1.266, confidence=0.9),),
            cost_s=3.2,
        ),
    ),
    make_suggestion(
        "2a1b2c3d4e5f", skill="opencl.block-rows", rank=3, stage="screening",
        intent="Let one work-item compute four rows", verdict=None, reason="in the gate",
        expected="2.4x (7 trials)", files=("kernels/gemm.cl",),
    ),
    make_suggestion(
        "3a1b2c3d4e5f", skill="opencl.stage-local-tile", rank=4, stage="queued",
        intent="Stage tiles of A and B in local memory", verdict=None,
        reason="applies; waits for the gate", expected="1.2x (3 trials here)",
        files=("kernels/gemm.cl",),
    ),
    make_suggestion(
        "4a1b2c3d4e5f", skill="opencl.fast-math", rank=5, stage="screened",
        intent="Build with relaxed maths",
        verdict=make_verdict(status="wrong", tier="screen", message="max error 3.1 of tolerance at M=64 N=512 K=2048, seed 2"),
    ),
    make_suggestion(
        "5a1b2c3d4e5f", skill="opencl.swap-loops", rank=6, stage="screened",
        intent="Make the reduction the outer loop",
        verdict=make_verdict(status="tie", tier="screen", message="No difference beyond noise.",
            timings=(make_timing(after_us=123_100.0, speedup=1.002, speedup_low=0.991, speedup_high=1.014),)),
    ),
    make_suggestion(
        "6a1b2c3d4e5f", skill="opencl.subgroup-broadcast", rank=7, stage="blocked",
        intent="Broadcast A through a sub-group", verdict=None, files=(),
        reason="1 precondition unmet, 1 unknown",
        conditions=(
            CONDITIONS[0],
            ConditionView("q1", "platform", 'the device has cl_khr_subgroups', "unmet", 'capability("subgroups") is false on pocl-cpu'),
            ConditionView("q2", "shape", "K is at least 64", "unknown", "K is not among the declared axes", "declare K in SHAPES of kernels/gemm_workload.py"),
        ),
    ),
    make_suggestion(
        "7a1b2c3d4e5f", skill="opencl.double-buffer", rank=8, stage="manual",
        intent="Overlap loads with compute", verdict=None, files=(),
        reason="its carrier is a sketch; configure a rewriter to try it",
    ),
    make_suggestion(
        "8a1b2c3d4e5f", kernel="kernels/row_softmax.cl::row_softmax", path="kernels/row_softmax.cl",
        skill="opencl.online-softmax", rank=1, stage="queued", verdict=None, reason="waits for the gate",
    ),
)  # fmt: skip

HISTORY = (
    EntryView(
        2, "2026-11-30T13:41:07+00:00", "rejected", "9a1b2c3d4e5f", "opencl.half-inputs", GEMM,
        note="inputs must stay fp32 for the solver",
    ),
    EntryView(
        1, "2026-11-30T13:20:44+00:00", "applied", "aa1b2c3d4e5f", "opencl.coalesce-reads", GEMM,
        files=("kernels/gemm.cl",), gain="3.12×", undoable=True,
    ),
)  # fmt: skip

FILES = (
    FileView("kernels/gemm.cl", (make_kernel(),)),
    FileView(
        "kernels/row_softmax.cl",
        (
            make_kernel(
                "kernels/row_softmax.cl::row_softmax", applicable=1,
                features=(make_feature("F03", "vector loads", "absent"), make_feature("F09", "online rescaling", "unknown")),
            ),
            make_kernel("kernels/row_softmax.cl::row_max", applicable=0, features=(), workload=None),
        ),
        ('line 41: syntax error near "floot"',),
    ),
)  # fmt: skip


def make_snapshot(seq: int = 0, **changes: Any) -> Snapshot:
    snapshot = Snapshot(
        seq=seq, status=make_status(), files=FILES, suggestions=SUGGESTIONS, history=HISTORY
    )
    return msgspec.structs.replace(snapshot, **changes)

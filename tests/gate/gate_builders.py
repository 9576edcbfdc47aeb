"""Kernels, workloads and candidates in a temporary worktree, with defaults."""

from __future__ import annotations

from pathlib import Path

from gate.values.candidate import Candidate, FileEdit
from gate.values.kernel import Kernel, Language, Launch, LaunchKind, SourceFile, digest
from gate.values.workload import Workload

SCALE_CL = """\
__kernel void scale(__global const float *x, __global float *y, float factor, int n)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] = factor * x[i];
}
"""

SCALE_WORKLOAD = """\
import numpy as np

SHAPES = [{"n": 4096}, {"n": 1000}]


def make_inputs(n=4096, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal(n, dtype=np.float32), "factor": 2.5}


def numpy_ref(x, factor):
    return {"y": x * x.dtype.type(factor)}


def launch(axes):
    return {"global": (axes["n"],)}
"""

GEMM_CL = """\
__kernel void gemm(__global const float *A, __global const float *B, __global float *C,
                   int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float acc = 0.0f;
    for (int k = 0; k < K; k++)
        acc += A[row * K + k] * B[k * N + col];
    C[row * N + col] = acc;
}
"""

FAST_GEMM_CL = """\
__kernel void gemm(__global const float *A, __global const float *B, __global float *C,
                   int M, int N, int K)
{
    int col = get_global_id(0) * 8;
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    if (col + 8 <= N) {
        float8 acc = 0.0f;
        for (int k = 0; k < K; k++)
            acc += A[row * K + k] * vload8(0, B + k * N + col);
        vstore8(acc, 0, C + row * N + col);
        return;
    }
    for (int c = col; c < N; c++) {
        float acc = 0.0f;
        for (int k = 0; k < K; k++)
            acc += A[row * K + k] * B[k * N + c];
        C[row * N + c] = acc;
    }
}
"""

GEMM_WORKLOAD = """\
import numpy as np

SHAPES = [{"M": 256, "N": 256, "K": 256}, {"M": 100, "N": 68, "K": 33}]


def make_inputs(M=256, N=256, K=256, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "A": rng.standard_normal((M, K), dtype=np.float32),
        "B": rng.standard_normal((K, N), dtype=np.float32),
    }


def numpy_ref(A, B):
    return {"C": A @ B}


def launch(axes):
    return {"global": (axes["N"], axes["M"])}
"""


class Worktree:
    """A kernel file and a workload file under one root."""

    def __init__(
        self,
        root: Path,
        kernel: str = SCALE_CL,
        workload: str = SCALE_WORKLOAD,
        entry: str = "scale",
        extra: dict[str, str] | None = None,
    ) -> None:
        self.root = root
        self.files = {"kernels/k.cl": kernel, "kernels/workload.py": workload, **(extra or {})}
        for path, text in self.files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        self.entry = entry

    @property
    def kernel(self) -> Kernel:
        files = tuple(SourceFile(path, text.encode()) for path, text in self.files.items())
        return Kernel(
            language=Language.OPENCL,
            path="kernels/k.cl",
            entry=self.entry,
            files=files,
            launch=Launch(LaunchKind.NDRANGE, "kernels/workload.py", "launch"),
            closure=digest("".join(self.files.values()).encode()),
        )

    @property
    def workload(self) -> Workload:
        return Workload("kernels/workload.py", self.files["kernels/workload.py"].encode())

    def candidate(self, **changes: str) -> Candidate:
        """A candidate with whole new texts: `k=` for the kernel, `workload=` for its workload."""
        paths = {"k": "kernels/k.cl", "workload": "kernels/workload.py"}
        return Candidate(
            skill="0" * 64,
            edits=tuple(
                FileEdit(path, digest(self.files[path].encode()), text.encode())
                for path, text in ((paths.get(name, name), text) for name, text in changes.items())
            ),
        )


SLOW_SCALE_CL = """\
__kernel void scale(__global const float *x, __global float *y, float factor, int n)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < 512; k++)
        sum += x[i];
    y[i] = factor * (sum / 512.0f);
}
"""
"""Right, and an order of magnitude slower than SCALE_CL."""

INTEGER_CL = """\
__kernel void count(__global const int *x, __global int *y, int n)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] = x[i] + 1;
}
"""

INTEGER_WORKLOAD = """\
import numpy as np


def make_inputs(n=512, seed=0):
    return {"x": np.random.default_rng(seed).integers(-9, 9, n, dtype=np.int32)}


def numpy_ref(x):
    return {"y": x + np.int32(1)}


def launch(axes):
    return {"global": (axes["n"],)}
"""

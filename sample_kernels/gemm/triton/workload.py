"""GEMM: C (M, N) = A (M, K) @ B (K, N), bfloat16 with fp32 accumulation."""

import torch

OPERATOR = "gemm"
SHAPES = [
    {"M": 4096, "N": 4096, "K": 4096},
    {"M": 8192, "N": 4096, "K": 1024},
    {"M": 2064, "N": 1040, "K": 528},
]
TOLERANCE = {"atol": 1e-2, "rtol": 1.6e-2}


def make_inputs(M=4096, N=4096, K=4096, seed=0, device="cpu"):
    generator = torch.Generator(device="cpu").manual_seed(seed)
    a = torch.randn((M, K), generator=generator).to(device=device, dtype=torch.bfloat16)
    b = torch.randn((K, N), generator=generator).to(device=device, dtype=torch.bfloat16)
    return {"a": a, "b": b}


def torch_ref(a, b):
    return a @ b


def FLOPS(axes):
    return 2 * axes["M"] * axes["N"] * axes["K"]


def BYTES(axes):
    M, N, K = axes["M"], axes["N"], axes["K"]
    return 2 * (M * K + K * N + M * N)

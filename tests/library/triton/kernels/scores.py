"""scores = scale * q @ k, K walked by elements, columns on the grid's first axis."""

import torch
import triton
import triton.language as tl


@triton.jit
def scores_kernel(
    q_ptr,
    k_ptr,
    s_ptr,
    M,
    N,
    D,
    stride_q,
    stride_k,
    stride_s,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    col = tl.program_id(0)
    row = tl.program_id(1)
    offs_m = row * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    offs_n = col * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for d in range(0, D, BLOCK_D):
        offs_d = d + tl.arange(0, BLOCK_D)
        q = tl.load(
            q_ptr + offs_m * stride_q + offs_d[None, :],
            mask=(offs_m < M) & (offs_d[None, :] < D),
            other=0.0,
        )
        k = tl.load(
            k_ptr + offs_d[:, None] * stride_k + offs_n,
            mask=(offs_d[:, None] < D) & (offs_n < N),
            other=0.0,
        )
        acc += tl.dot(q, k)
    s = (acc * scale).to(s_ptr.dtype.element_ty)
    tl.store(s_ptr + offs_m * stride_s + offs_n, s, mask=(offs_m < M) & (offs_n < N))


def scores(q, k):
    M, D = q.shape[0], q.shape[1]
    N = k.shape[1]
    s = torch.empty((M, N), device=q.device, dtype=q.dtype)
    grid = lambda meta: (triton.cdiv(N, meta["BLOCK_N"]), triton.cdiv(M, meta["BLOCK_M"]))
    scores_kernel[grid](
        q,
        k,
        s,
        M,
        N,
        D,
        q.stride(0),
        k.stride(0),
        s.stride(0),
        0.125,
        BLOCK_M=32,
        BLOCK_N=64,
        BLOCK_D=32,
    )
    return s

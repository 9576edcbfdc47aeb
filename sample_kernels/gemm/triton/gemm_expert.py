"""C = A @ B for Hopper: TMA descriptors, a persistent grid, grouped tiles, a deep pipeline.

Each of the four is code of its own: the descriptors `gemm` makes, the tile loop, `tile_of`, and
the launch options. Rows of A, B and C must start on 16 bytes, as a tensor map requires.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK_M = 128
BLOCK_N = 256
BLOCK_K = 64
GROUP_M = 8
SMS_WITHOUT_A_GPU = 4
"""Persistent programs where there is no device to ask, as in Triton's interpreter."""


@triton.jit
def tile_of(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Row and column of a tile, GROUP_M rows of tiles at a time; the last group may be smaller."""
    group = tile // (GROUP_M * tiles_n)
    first_m = group * GROUP_M
    rows = min(tiles_m - first_m, GROUP_M)
    inside = tile % (GROUP_M * tiles_n)
    return first_m + inside % rows, inside // rows


@triton.jit
def gemm_kernel(
    a_desc,
    b_desc,
    c_desc,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)

    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        pid_m, pid_n = tile_of(tile, tiles_m, tiles_n, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(tl.cdiv(K, BLOCK_K)):
            a = a_desc.load([pid_m * BLOCK_M, k * BLOCK_K])
            b = b_desc.load([k * BLOCK_K, pid_n * BLOCK_N])
            acc = tl.dot(a, b, acc)
        c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(c_desc.dtype))


def gemm(a, b):
    """A (M, K) times B (K, N), in A's dtype with fp32 accumulation."""
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    a_desc = TensorDescriptor.from_tensor(a, [BLOCK_M, BLOCK_K])
    b_desc = TensorDescriptor.from_tensor(b, [BLOCK_K, BLOCK_N])
    c_desc = TensorDescriptor.from_tensor(c, [BLOCK_M, BLOCK_N])

    tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
    grid = (min(tiles, programs(a.device)),)
    gemm_kernel[grid](
        a_desc,
        b_desc,
        c_desc,
        M,
        N,
        K,
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
        GROUP_M,
        num_warps=8,
        num_stages=3,
    )
    return c


def programs(device):
    """Programs of the persistent grid: one a multiprocessor."""
    if device.type != "cuda":
        return SMS_WITHOUT_A_GPU
    return torch.cuda.get_device_properties(device).multi_processor_count

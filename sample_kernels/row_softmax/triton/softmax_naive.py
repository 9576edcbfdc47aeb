"""Softmax over the rows of a matrix, as first written: three passes over each row."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride_x, stride_y, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)

    row_max = -float("inf")
    for start in range(0, n_cols, BLOCK):
        offs = start + cols
        x = tl.load(x_ptr + row * stride_x + offs, mask=offs < n_cols, other=-float("inf"))
        row_max = tl.maximum(row_max, tl.max(x.to(tl.float32), axis=0))

    row_sum = 0.0
    for start in range(0, n_cols, BLOCK):
        offs = start + cols
        x = tl.load(x_ptr + row * stride_x + offs, mask=offs < n_cols, other=-float("inf"))
        row_sum += tl.sum(tl.exp(x.to(tl.float32) - row_max), axis=0)

    for start in range(0, n_cols, BLOCK):
        offs = start + cols
        x = tl.load(x_ptr + row * stride_x + offs, mask=offs < n_cols, other=-float("inf"))
        y = tl.exp(x.to(tl.float32) - row_max) / row_sum
        tl.store(y_ptr + row * stride_y + offs, y.to(y_ptr.dtype.element_ty), mask=offs < n_cols)


def softmax(x):
    """Softmax over the last axis of a matrix (rows, cols)."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(n_rows,)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK=256)
    return y

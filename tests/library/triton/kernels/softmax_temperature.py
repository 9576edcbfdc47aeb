"""softmax(x / temperature) over rows, four warps, hints not given."""

import torch
import triton
from triton import language as tl


@triton.jit
def softmax_temperature_kernel(
    x_ptr,
    y_ptr,
    stride,
    n,
    inverse_temperature,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    base = row * stride
    lanes = tl.arange(0, BLOCK)
    peak = -float("inf")
    for at in range(0, n, BLOCK):
        x = tl.load(x_ptr + base + at + lanes, mask=at + lanes < n, other=-float("inf"))
        peak = tl.maximum(peak, tl.max(x * inverse_temperature, axis=0))
    norm = 0.0
    for at in range(0, n, BLOCK):
        x = tl.load(x_ptr + base + at + lanes, mask=at + lanes < n, other=-float("inf"))
        norm += tl.sum(tl.exp(x * inverse_temperature - peak), axis=0)
    for at in range(0, n, BLOCK):
        x = tl.load(x_ptr + base + at + lanes, mask=at + lanes < n, other=-float("inf"))
        y = tl.exp(x * inverse_temperature - peak) / norm
        tl.store(y_ptr + base + at + lanes, y, mask=at + lanes < n)


def softmax_temperature(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    softmax_temperature_kernel[(rows,)](x, y, x.stride(0), n, 0.7, BLOCK=128)
    return y

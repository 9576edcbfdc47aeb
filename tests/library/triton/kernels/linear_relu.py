"""relu(x @ w + bias) on a 1-D grid, rows and columns wrapped, constants at module level."""

import torch
import triton
import triton.language as tl

BM, BN, BK = 64, 32, 32


@triton.jit
def relu(x):
    return tl.maximum(x, 0.0)


@triton.jit
def linear_kernel(
    X,
    W,
    Bias,
    Y,
    rows,
    cols,
    depth,
    sx0,
    sx1,
    sw0,
    sw1,
    sy0,
    sy1,
    TM: tl.constexpr,
    TN: tl.constexpr,
    TK: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    tiles_n = tl.cdiv(cols, TN)
    pm = pid // tiles_n
    pn = pid % tiles_n
    rm = (pm * TM + tl.arange(0, TM)) % rows
    rn = (pn * TN + tl.arange(0, TN)) % cols
    rk = tl.arange(0, TK)
    x_ptrs = X + (rm[:, None] * sx0 + rk[None, :] * sx1)
    w_ptrs = W + (rk[:, None] * sw0 + rn[None, :] * sw1)
    total = tl.zeros((TM, TN), dtype=tl.float32)
    for k in range(0, tl.cdiv(depth, TK)):
        x = tl.load(x_ptrs, mask=rk[None, :] < depth - k * TK, other=0.0)
        w = tl.load(w_ptrs, mask=rk[:, None] < depth - k * TK, other=0.0)
        total += tl.dot(x, w)
        x_ptrs += TK * sx1
        w_ptrs += TK * sw0
    cm = pm * TM + tl.arange(0, TM)
    cn = pn * TN + tl.arange(0, TN)
    bias = tl.load(Bias + cn, mask=cn < cols, other=0.0)
    out = relu(total + bias[None, :].to(tl.float32)).to(Y.dtype.element_ty)
    mask = (cm[:, None] < rows) & (cn[None, :] < cols)
    tl.store(Y + cm[:, None] * sy0 + cn[None, :] * sy1, out, mask=mask)


def linear(x, w, bias):
    m, k = x.shape
    k, n = w.shape
    y = torch.empty((m, n), device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(m, BM) * triton.cdiv(n, BN),)
    linear_kernel[grid](
        x,
        w,
        bias,
        y,
        m,
        n,
        k,
        x.stride(0),
        x.stride(1),
        w.stride(0),
        w.stride(1),
        y.stride(0),
        y.stride(1),
        TM=BM,
        TN=BN,
        TK=BK,
    )
    return y

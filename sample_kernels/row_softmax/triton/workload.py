"""Row softmax: y = softmax(x) over the last axis of a bfloat16 matrix, computed in fp32."""

import torch

OPERATOR = "softmax"
SHAPES = [
    {"rows": 8192, "cols": 4096},
    {"rows": 4096, "cols": 8192},
    {"rows": 16384, "cols": 1000},
    {"rows": 130, "cols": 500},
]
TOLERANCE = {"atol": 1e-4, "rtol": 1.6e-2}


def make_inputs(rows=8192, cols=4096, seed=0, device="cpu"):
    generator = torch.Generator(device="cpu").manual_seed(seed)
    x = torch.randn((rows, cols), generator=generator)
    return {"x": x.to(device=device, dtype=torch.bfloat16)}


def torch_ref(x):
    return torch.softmax(x, dim=-1)


def FLOPS(axes):
    return 5 * axes["rows"] * axes["cols"]


def BYTES(axes):
    return 2 * 2 * axes["rows"] * axes["cols"]

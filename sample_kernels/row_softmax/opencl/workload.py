"""Softmax over rows in fp32, for OpenCL: inputs, reference, shapes and launches."""

import numpy as np

OPERATOR = "softmax"

SHAPES = [
    {"rows": 1024, "cols": 1024},
    {"rows": 257, "cols": 771},
    {"rows": 64, "cols": 37},
]

TOLERANCE = {"atol": 1e-6, "rtol": 1e-4}


def make_inputs(rows=1024, cols=1024, seed=0):
    rng = np.random.default_rng(seed)
    return {"X": rng.standard_normal((rows, cols), dtype=np.float32)}


def numpy_ref(X):
    shifted = np.exp(X - X.max(axis=1, keepdims=True))
    return {"Y": shifted / shifted.sum(axis=1, keepdims=True)}


def FLOPS(axes):
    # A maximum, a subtraction, an exponential, a sum and a division each.
    return 5 * axes["rows"] * axes["cols"]


def BYTES(axes):
    return 8 * axes["rows"] * axes["cols"]


def launch_softmax_naive(axes):
    return {"global": (axes["rows"],)}


def launch_softmax_expert(axes):
    return {"global": (axes["rows"],)}

"""Elementwise GELU (tanh form) over float32."""

import numpy as np

OPERATOR = "gelu"
SHAPES = [{"n": 4194304}, {"n": 100003}]
TOLERANCE = {"atol": 1e-4, "rtol": 1e-3}


def make_inputs(n=4194304, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal(n, dtype=np.float32)}


def numpy_ref(x):
    inner = 0.7978845608 * (x + 0.044715 * x**3)
    return {"y": 0.5 * x * (1 + np.tanh(inner))}


def launch(axes):
    return {"global": (axes["n"],)}

"""Bias added to every row of a float32 matrix."""

import numpy as np

OPERATOR = "add_bias"
SHAPES = [{"M": 2048, "N": 2048}, {"M": 1001, "N": 515}]
TOLERANCE = {"atol": 1e-6, "rtol": 1e-6}


def make_inputs(M=2048, N=2048, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "X": rng.standard_normal((M, N), dtype=np.float32),
        "bias": rng.standard_normal(N, dtype=np.float32),
    }


def numpy_ref(X, bias):
    return {"Y": X + bias}


def launch(axes):
    return {"global": (axes["M"], axes["N"])}

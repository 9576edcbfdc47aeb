"""Matrix-vector product: y = A x over float32, row-major."""

import numpy as np

OPERATOR = "gemv"
SHAPES = [{"M": 4096, "K": 1024}, {"M": 1003, "K": 520}]
TOLERANCE = {"atol": 1e-3, "rtol": 1e-4}


def make_inputs(M=4096, K=1024, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "A": rng.standard_normal((M, K), dtype=np.float32),
        "x": rng.standard_normal(K, dtype=np.float32),
    }


def numpy_ref(A, x):
    return {"y": A @ x}


def launch(axes):
    return {"global": (axes["M"],)}

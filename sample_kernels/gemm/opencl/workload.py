"""C = A B in fp32, row-major, for OpenCL: inputs, reference, shapes and launches."""

import numpy as np

OPERATOR = "gemm"

SHAPES = [
    {"M": 256, "N": 256, "K": 256},
    {"M": 200, "N": 136, "K": 96},
    {"M": 67, "N": 93, "K": 45},
]

# fp32 sums of K products of standard normals: the error grows with sqrt(K) ulps of the partial sums.
TOLERANCE = {"atol": 1e-4, "rtol": 1e-4}


def make_inputs(M=256, N=256, K=256, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "A": rng.standard_normal((M, K), dtype=np.float32),
        "B": rng.standard_normal((K, N), dtype=np.float32),
    }


def numpy_ref(A, B):
    return {"C": A @ B}


def FLOPS(axes):
    return 2 * axes["M"] * axes["N"] * axes["K"]


def BYTES(axes):
    return 4 * (axes["M"] * axes["K"] + axes["K"] * axes["N"] + axes["M"] * axes["N"])


def launch_gemm_naive(axes):
    return {"global": (axes["N"], axes["M"])}


def launch_gemm_expert(axes):
    return {"global": ((axes["N"] + 15) // 16, (axes["M"] + 7) // 8)}

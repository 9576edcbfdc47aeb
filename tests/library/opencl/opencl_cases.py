"""Kernels of the kinds people write, none of them a sample."""

from __future__ import annotations

from opencl_builders import Case, workload

ODD = "[{'M': 48, 'N': 40, 'K': 24}, {'M': 37, 'N': 29, 'K': 21}, {'M': 17, 'N': 23, 'K': 33}]"
MATRICES = (
    "'A': rng.standard_normal((M, K), dtype=np.float32),"
    " 'B': rng.standard_normal((K, N), dtype=np.float32)"
)
NEW_C = "'C': np.full((M, N), np.nan, np.float32)"
OVER_C = '{"global": (axes["N"], axes["M"])}'

SGEMM = Case(
    """
kernel void f(const int M, const int N, const int K, const float alpha, const float beta,
              global const float* A, global const float* B, global float* C)
{
	const int n = get_global_id(0);
	const int m = get_global_id(1);
	if (m < M && n < N) {
		float sum = 0.0f;
		for (int k = 0; k < K; k++) {
			sum += A[m * K + k] * B[k * N + n];
		}
		C[m * N + n] = alpha * sum + beta * C[m * N + n];
	}
}
""",
    workload(
        MATRICES
        + ", 'alpha': 1.5, 'beta': -0.5, 'C': rng.standard_normal((M, N), dtype=np.float32)",
        ODD,
        OVER_C,
    ),
)

BLUR = Case(
    """
#define TAPS 5

// Horizontal filter: out[y][x] is the sum of w[t] * in[y][x + t].
__kernel void f(__global const float *in, __constant float *w, __global float *out,
                int H, int W)
{
    uint x = get_global_id(0), y = get_global_id(1);
    if (x >= W) return;
    if (y >= H) return;
    float acc = 0.f;
    for (int t = 0; t < TAPS; ++t)
        acc = acc + w[t] * in[y * (W + TAPS - 1) + x + t];
    out[y * W + x] = acc;
}
""",
    workload(
        "'in': rng.standard_normal((H, W + 4), dtype=np.float32),"
        " 'w': rng.standard_normal(5, dtype=np.float32)",
        "[{'H': 32, 'W': 48}, {'H': 19, 'W': 37}]",
        '{"global": ((axes["W"] + 7) // 8 * 8, (axes["H"] + 7) // 8 * 8), "local": None}',
        outputs="'out': np.full((H, W), np.nan, np.float32)",
    ),
)

GEMM_NT = Case(
    """
__kernel void f(__global const float *A, __global const float *B, __global float *C,
                int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float acc = 0.0f;
    for (int k = 0; k < K; ++k)
        acc += A[row * K + k] * B[col * K + k];
    C[row * N + col] = acc;
}
""",
    workload(MATRICES.replace("(K, N)", "(N, K)"), ODD, OVER_C, outputs=NEW_C),
)

GEMM_BIAS = Case(
    """
// Launched over exactly M x N work-items, so there is no guard.
__kernel void f(__global const float *A, __global const float *B, __global const float *bias,
                __global float *C, int M, int N, int K)
{
    const size_t j = get_global_id(0);
    const size_t i = get_global_id(1);
    __global const float *a = A + i * K;
    float total = 0.0f;
    for (int p = 0; p < K; ++p) {
        const float left = a[p];
        total = fma(left, B[p * N + j], total);
    }
    C[i * N + j] = fmax(total + bias[j], 0.0f);
}
""",
    workload(
        MATRICES + ", 'bias': rng.standard_normal(N, dtype=np.float32)",
        ODD,
        OVER_C,
        outputs=NEW_C,
    ),
)

SAXPY = Case(
    """
kernel void f(global const float *x, global float *y, float a, int n)
{
	int i = get_global_id(0);
	if (i >= n) return;
	y[i] += a * x[i];
}
""",
    workload(
        "'x': rng.standard_normal(n, dtype=np.float32),"
        " 'y': rng.standard_normal(n, dtype=np.float32), 'a': 2.5",
        "[{'n': 1024}, {'n': 1003}, {'n': 19}]",
        '{"global": ((axes["n"] + 63) // 64 * 64,)}',
    ),
)

SIGMOID = Case(
    """
__kernel void f(__global const float *x, __global float *y, int n)
{
    const int i = get_global_id(0);
    if (i < n) {
        const float e = exp(-fabs(x[i]));
        y[i] = 1.0f / (1.0f + e) + sqrt(e);
    }
}
""",
    workload(
        "'x': rng.standard_normal(n, dtype=np.float32)",
        "[{'n': 512}, {'n': 77}]",
        '{"global": (axes["n"],)}',
        outputs="'y': np.full(n, np.nan, np.float32)",
    ),
)

GEMV = Case(
    """
__kernel void f(const __global float* A, const __global float* x, __global float* y, const int M, const int K)
{
  const size_t row = get_global_id(0);
  if (row < M) {
    // dot product of one row
    float sum = 0;
    for (int k = 0; k < K; k++) {
      sum += A[row*K + k] * x[k];
    }
    y[row] = sum;
  }
}
""",
    workload(
        "'A': rng.standard_normal((M, K), dtype=np.float32),"
        " 'x': rng.standard_normal(K, dtype=np.float32)",
        "[{'M': 64, 'K': 64}, {'M': 29, 'K': 37}]",
        '{"global": (axes["M"],)}',
        outputs="'y': np.full(M, np.nan, np.float32)",
    ),
)

DISTANCE = Case(
    """
__kernel void f(__global const float *points, __global const float *centre,
                __global float *out, int P, int D)
{
    int p = get_global_id(0);
    if (p >= P)
        return;
    int base = p * D;
    float squared = 0.0f;
    for (int d = 0; d < D; ++d) {
        float gap = points[base + d] - centre[d];
        squared += gap * gap;
    }
    out[p] = sqrt(squared);
}
""",
    workload(
        "'points': rng.standard_normal((P, D), dtype=np.float32),"
        " 'centre': rng.standard_normal(D, dtype=np.float32)",
        "[{'P': 64, 'D': 32}, {'P': 41, 'D': 19}]",
        '{"global": (axes["P"],)}',
        outputs="'out': np.full(P, np.nan, np.float32)",
    ),
)

LAYERNORM = Case(
    """
__kernel void f(__global const float *x, __global const float *gamma, __global float *y,
                int R, int D)
{
    int r = get_global_id(0);
    if (r >= R) return;
    float mean = 0.0f;
    for (int j = 0; j < D; ++j) mean += x[r * D + j];
    mean /= D;
    float var = 0.0f;
    for (int j = 0; j < D; ++j) {
        float c = x[r * D + j] - mean;
        var += c * c;
    }
    float inv = rsqrt(var / D + 1e-5f);
    for (int j = 0; j < D; ++j)
        y[r * D + j] = (x[r * D + j] - mean) * inv * gamma[j];
}
""",
    workload(
        "'x': rng.standard_normal((R, D), dtype=np.float32),"
        " 'gamma': rng.standard_normal(D, dtype=np.float32)",
        "[{'R': 16, 'D': 64}, {'R': 5, 'D': 43}]",
        '{"global": (axes["R"],)}',
        outputs="'y': np.full((R, D), np.nan, np.float32)",
    ),
)

ROW_RANGE = Case(
    """
__kernel void f(__global const float *restrict x, __global float *restrict out, int R, int D)
{
    int r = get_global_id(0);
    if (r >= R)
        return;
    float low = INFINITY, high = -INFINITY;
    for (int j = 0; j < D; ++j) {
        low = fmin(x[r * D + j], low);
        high = fmax(high, x[r * D + j]);
    }
    out[r] = high - low;
}
""",
    workload(
        "'x': rng.standard_normal((R, D), dtype=np.float32)",
        "[{'R': 16, 'D': 64}, {'R': 5, 'D': 21}]",
        '{"global": (axes["R"],)}',
        outputs="'out': np.full(R, np.nan, np.float32)",
        tolerance="",
    ),
)

SCALE_SWAPPED = Case(
    """
__kernel void f(__global const float *x, __global float *y, int H, int W)
{
    int row = get_global_id(0);
    int col = get_global_id(1);
    if (row >= H || col >= W)
        return;
    y[row * W + col] = 3.0f * x[row * W + col];
}
""",
    workload(
        "'x': rng.standard_normal((H, W), dtype=np.float32)",
        "[{'H': 32, 'W': 48}, {'H': 7, 'W': 13}]",
        '{"global": (axes["H"], axes["W"]), "local": (1, 1)}',
        outputs="'y': np.full((H, W), np.nan, np.float32)",
    ),
)

GROUPS_SWAPPED = Case(
    """
__kernel void f(__global const float *x, __global float *y, int H, int W)
{
    const size_t h = get_group_id(0) * get_local_size(0) + get_local_id(0);
    const size_t w = get_global_id(1);
    if (h < H && w < W)
        y[h * W + w] = x[h * W + w] + get_local_id(1) * 0.0f;
}
""",
    SCALE_SWAPPED.workload.replace(
        '(axes["H"], axes["W"]), "local": (1, 1)',
        '((axes["H"] + 3) // 4 * 4, (axes["W"] + 1) // 2 * 2), "local": (4, 2)',
    ),
)

SCALE_OPEN = Case(SCALE_SWAPPED.source, SCALE_SWAPPED.workload.replace(', "local": (1, 1)', ""))

GEMM_BIAS_GUARDED = Case(
    """
kernel void f(global const float *A, global const float *B, global const float *bias,
              global float *C, int M, int N, int K)
{
    uint col = get_global_id(0);
    uint row = get_global_id(1);
    if (col >= N) return;
    if (row >= M) return;

    float acc = 0.0f;
    for (int k = 0; k < K; ++k) {
        acc += B[k * N + col] * A[row * K + k];
    }
    C[row * N + col] = acc + bias[col];
}
""",
    GEMM_BIAS.workload,
)

GEMM_ALPHA = Case(
    """
__kernel void f(const int M, const int N, const int K, const float alpha,
                __global const float *A, __global const float *B, __global float *C)
{
    const int n = get_global_id(0);
    const int m = get_global_id(1);
    if (m >= M || n >= N) {
        return;
    }
    float s = 0;
    for (int k = 0; k < K; k++)
        s += A[m*K + k] * B[k*N + n];
    C[m*N + n] = alpha * s;
}
""",
    workload(MATRICES + ", 'alpha': 1.5", ODD, OVER_C, outputs=NEW_C),
)

OWN_ARRAYS = Case(
    """
#define DEPTH 4

void halves(float v, float *low, float *high) { *low = v * 0.5f; *high = v - *low; }

__kernel void f(__global const float *A, __global const float *w, __global float *C, int M, int N)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float kept[DEPTH];
    for (int t = 0; t < DEPTH; ++t)
        kept[t] = A[row * N + col] * t;
    float low, high;
    halves(A[row * N + col], &low, &high);
    float acc = 0.0f;
    for (int t = 0; t < DEPTH; ++t)
        acc += kept[t] * w[t] + high;
    C[row * N + col] = acc - low;
}
""",
    workload(
        "'A': rng.standard_normal((M, N), dtype=np.float32),"
        " 'w': rng.standard_normal(4, dtype=np.float32)",
        "[{'M': 32, 'N': 16}, {'M': 21, 'N': 9}]",
        OVER_C,
        outputs=NEW_C,
    ),
)

SHARED_LOADS = Case(
    """
kernel void f(global const float *A, global const int *pick, global const float *w,
              global float *C, int M, int N)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float first = 0.0f;
    float second = 0.0f;
    for (int t = 0; t < 8; ++t) {
        first += A[row * N + col] * w[pick[t]];
        second += w[pick[t]] * first + (t > 0 ? w[t - 1] : 0.0f);
        int u = t;
        first += w[u] * A[row * N + col];
        u = 7 - t;
        second = second - w[u] * A[row * N + col];
    }
    C[row * N + col] = first - second;
}
""",
    workload(
        "'A': rng.standard_normal((M, N), dtype=np.float32),"
        " 'pick': rng.integers(0, 8, 8, dtype=np.int32),"
        " 'w': rng.standard_normal(8, dtype=np.float32) / 8",
        "[{'M': 16, 'N': 16}, {'M': 21, 'N': 9}]",
        OVER_C,
        outputs=NEW_C,
    ),
)

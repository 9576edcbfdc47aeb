// C = A B in fp32, row-major: A is M x K, B is K x N.
//
// Each work-item keeps a ROWS x 16 block of C in registers: one vector load of B feeds ROWS
// multiply-adds that do not wait for each other. Blocks that hang over an edge take the slow path.
#define ROWS 8
#define COLUMNS 16

// The part of a block that lies inside C, one element at a time.
void edge_block(__global const float *restrict A, __global const float *restrict B,
                __global float *restrict C, int M, int N, int K, int row, int col)
{
    const int row_end = min(row + ROWS, M);
    const int col_end = min(col + COLUMNS, N);
    for (int i = row; i < row_end; ++i) {
        for (int j = col; j < col_end; ++j) {
            float acc = 0.0f;
            for (int k = 0; k < K; ++k)
                acc += A[i * K + k] * B[k * N + j];
            C[i * N + j] = acc;
        }
    }
}

__kernel void gemm_expert(__global const float *restrict A, __global const float *restrict B,
                          __global float *restrict C, int M, int N, int K)
{
    const int col = get_global_id(0) * COLUMNS;
    const int row = get_global_id(1) * ROWS;
    if (row >= M || col >= N)
        return;
    if (row + ROWS > M || col + COLUMNS > N) {
        edge_block(A, B, C, M, N, K, row, col);
        return;
    }

    float16 acc[ROWS];
    #pragma unroll
    for (int i = 0; i < ROWS; ++i)
        acc[i] = 0.0f;

    for (int k = 0; k < K; ++k) {
        const float16 b = vload16(0, &B[k * N + col]);
        #pragma unroll
        for (int i = 0; i < ROWS; ++i)
            acc[i] += A[(row + i) * K + k] * b;
    }

    #pragma unroll
    for (int i = 0; i < ROWS; ++i)
        vstore16(acc[i], 0, &C[(row + i) * N + col]);
}

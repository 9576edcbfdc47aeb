// y = A x, one row in each work-item.
__kernel void gemv(__global const float *A, __global const float *x, __global float *y,
                   int M, int K)
{
    int row = get_global_id(0);
    if (row >= M)
        return;

    float acc = 0.0f;
    for (int k = 0; k < K; ++k)
        acc += A[row * K + k] * x[k];
    y[row] = acc;
}

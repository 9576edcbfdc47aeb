// Softmax over each row of X (rows x cols, row-major, fp32). One work-item computes one row.
__kernel void softmax_naive(__global const float *X, __global float *Y, int rows, int cols)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;

    float top = -INFINITY;
    for (int j = 0; j < cols; ++j)
        top = fmax(top, X[row * cols + j]);

    float sum = 0.0f;
    for (int j = 0; j < cols; ++j)
        sum += exp(X[row * cols + j] - top);

    for (int j = 0; j < cols; ++j)
        Y[row * cols + j] = exp(X[row * cols + j] - top) / sum;
}

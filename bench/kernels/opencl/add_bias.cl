// Y = X + bias, rows on dimension 0: neighbouring work-items are a whole row apart.
__kernel void add_bias(__global const float *X, __global const float *bias, __global float *Y,
                       int M, int N)
{
    int row = get_global_id(0);
    int col = get_global_id(1);
    if (row >= M || col >= N)
        return;

    Y[row * N + col] = X[row * N + col] + bias[col];
}

// Softmax over each row of X (rows x cols, row-major, fp32). One work-item computes one row.
//
// Rows are walked 16 elements at a time. The exponentials are taken once, kept in Y, and scaled in
// place by the reciprocal of their sum.
#define LANES 16

float largest_lane(float16 v)
{
    const float8 a = fmax(v.lo, v.hi);
    const float4 b = fmax(a.lo, a.hi);
    const float2 c = fmax(b.lo, b.hi);
    return fmax(c.lo, c.hi);
}

float sum_of_lanes(float16 v)
{
    const float8 a = v.lo + v.hi;
    const float4 b = a.lo + a.hi;
    const float2 c = b.lo + b.hi;
    return c.lo + c.hi;
}

__kernel void softmax_expert(__global const float *restrict X, __global float *restrict Y,
                             int rows, int cols)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;

    __global const float *restrict x = X + row * cols;
    __global float *restrict y = Y + row * cols;
    const int vector_end = cols - cols % LANES;

    float16 top16 = -INFINITY;
    for (int j = 0; j < vector_end; j += LANES)
        top16 = fmax(top16, vload16(0, &x[j]));
    float top = largest_lane(top16);
    for (int j = vector_end; j < cols; ++j)
        top = fmax(top, x[j]);

    float16 sum16 = 0.0f;
    for (int j = 0; j < vector_end; j += LANES) {
        const float16 e = exp(vload16(0, &x[j]) - top);
        vstore16(e, 0, &y[j]);
        sum16 += e;
    }
    float sum = sum_of_lanes(sum16);
    for (int j = vector_end; j < cols; ++j) {
        const float e = exp(x[j] - top);
        y[j] = e;
        sum += e;
    }

    const float scale = 1.0f / sum;
    for (int j = 0; j < vector_end; j += LANES)
        vstore16(vload16(0, &y[j]) * scale, 0, &y[j]);
    for (int j = vector_end; j < cols; ++j)
        y[j] *= scale;
}

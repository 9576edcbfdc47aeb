// y = gelu(x), the tanh form, one element in each work-item.
__kernel void gelu(__global const float *x, __global float *y, int n)
{
    int i = get_global_id(0);
    if (i >= n)
        return;

    float v = x[i];
    float inner = 0.7978845608f * (v + 0.044715f * v * v * v);
    float e = exp(-2.0f * fabs(inner));
    float t = (1.0f - e) / (1.0f + e);
    y[i] = 0.5f * v * (1.0f + copysign(t, inner));
}

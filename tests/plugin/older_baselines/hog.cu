
extern "C" __global__ void hog(const float* a, float* b)
{
    float arr[64];
#pragma unroll
    for (int k = 0; k < 64; ++k) arr[k] = a[threadIdx.x + 32 * k];
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < 64; ++k) s = s * 0.5f + arr[k];
    float r = s;
#pragma unroll
    for (int k = 63; k >= 0; --k) r = r * 0.25f + arr[k] * s;
    b[threadIdx.x] = r;
}

// nvcc 13.0.88, --fatbin -Xfatbin --compress-all of this file: work.fatbin with
// -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90, ptx.fatbin with
// -gencode arch=compute_90,code=compute_90.
extern "C" __global__ void work(const float* from, float* to, int n)
{
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < n; at += gridDim.x * blockDim.x) to[at] = from[at] * 2.0f;
}

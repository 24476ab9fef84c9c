// Copying while computing.
// From the "Optimization" chapter of a CUDA course (CUDA streams), and the GTC 2023 talk "What the profiler is telling
// you: optimizing your CUDA application" (hide latency with more parallel work).
//
// An array comes from the host and is computed on.  In one stream the kernel waits for the copy, and the copy engine
// then for nothing: half of the GPU is idle at any time.  Cut into chunks that take turns on several streams, the next
// chunk is copied while this one is computed on.  It takes pinned host memory: from pageable memory the call that
// copies does not return until the data has left, so that nothing can be enqueued beside it.
//
// The kernel only has to take as long as the copy.  In the machine code: a loop of dependent FFMA.  What there is to
// see is on the timeline, not in the code.

extern "C" __global__ void iterate(float* out, const float* in, long long n, int steps, float factor, float term)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
#pragma unroll 16
    for (int step = 0; step < steps; ++step) x = fmaf(x, factor, term);
    out[i] = x;
}

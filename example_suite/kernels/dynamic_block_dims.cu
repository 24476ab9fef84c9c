// A block that chooses its own shape.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (bonus: dynamic block
// dimensions).
//
// One block per polygon: for every pixel (x, y) of the polygon's box and every edge, does a ray from the pixel's centre
// cross the edge?  The three loops differ in length from polygon to polygon, and so does the shape of block that fits.
//
//   static_shape    a three-dimensional block, of the same shape for all polygons: threads beyond the end of a loop
//                   idle.
//   virtual_shape   a one-dimensional block that arranges its threads anew for each polygon: x is doubled until it
//                   covers the row or the threads are used up, then y, then z.
//
// Threads can be left over: only if the third loop stopped because z covers all edges.  Surplus threads then get a z
// beyond the last edge, and have nothing to do; no guard is needed.  (The talk's listing declares the count of threads
// `const` and doubles it; it cannot be.)
//
// In the machine code: nothing that tells.  Look at how many lanes are active.  When all polygons have just the shape
// of the static block, there is nothing to gain.
//
// Coordinates are integers: vertices even, the pixels' centres odd, so that every count is exact.

struct Extent {
    int x, y, z;
};

struct alignas(16) Polygon {
    int width, height, edges, first_vertex;
};

// `vertices` are the polygon's own; an edge goes from a vertex to the next, the last one to the first.
__device__ __forceinline__ int crosses(const int2* vertices, int edges, int edge, int px, int py)
{
    const int2 a = vertices[edge];
    const int2 b = vertices[edge + 1 == edges ? 0 : edge + 1];
    const int side = (b.x - a.x) * (py - a.y) - (px - a.x) * (b.y - a.y);
    return ((a.y > py) != (b.y > py)) & ((side > 0) == (b.y > a.y));
}

// Crossings that this thread is to find, all together.  The polygon is tested `repeats` times, each time a pixel on.
__device__ __forceinline__ int count_own(const Polygon& polygon, const int2* vertices, Extent thread, Extent shape,
                                         int repeats)
{
    const int2* own = vertices + polygon.first_vertex;
    int count = 0;
#pragma unroll 1
    for (int repeat = 0; repeat < repeats; ++repeat) {
        for (int x = thread.x; x < polygon.width; x += shape.x) {
            for (int y = thread.y; y < polygon.height; y += shape.y) {
#pragma unroll 1
                for (int edge = thread.z; edge < polygon.edges; edge += shape.z) {
                    count += crosses(own, polygon.edges, edge, 2 * (x + repeat) + 1, 2 * y + 1);
                }
            }
        }
    }
    return count;
}

// Adds up the counts of a block whose size is a multiple of 32.
__device__ __forceinline__ void store_total(int count, int thread, int* totals)
{
    __shared__ int total;
    if (thread == 0) total = 0;
    __syncthreads();
    const int of_warp = __reduce_add_sync(0xffffffffu, count);
    if (thread % 32 == 0) atomicAdd(&total, of_warp);
    __syncthreads();
    if (thread == 0) totals[blockIdx.x] = total;
}

// The product of the three is a power of two, and at most `threads`.
__device__ __forceinline__ Extent shape_for(const Polygon& polygon, int threads)
{
    Extent shape{1, 1, 1};
    int used = 1;
    for (; shape.x < polygon.width && used < threads; used *= 2) shape.x *= 2;
    for (; shape.y < polygon.height && used < threads; used *= 2) shape.y *= 2;
    for (; shape.z < polygon.edges && used < threads; used *= 2) shape.z *= 2;
    return shape;
}

extern "C" __global__ void static_shape(const Polygon* polygons, const int2* vertices, int* totals, int repeats)
{
    const Polygon polygon = polygons[blockIdx.x];
    const Extent thread{static_cast<int>(threadIdx.x), static_cast<int>(threadIdx.y), static_cast<int>(threadIdx.z)};
    const Extent shape{static_cast<int>(blockDim.x), static_cast<int>(blockDim.y), static_cast<int>(blockDim.z)};
    const int count = count_own(polygon, vertices, thread, shape, repeats);
    store_total(count, thread.x + shape.x * (thread.y + shape.y * thread.z), totals);
}

extern "C" __global__ void virtual_shape(const Polygon* polygons, const int2* vertices, int* totals, int repeats)
{
    const Polygon polygon = polygons[blockIdx.x];
    const Extent shape = shape_for(polygon, blockDim.x);
    const int rank = threadIdx.x;
    const Extent thread{rank % shape.x, rank / shape.x % shape.y, rank / (shape.x * shape.y)};
    store_total(count_own(polygon, vertices, thread, shape, repeats), rank, totals);
}

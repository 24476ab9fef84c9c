// Which pairs of line segments intersect: what a division costs, and when a cheap test first pays.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (segment intersection).
//
// Counts the intersecting pairs among n segments, ends included.  Four predicates, each with or without a look at
// the bounding boxes first, make eight kernels: count_intersections<Divide, false> and so on.
//
//   Divide   solves for where the two lines meet, as fractions of each segment; both must lie in [0, 1].
//   Signs    the same fractions left as numerator and denominator: 0 <= n / d <= 1 by their signs and which is larger,
//            as the talk does it: a branch for numerators near 0, and one between the two fractions.
//   Orient   the talk's other way: the ends of each segment lie on different sides of the other one (Cormen, Leiserson,
//            Rivest and Stein, "Introduction to Algorithms"), by the signs of four cross products.
//   Compare  not the talk's: Signs by magnitudes, without a branch.
//
// In the machine code: Divide has MUFU.RCP, FCHK and a CALL.  A division is a short sequence for ordinary operands;
// FCHK sends the others to a subroutine, and the whole warp waits if one lane goes there.  With coordinates around
// 1e19 a cross product is near the largest float, and most warps go; with 1e18 or 1e2 none does.  The compiler merges
// nothing of that away: which path runs is in the data, not in the code.
//
// Comparisons are the dear instructions of the others: Hopper's SM starts 128 multiplications per cycle, but 64
// comparisons (an A100's 64 of each).  So comparisons are joined by `&` and `|` here, which chains FSETP through
// predicate registers.  With `&&` and `||` each becomes a branch, or a boolean that goes through SEL, LOP3 and PRMT in
// the comparisons' own pipe: written like that, both took longer than dividing on an H200 (1.29 and 1.39 ms against
// 1.08 at 1e18 and 32 768 segments).
//
// The bounding box costs four comparisons per pair and a branch.  It pays where it spares most of the warps the
// predicate, which needs all 32 of a warp's pairs to be far apart: short segments, not long ones.
//
// A block of 32 x 16 threads takes 128 x 128 pairs (row, column) with row < column, from shared memory.  A block below
// the diagonal has nothing to do.  At coordinates of 1e19 cross products can overflow: the predicates then disagree
// on a few pairs in ten thousand.

constexpr int kTile = 128;
constexpr int kThreadsX = 32;
constexpr int kThreadsY = 16;
constexpr int kBlocksPerSm = 4;  // 2048 threads of 32 registers: asked of the compiler, which on sm_120 ignores it

struct alignas(16) Segment {
    float2 start, end;
};

__device__ __forceinline__ float2 operator-(float2 a, float2 b)
{
    return make_float2(a.x - b.x, a.y - b.y);
}

__device__ __forceinline__ float cross(float2 a, float2 b)
{
    return a.x * b.y - a.y * b.x;
}

struct Divide {
    static __device__ __forceinline__ bool intersect(const Segment& a, const Segment& b)
    {
        const float2 along_a = a.end - a.start;
        const float2 along_b = b.end - b.start;
        const float denominator = cross(along_a, along_b);
        if (denominator == 0.0f) return false;  // parallel
        const float2 between = b.start - a.start;
        const float on_a = cross(between, along_b) / denominator;
        const float on_b = cross(between, along_a) / denominator;
        return 0.0f <= on_a && on_a <= 1.0f && 0.0f <= on_b && on_b <= 1.0f;
    }
};

struct Signs {
    // The talk's way to the same answer: rule out other signs, and a numerator beyond the denominator on its own side.
    static __device__ __forceinline__ bool is_fraction(float numerator, float denominator)
    {
        if (fabsf(numerator) < 1e-7f) return true;
        const bool above = numerator >= 0.0f;
        const bool opposite = above != (denominator >= 0.0f);
        const bool too_high = above & (numerator > denominator);
        const bool too_low = !above & (numerator < denominator);
        return !(opposite | too_high | too_low);
    }

    static __device__ __forceinline__ bool intersect(const Segment& a, const Segment& b)
    {
        const float2 along_a = a.end - a.start;
        const float2 along_b = b.end - b.start;
        const float denominator = cross(along_a, along_b);
        if (denominator == 0.0f) return false;  // parallel
        const float2 between = b.start - a.start;
        return is_fraction(cross(between, along_b), denominator) && is_fraction(cross(between, along_a), denominator);
    }
};

__device__ __forceinline__ bool in_box(const Segment& box, float2 p)
{
    return (fminf(box.start.x, box.end.x) <= p.x) & (p.x <= fmaxf(box.start.x, box.end.x))
        & (fminf(box.start.y, box.end.y) <= p.y) & (p.y <= fmaxf(box.start.y, box.end.y));
}

struct Orient {
    // Positive, negative or zero: p lies right of, left of, or on the line through the segment.
    static __device__ __forceinline__ float side(const Segment& line, float2 p)
    {
        return cross(p - line.start, line.end - line.start);
    }

    // For two sides neither of which is zero.
    static __device__ __forceinline__ bool differ(float a, float b)
    {
        return (a > 0.0f) != (b > 0.0f);
    }

    static __device__ __forceinline__ bool intersect(const Segment& a, const Segment& b)
    {
        const float a_start = side(b, a.start);
        const float a_end = side(b, a.end);
        const float b_start = side(a, b.start);
        const float b_end = side(a, b.end);
        const bool crosses = differ(a_start, a_end) & differ(b_start, b_end);
        const bool touches = (a_start == 0.0f) | (a_end == 0.0f) | (b_start == 0.0f) | (b_end == 0.0f);
        if (!touches) return crosses;
        return (a_start == 0.0f && in_box(b, a.start)) || (a_end == 0.0f && in_box(b, a.end))
            || (b_start == 0.0f && in_box(a, b.start)) || (b_end == 0.0f && in_box(a, b.end));
    }
};

struct Compare {
    // 0 <= numerator / denominator <= 1.  A numerator this small counts as 0, whatever the denominator: right for
    // coordinates far from 0, as here.
    static __device__ __forceinline__ bool is_fraction(float numerator, float denominator)
    {
        const bool same_sign = (numerator >= 0.0f) == (denominator >= 0.0f);
        return (fabsf(numerator) < 1e-7f) | (same_sign & (fabsf(numerator) <= fabsf(denominator)));
    }

    static __device__ __forceinline__ bool intersect(const Segment& a, const Segment& b)
    {
        const float2 along_a = a.end - a.start;
        const float2 along_b = b.end - b.start;
        const float denominator = cross(along_a, along_b);
        const float2 between = b.start - a.start;
        return (denominator != 0.0f) & is_fraction(cross(between, along_b), denominator)
            & is_fraction(cross(between, along_a), denominator);
    }
};

__device__ __forceinline__ bool boxes_overlap(const Segment& a, const Segment& b)
{
    return (fminf(a.start.x, a.end.x) <= fmaxf(b.start.x, b.end.x))
        & (fminf(b.start.x, b.end.x) <= fmaxf(a.start.x, a.end.x))
        & (fminf(a.start.y, a.end.y) <= fmaxf(b.start.y, b.end.y))
        & (fminf(b.start.y, b.end.y) <= fmaxf(a.start.y, a.end.y));
}

// Even rows of threads bring the column segments, odd ones the row segments: 8 x 32 threads for 128 each, so that half
// of them have nothing to bring.
__device__ __forceinline__ void stage(const Segment* segments, int n, int first_row, int first_column, Segment* rows,
                                      Segment* columns)
{
    const int slot = threadIdx.y / 2 * kThreadsX + threadIdx.x;
    if (slot >= kTile) return;
    const bool brings_column = threadIdx.y % 2 == 0;
    const int index = (brings_column ? first_column : first_row) + slot;
    if (index < n) (brings_column ? columns : rows)[slot] = segments[index];
}

// Adds the number of intersecting pairs to *count.  n is at most 2^31 - 128: the last block's indices run that far.
template <typename Predicate, bool BoundingBox>
__global__ void __launch_bounds__(kThreadsX * kThreadsY, kBlocksPerSm)
count_intersections(const Segment* segments, int n, unsigned long long* count)
{
    __shared__ Segment rows[kTile];
    __shared__ Segment columns[kTile];
    __shared__ unsigned int hits;
    if (blockIdx.y > blockIdx.x) return;
    const int first_row = blockIdx.y * kTile;
    const int first_column = blockIdx.x * kTile;
    if (threadIdx.x == 0 && threadIdx.y == 0) hits = 0;
    stage(segments, n, first_row, first_column, rows, columns);
    __syncthreads();
    for (int c = threadIdx.x; c < kTile; c += kThreadsX) {
        if (first_column + c >= n) break;
        const Segment column = columns[c];
        for (int r = threadIdx.y; r < kTile; r += kThreadsY) {
            if (first_row + r >= first_column + c) break;
            const Segment row = rows[r];
            if (BoundingBox && !boxes_overlap(row, column)) continue;
            if (Predicate::intersect(row, column)) atomicAdd(&hits, 1u);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0 && hits > 0) {
        atomicAdd(count, static_cast<unsigned long long>(hits));
    }
}

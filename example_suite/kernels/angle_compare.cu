// Asking the question in another numeric space: compare what is cheap to compute.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (operate in a different
// numeric space).
//
// Is the angle at an elbow wider than a limit?  Angles are those between two arms, 0 to pi; reflex ones do not occur.
//
//   AngleByAcos    acosf(u.v / (|u| |v|)) > limit: computes the angle.
//   AngleByCosine  u.v / (|u| |v|) < cos(limit): the cosine falls steadily from 0 to pi, so it decides alike.  That of
//                  the limit is computed once, on the host.
//   AngleBySquare  the same squared, with its sign kept, and multiplied by the squared lengths: u.v |u.v| < c |c| uu
//                  vv. Neither roots nor divisions.
//
// Its siblings: is a point farther than a radius (DistanceByRoot, DistanceBySquare), and is a product of probabilities
// worth computing, when a sum of their logarithms says as much and does not underflow (Product, SumOfLogarithms)?
//
// In the machine code: FFMA of acosf's polynomial; MUFU.RSQ and MUFU.RCP, each with the instructions that correct it to
// the last bit; and CALL for the slow paths of roots and divisions.

struct AngleByAcos {
    static __device__ __forceinline__ bool exceeds(float2 u, float2 v, float limit, float)
    {
        const float lengths = sqrtf(u.x * u.x + u.y * u.y) * sqrtf(v.x * v.x + v.y * v.y);
        const float cosine = (u.x * v.x + u.y * v.y) / lengths;
        return acosf(fmaxf(cosine, -1.0f)) > limit;  // rounding takes it below -1, where acosf is NaN
    }
};

struct AngleByCosine {
    static __device__ __forceinline__ bool exceeds(float2 u, float2 v, float, float cosine_of_limit)
    {
        const float lengths = sqrtf(u.x * u.x + u.y * u.y) * sqrtf(v.x * v.x + v.y * v.y);
        return (u.x * v.x + u.y * v.y) / lengths < cosine_of_limit;
    }
};

struct AngleBySquare {
    static __device__ __forceinline__ bool exceeds(float2 u, float2 v, float, float cosine_of_limit)
    {
        const float dot = u.x * v.x + u.y * v.y;
        const float squares = (u.x * u.x + u.y * u.y) * (v.x * v.x + v.y * v.y);
        return dot * fabsf(dot) < cosine_of_limit * fabsf(cosine_of_limit) * squares;
    }
};

struct DistanceByRoot {
    static __device__ __forceinline__ bool exceeds(float2 u, float2, float radius, float)
    {
        return sqrtf(u.x * u.x + u.y * u.y) > radius;
    }
};

struct DistanceBySquare {
    static __device__ __forceinline__ bool exceeds(float2 u, float2, float, float square_of_radius)
    {
        return u.x * u.x + u.y * u.y > square_of_radius;
    }
};

constexpr float kStep = 0.03125f;

// How many of `Queries` elbows exceed the limit: the given one, and others whose first hand has moved on in x.  `image`
// is what the limit is in the other space, computed once, on the host: an angle's cosine, or a radius squared.
template <typename Question, int Queries>
__global__ void count_exceeding(const float2* hand, const float2* elbow, const float2* shoulder, float limit,
                                float image, unsigned char* count, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float2 middle = elbow[i];
    const float2 first = hand[i];
    const float2 last = shoulder[i];
    float2 u = make_float2(first.x - middle.x, first.y - middle.y);
    const float2 v = make_float2(last.x - middle.x, last.y - middle.y);
    int found = 0;
#pragma unroll 1
    for (int query = 0; query < Queries; ++query) {
        found += Question::exceeds(u, v, limit, image);
        u.x += kStep;
    }
    count[i] = static_cast<unsigned char>(found);
}

struct Product {
    static constexpr float kNone = 1.0f;
    static __device__ __forceinline__ float of(float factor) { return factor; }
    static __device__ __forceinline__ float join(float a, float b) { return a * b; }
};

struct SumOfLogarithms {
    static constexpr float kNone = 0.0f;
    static __device__ __forceinline__ float of(float factor) { return logf(factor); }
    static __device__ __forceinline__ float join(float a, float b) { return a + b; }
};

// All factors in one figure; for one block of 256 threads.
template <typename Figure>
__global__ void join_factors(const float* factors, int n, float* joined)
{
    __shared__ float partial[256];
    float own = Figure::kNone;
    for (int i = threadIdx.x; i < n; i += 256) own = Figure::join(own, Figure::of(factors[i]));
    partial[threadIdx.x] = own;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] = Figure::join(partial[threadIdx.x], partial[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0) *joined = partial[0];
}

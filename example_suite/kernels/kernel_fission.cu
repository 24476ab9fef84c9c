// One kernel for three kinds of work, or three kernels: registers follow the high-water mark.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (register usage is determined
// by the high-water mark).
//
// The forces of a molecule's bonds, angles and dihedrals, added up atom by atom:
//
//   bond       k (r - r0)^2                   of the distance of two atoms
//   angle      k (theta - theta0)^2           at the middle one of three
//   dihedral   sum of k_m (1 + cos(m phi - delta_m)), m = 1, 2, 3: of the twist of four
//
//   fused                     one launch; a block's number says which kind of terms it has.
//   bonds, angles, dihedrals  the same, a kernel each.
//
// A kernel has as many registers as its hungriest path needs, and every block gets them: the fused kernel's bonds run
// at the dihedrals' occupancy.  Apart, bonds have a better one, for two launches more.  Which is faster has to be
// measured.
//
// In the machine code: registers, and the stack.  sinf of a large argument keeps digits of 2/pi in local memory;
// --use_fast_math does without.

constexpr float kBond = 3.0f, kBondLength = 1.1f;
constexpr float kAngle = 2.0f, kAngleAtRest = 1.7f;
constexpr float kTwist[3] = {0.7f, 0.5f, 0.3f}, kPhase[3] = {0.4f, -0.9f, 1.6f};

__device__ __forceinline__ float3 operator+(float3 a, float3 b)
{
    return make_float3(a.x + b.x, a.y + b.y, a.z + b.z);
}

__device__ __forceinline__ float3 operator*(float s, float3 a)
{
    return make_float3(s * a.x, s * a.y, s * a.z);
}

__device__ __forceinline__ float3 operator-(float3 a, float3 b)
{
    return a + -1.0f * b;
}

__device__ __forceinline__ float dot(float3 a, float3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

__device__ __forceinline__ float3 cross(float3 a, float3 b)
{
    return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

__device__ __forceinline__ float3 place(const float4* atoms, int atom)
{
    const float4 found = atoms[atom];
    return make_float3(found.x, found.y, found.z);
}

__device__ __forceinline__ void push(float4* forces, int atom, float3 force)
{
    atomicAdd(&forces[atom].x, force.x);
    atomicAdd(&forces[atom].y, force.y);
    atomicAdd(&forces[atom].z, force.z);
}

__device__ __forceinline__ void push_bond(const float4* atoms, const int2* terms, int count, int term, float4* forces)
{
    if (term >= count) return;
    const int2 of = terms[term];
    const float3 apart = place(atoms, of.x) - place(atoms, of.y);
    const float length = sqrtf(dot(apart, apart));
    const float3 force = -2.0f * kBond * (length - kBondLength) / length * apart;
    push(forces, of.x, force);
    push(forces, of.y, -1.0f * force);
}

// Terms are (first, middle, last, unused).
__device__ __forceinline__ void push_angle(const float4* atoms, const int4* terms, int count, int term, float4* forces)
{
    if (term >= count) return;
    const int4 of = terms[term];
    const float3 middle = place(atoms, of.y);
    const float3 a = place(atoms, of.x) - middle;
    const float3 b = place(atoms, of.z) - middle;
    const float aa = dot(a, a);
    const float bb = dot(b, b);
    const float lengths = sqrtf(aa * bb);
    const float cosine = fminf(fmaxf(dot(a, b) / lengths, -0.999999f), 0.999999f);
    const float strength = 2.0f * kAngle * (acosf(cosine) - kAngleAtRest) * rsqrtf(1.0f - cosine * cosine);
    const float3 on_first = strength / lengths * b - strength * cosine / aa * a;
    const float3 on_last = strength / lengths * a - strength * cosine / bb * b;
    push(forces, of.x, on_first);
    push(forces, of.y, -1.0f * (on_first + on_last));
    push(forces, of.z, on_last);
}

__device__ __forceinline__ void push_dihedral(const float4* atoms, const int4* terms, int count, int term,
                                              float4* forces)
{
    if (term >= count) return;
    const int4 of = terms[term];
    const float3 second = place(atoms, of.y);
    const float3 third = place(atoms, of.z);
    const float3 a = second - place(atoms, of.x);
    const float3 axis = third - second;
    const float3 b = place(atoms, of.w) - third;
    const float3 normal_a = cross(a, axis);
    const float3 normal_b = cross(axis, b);
    const float length = sqrtf(dot(axis, axis));
    const float phi = atan2f(length * dot(a, normal_b), dot(normal_a, normal_b));
    float slope = 0.0f;
#pragma unroll
    for (int m = 1; m <= 3; ++m) slope -= m * kTwist[m - 1] * sinf(m * phi - kPhase[m - 1]);
    const float3 on_first = slope * length / dot(normal_a, normal_a) * normal_a;
    const float3 on_last = -slope * length / dot(normal_b, normal_b) * normal_b;
    const float3 shared = -1.0f / (length * length) * (dot(a, axis) * on_first - dot(b, axis) * on_last);
    push(forces, of.x, on_first);
    push(forces, of.y, shared - on_first);
    push(forces, of.z, -1.0f * (shared + on_last));
    push(forces, of.w, on_last);
}

__device__ __forceinline__ int term_from(int first_block)
{
    return (blockIdx.x - first_block) * blockDim.x + threadIdx.x;
}

extern "C" __global__ void bonds(const float4* atoms, const int2* terms, int count, float4* forces)
{
    push_bond(atoms, terms, count, term_from(0), forces);
}

extern "C" __global__ void angles(const float4* atoms, const int4* terms, int count, float4* forces)
{
    push_angle(atoms, terms, count, term_from(0), forces);
}

extern "C" __global__ void dihedrals(const float4* atoms, const int4* terms, int count, float4* forces)
{
    push_dihedral(atoms, terms, count, term_from(0), forces);
}

// Blocks below `first_angles` have bonds, those from `first_dihedrals` on dihedrals.
extern "C" __global__ void fused(const float4* atoms, const int2* bond_terms, int bond_count, const int4* angle_terms,
                                 int angle_count, const int4* dihedral_terms, int dihedral_count, int first_angles,
                                 int first_dihedrals, float4* forces)
{
    const int block = blockIdx.x;
    if (block < first_angles) {
        push_bond(atoms, bond_terms, bond_count, term_from(0), forces);
    } else if (block < first_dihedrals) {
        push_angle(atoms, angle_terms, angle_count, term_from(first_angles), forces);
    } else {
        push_dihedral(atoms, dihedral_terms, dihedral_count, term_from(first_dihedrals), forces);
    }
}

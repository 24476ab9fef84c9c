// Sorting before computing: neighbours in space as neighbours in a warp.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (spatial sorting in molecular
// dynamics).
//
// Forces between atoms closer than a cutoff, from U(r) = q q' / r + A / r^12 - B / r^6.  Atoms come in tiles of 32, and
// a warp takes a pair of tiles: each lane owns an atom of the first tile, keeps it in registers, and meets the atoms of
// the second one in shared memory, lane by lane in rotation, so that no two lanes ever meet the same one at a time.
// A pair of tiles loads 2 * 32 * 16 bytes for 32 * 32 pairs of atoms.
//
// The same kernel runs on the same atoms in three orders.  All keep the atoms of a patch of space together:
//
//   patch_random   in any order within the patch.  A tile is as large as the patch, has many tiles near it, and few of
//                  its atoms are near a given atom: most lanes fail the test of the distance.
//   patch_bisect   the patch is halved along its longest side until 32 atoms are left: a tile is a small box.
//   patch_morton   along a space-filling curve: about as good, and cheaper to make.
//
// Most of what sorting gains is that fewer pairs of tiles are near each other: three times fewer, with three times as
// many lanes active past the test of the distance.  Without a cutoff all pairs of tiles and all lanes count in any
// order, and sorting gains nothing.
//
// In the machine code: nothing, it is the same.  Look at the number of tile pairs, and at the active lanes inside the
// test of the distance.

constexpr int kTile = 32;
constexpr int kWarps = 4;  // of a block; each has a pair of tiles for itself
constexpr float kA = 1.0f;
constexpr float kB = 1.0f;

struct alignas(16) TilePair {
    int first, second;
    int mask;  // row of `masks`, or -1 if all 1024 pairs of atoms count
    int unused;
};

struct Force {
    float x, y, z;
};

__device__ __forceinline__ void add_to(float* forces, int atoms, int atom, const Force& force)
{
    atomicAdd(&forces[atom], force.x);
    atomicAdd(&forces[atoms + atom], force.y);
    atomicAdd(&forces[2 * atoms + atom], force.z);
}

// Force on an atom towards another one at squared distance r2, divided by their distance; negative if they repel.
__device__ __forceinline__ float pull(float r2, float charges)
{
    const float rinv = rsqrtf(r2);
    const float rinv2 = rinv * rinv;
    const float rinv3 = rinv2 * rinv;
    const float rinv6 = rinv3 * rinv3;
    const float rinv8 = rinv6 * rinv2;
    return -(charges * rinv3 + (12.0f * kA * rinv6 - 6.0f * kB) * rinv8);
}

// `atoms` are x, y, z and charge.  Bit t of a lane's word in a row of `masks` says whether the lane's atom and that of
// lane (t + lane) % 32 of the second tile count.  `forces` are all x, then all y, then all z; they are added to.
// A tile paired with itself meets each pair of atoms twice, once from either side; so only the owner's force counts.
extern "C" __global__ void tile_forces(const float4* atoms, const TilePair* pairs, const unsigned* masks, float* forces,
                                       int atom_count, int pair_count, float cutoff2)
{
    __shared__ float4 others[kWarps][kTile];
    __shared__ Force forces_on_others[kWarps][kTile];
    const int warp = threadIdx.x / kTile;
    const int lane = threadIdx.x % kTile;
    const int index = blockIdx.x * kWarps + warp;
    if (index >= pair_count) return;
    const TilePair pair = pairs[index];
    const bool with_itself = pair.first == pair.second;
    const float4 own = atoms[pair.first * kTile + lane];
    others[warp][lane] = atoms[pair.second * kTile + lane];
    forces_on_others[warp][lane] = Force{0.0f, 0.0f, 0.0f};
    unsigned counts = pair.mask < 0 ? 0xffffffffu : masks[pair.mask * kTile + lane];
    Force force{0.0f, 0.0f, 0.0f};
    __syncwarp();
#pragma unroll 4
    for (int t = 0; t < kTile; ++t) {
        if (counts & 1u) {
            const int j = (t + lane) % kTile;
            const float4 other = others[warp][j];
            const float dx = other.x - own.x;
            const float dy = other.y - own.y;
            const float dz = other.z - own.z;
            const float r2 = dx * dx + dy * dy + dz * dz;
            if (r2 < cutoff2) {
                const float f = pull(r2, own.w * other.w);
                force.x += f * dx;
                force.y += f * dy;
                force.z += f * dz;
                if (!with_itself) {
                    Force& back = forces_on_others[warp][j];
                    back.x -= f * dx;
                    back.y -= f * dy;
                    back.z -= f * dz;
                }
            }
        }
        counts >>= 1;
        __syncwarp();  // the next lane to add to this atom sees the sum so far
    }
    add_to(forces, atom_count, pair.first * kTile + lane, force);
    if (!with_itself) add_to(forces, atom_count, pair.second * kTile + lane, forces_on_others[warp][lane]);
}

// Values at the faces of a cell, from the slopes in it: what a register saves.
// After the MUSCL reconstruction of HERACLES++, one of the kernels that R. Bourgeois, "Five basic performance advice
// for porting kernels to the GPU", reports on.
//
// A finite-volume code knows the mean value of every cell, and wants it at the faces.  In each direction it takes the
// slopes to the cell's two neighbours, limits them to one that makes no new extremum, and follows it half a cell to
// either side.  Cells are numbered with i fastest, and have a width per direction (a mesh that is not uniform).
//
//   reconstruct_naive   the number of directions is a kernel argument, and every use of a value or a width is a load
//                       and every use of a slope its computation: twice, for the two faces, four divisions each.  The
//                       compiler cannot help, for what it stores might be what it loads again.
//   reconstruct_fixed   the number of directions is a template argument; values are registers, both faces share one
//                       slope, the distances between cells come inverted from the caller, and the limiters are
//                       multiplied out: one division per direction is left, or none.
//   reconstruct_dividing  has registers and one slope for both faces like reconstruct_fixed, and divides as often per
//                       slope as reconstruct_naive.  A control: what it lacks is what the divisions alone cost.
//
// In the machine code: count the MUFU (each division starts with a reciprocal) and the LDG.

struct VanLeer {
    // l and r are the slopes to the left and to the right.
    static __device__ __forceinline__ double limit(double l, double r)
    {
        if (l * r <= 0.0) return 0.0;
        const double ratio = r / l;
        return 0.5 * (r + l) * (4.0 * ratio / ((ratio + 1.0) * (ratio + 1.0)));
    }

    static __device__ __forceinline__ double limit_fast(double l, double r)
    {
        return l * r > 0.0 ? 2.0 * l * r / (l + r) : 0.0;
    }
};

struct Minmod {
    static __device__ __forceinline__ double limit(double l, double r)
    {
        if (l * r <= 0.0) return 0.0;
        const double ratio = r / l;
        return 2.0 * fmin(1.0, ratio) / (1.0 + ratio) * ((l + r) / 2.0);
    }

    static __device__ __forceinline__ double limit_fast(double l, double r)
    {
        return l * r > 0.0 ? (fabs(l) < fabs(r) ? l : r) : 0.0;
    }
};

// A cube of n cells per direction, of which those on the surface have no slope; one thread per inner cell.
struct Cell {
    int position[3];
    int index;
    bool is_inner;
};

__device__ __forceinline__ Cell own_cell(int n)
{
    const int i = 1 + blockIdx.x * blockDim.x + threadIdx.x;
    const int j = 1 + blockIdx.y;
    const int k = 1 + blockIdx.z;
    return {{i, j, k}, i + n * (j + n * k), i < n - 1};
}

template <typename Limiter>
__device__ double slope_in(const double* value, const double* width, int cell, int step, int x)
{
    const double right = (value[cell + step] - value[cell]) / ((width[x] + width[x + 1]) / 2.0);
    const double left = (value[cell] - value[cell - step]) / ((width[x - 1] + width[x]) / 2.0);
    return Limiter::limit(left, right);
}

// face[2 * direction + side] and width[direction] are arrays of n^3 and n doubles.  Plain pointers on purpose.
template <typename Limiter>
__global__ void reconstruct_naive(double* face, const double* value, const double* width, int n, int directions)
{
    const Cell cell = own_cell(n);
    if (!cell.is_inner) return;
    const long long cells = static_cast<long long>(n) * n * n;
    int step = 1;
    for (int d = 0; d < directions; ++d) {
        const int x = d == 0 ? cell.position[0] : d == 1 ? cell.position[1] : cell.position[2];
        const double* widths = width + d * n;
        for (int side = 0; side < 2; ++side) {
            const double way = side == 0 ? -widths[x] / 2.0 : widths[x] / 2.0;
            face[(2 * d + side) * cells + cell.index]
                = value[cell.index] + way * slope_in<Limiter>(value, widths, cell.index, step, x);
        }
        step *= n;
    }
}

// inverse[direction] has at x what one over the distance from cell x to cell x + 1 is.
template <typename Limiter, int Directions>
__global__ void reconstruct_fixed(
    double* face, const double* value, const double* width, const double* inverse, int n)
{
    const Cell cell = own_cell(n);
    if (!cell.is_inner) return;
    const long long cells = static_cast<long long>(n) * n * n;
    const double own = value[cell.index];
    double way[Directions];
#pragma unroll
    for (int d = 0, step = 1; d < Directions; ++d, step *= n) {
        const int x = cell.position[d];
        const double right = (value[cell.index + step] - own) * inverse[d * n + x];
        const double left = (own - value[cell.index - step]) * inverse[d * n + x - 1];
        way[d] = 0.5 * width[d * n + x] * Limiter::limit_fast(left, right);
    }
#pragma unroll
    for (int d = 0; d < Directions; ++d) {
        face[2 * d * cells + cell.index] = own - way[d];
        face[(2 * d + 1) * cells + cell.index] = own + way[d];
    }
}

template <typename Limiter, int Directions>
__global__ void reconstruct_dividing(double* face, const double* value, const double* width, int n)
{
    const Cell cell = own_cell(n);
    if (!cell.is_inner) return;
    const long long cells = static_cast<long long>(n) * n * n;
    const double own = value[cell.index];
    double way[Directions];
#pragma unroll
    for (int d = 0, step = 1; d < Directions; ++d, step *= n) {
        const int x = cell.position[d];
        way[d] = 0.5 * width[d * n + x] * slope_in<Limiter>(value, width + d * n, cell.index, step, x);
    }
#pragma unroll
    for (int d = 0; d < Directions; ++d) {
        face[2 * d * cells + cell.index] = own - way[d];
        face[(2 * d + 1) * cells + cell.index] = own + way[d];
    }
}

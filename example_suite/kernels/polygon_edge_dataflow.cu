// A chain of cases by control flow or by arithmetic: what the cases have in common.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" (conceptual divergence via
// dataflow, the obfuscated form).
//
// An edge of a polygon crosses a pixel.  If exactly one of the pixel's corners is inside the polygon, or exactly one is
// outside, the edge's two ends are moved so that this corner becomes the origin.
//
//   branch     asks how many corners are inside, then which it is: eight cases, with a subtraction in each.
//   four_arms  the talk's form: four cases, each for a corner that is alone inside or alone outside.  The condition is
//              longer, and a warp has half as many cases to go through.
//   dataflow   sees that all cases subtract something, and computes what: with three corners inside it inverts the four
//              flags, so that one flag is set, and adds up the corners' coordinates times their flags.
//
//   *_once     one adjustment per element, from memory: the memory sets the pace.
//   *_hot      64 adjustments per element with random flags, in registers.
//
// In the machine code: `branch` has a BRA for nearly every case and four subtractions in each, `four_arms` half as many
// subtractions; `dataflow` has one BRA around the whole, and four subtractions in all.

constexpr int kRounds = 64;

// Flags come from a linear congruential generator with the constants of W. Press et al., "Numerical Recipes", chapter 7
// ("quick and dirty generators").

// Which corners of a pixel are inside; 1 or 0.
struct alignas(4) Corners {
    unsigned char left_bottom, left_top, right_bottom, right_top;
};

struct alignas(16) Box {
    float min_x, min_y, max_x, max_y;
};

struct alignas(16) Edge {
    float x1, y1, x2, y2;
};

__device__ __forceinline__ void move_by(Edge& edge, float x, float y)
{
    edge.x1 -= x;
    edge.y1 -= y;
    edge.x2 -= x;
    edge.y2 -= y;
}

struct Branch {
    __device__ __forceinline__ static void adjust(int inside, Corners in, const Box& box, Edge& edge)
    {
        if (inside == 1) {
            if (in.left_bottom) {
                move_by(edge, box.min_x, box.min_y);
            } else if (in.left_top) {
                move_by(edge, box.min_x, box.max_y);
            } else if (in.right_bottom) {
                move_by(edge, box.max_x, box.min_y);
            } else {
                move_by(edge, box.max_x, box.max_y);
            }
        } else if (inside == 3) {
            if (!in.left_bottom) {
                move_by(edge, box.min_x, box.min_y);
            } else if (!in.left_top) {
                move_by(edge, box.min_x, box.max_y);
            } else if (!in.right_bottom) {
                move_by(edge, box.max_x, box.min_y);
            } else {
                move_by(edge, box.max_x, box.max_y);
            }
        }
    }
};

// The talk's arms: one per corner, whether it is alone inside or alone outside.
struct FourArms {
    __device__ __forceinline__ static void adjust(int inside, Corners in, const Box& box, Edge& edge)
    {
        if (inside != 1 && inside != 3) return;
        const bool one = inside == 1;
        if ((one && in.left_bottom) || (!one && !in.left_bottom)) {
            move_by(edge, box.min_x, box.min_y);
        } else if ((one && in.left_top) || (!one && !in.left_top)) {
            move_by(edge, box.min_x, box.max_y);
        } else if ((one && in.right_bottom) || (!one && !in.right_bottom)) {
            move_by(edge, box.max_x, box.min_y);
        } else if ((one && in.right_top) || (!one && !in.right_top)) {
            move_by(edge, box.max_x, box.max_y);
        }
    }
};

struct Dataflow {
    __device__ __forceinline__ static void adjust(int inside, Corners in, const Box& box, Edge& edge)
    {
        if (inside != 1 && inside != 3) return;
        const int invert = inside == 3;
        const int left_bottom = in.left_bottom ^ invert;
        const int left_top = in.left_top ^ invert;
        const int right_bottom = in.right_bottom ^ invert;
        const int right_top = in.right_top ^ invert;
        const float x = (left_bottom + left_top) * box.min_x + (right_bottom + right_top) * box.max_x;
        const float y = (left_bottom + right_bottom) * box.min_y + (left_top + right_top) * box.max_y;
        move_by(edge, x, y);
    }
};

template <typename Way>
__device__ __forceinline__ void adjust_once(const int* inside, const Corners* corners, const Box* boxes,
                                            const Edge* edges, Edge* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Edge edge = edges[i];
    Way::adjust(inside[i], corners[i], boxes[i], edge);
    out[i] = edge;
}

template <typename Way>
__device__ __forceinline__ void adjust_often(const unsigned* seeds, const Box* boxes, const Edge* edges, Edge* out,
                                             int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned state = seeds[i];
    const Box box = boxes[i];
    Edge edge = edges[i];
#pragma unroll 1
    for (int round = 0; round < kRounds; ++round) {
        state = state * 1664525u + 1013904223u;
        const unsigned bits = state >> 28;
        Corners in;
        in.left_bottom = bits & 1u;
        in.left_top = bits >> 1 & 1u;
        in.right_bottom = bits >> 2 & 1u;
        in.right_top = bits >> 3;
        Way::adjust(__popc(bits), in, box, edge);
    }
    out[i] = edge;
}

extern "C" __global__ void branch_once(const int* inside, const Corners* corners, const Box* boxes, const Edge* edges,
                                       Edge* out, int n)
{
    adjust_once<Branch>(inside, corners, boxes, edges, out, n);
}

extern "C" __global__ void dataflow_once(const int* inside, const Corners* corners, const Box* boxes,
                                         const Edge* edges, Edge* out, int n)
{
    adjust_once<Dataflow>(inside, corners, boxes, edges, out, n);
}

extern "C" __global__ void branch_hot(const unsigned* seeds, const Box* boxes, const Edge* edges, Edge* out, int n)
{
    adjust_often<Branch>(seeds, boxes, edges, out, n);
}

extern "C" __global__ void four_arms_hot(const unsigned* seeds, const Box* boxes, const Edge* edges, Edge* out, int n)
{
    adjust_often<FourArms>(seeds, boxes, edges, out, n);
}

extern "C" __global__ void dataflow_hot(const unsigned* seeds, const Box* boxes, const Edge* edges, Edge* out, int n)
{
    adjust_often<Dataflow>(seeds, boxes, edges, out, n);
}

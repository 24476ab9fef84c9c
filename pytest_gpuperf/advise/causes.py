"""What a kernel can be slow of: every cause that ``advise`` may name, as data.

Where remedies and examples come from is in ``docs/explanation/why-slower.md``.
"""

from __future__ import annotations

from pytest_gpuperf.model.evidence import Record


class Cause(Record, frozen=True):
    """One way of being slow, in the words of the field."""

    key: str
    """Its name in messages, in the list of pairs, in tables."""
    says: str
    """One sentence: what the kernel does."""
    remedy: str
    """One sentence: what to do."""
    family: str
    """The family of the example suite that shows it: ``kernels/<family>.cu``."""


UNCOALESCED = Cause(
    key="uncoalesced access",
    says="the threads of a warp touch addresses far apart, so that a request moves more sectors than it has bytes for",
    remedy="let neighbouring threads take neighbouring elements: swap the layout or the index, or go through a tile in "
    "shared memory",
    family="transpose32",
)
REDUNDANT_TRAFFIC = Cause(
    key="redundant global traffic",
    says="the same data goes to and from global memory more than once, or data that could be computed",
    remedy="keep it in a register, which const and __restrict__ let the compiler do, or share it between threads in "
    "shared memory, and write it back once; compute what takes few instructions",
    family="sample1_redundant_access",
)
BANK_CONFLICTS = Cause(
    key="bank conflicts",
    says="lanes of a warp want different words of one shared-memory bank, and take turns",
    remedy="pad the rows of the tile by one element ([32][33]), or permute its columns",
    family="bank_conflicts",
)
SPILLING = Cause(
    key="register spilling",
    says="the kernel needs more registers than it is allowed, and keeps the rest in local memory",
    remedy="raise or drop -maxrregcount and __launch_bounds__, or keep fewer values alive: unroll less, split kernels",
    family="occupancy_registers",
)
STACK = Cause(
    key="stack from run-time indexing",
    says="an array of the thread is indexed by what is known at run time only, and so it lives in local memory",
    remedy="make every index a compile-time constant: a template parameter, full unrolling, or a switch over the cases",
    family="sample4_local_memory",
)
ADDRESS = Cause(
    key="address of a local variable",
    says="a variable of the thread is read by its address, as printf reads its arguments, and so it lives in local "
    "memory",
    remedy="leave out printf, inline the function that takes the address (__forceinline__), or hand on the value",
    family="sample4_local_memory",
)
OCCUPANCY = Cause(
    key="occupancy lost",
    says="an SM holds fewer warps, and hides less latency",
    remedy="give back what limits it: registers (__launch_bounds__, fewer live values, a branch as a template "
    "parameter), or shared memory per block",
    family="sample7_template_branch",
)
DIVERGENCE = Cause(
    key="divergence",
    says="lanes of a warp go different ways, and the warp issues every way for some of its lanes",
    remedy="let whole warps decide alike: sort or queue the work, branch by warp, or choose by arithmetic",
    family="divergent_branch",
)
DOUBLE = Cause(
    key="double-precision literals",
    says="the kernel computes in double precision",
    remedy="write 1.0f instead of 1.0, powf instead of pow, and in a template static_cast<T>(1.0); "
    "sinf and cosf carry some for large angles, sinpif, __sinf and --use_fast_math do not",
    family="polynomial",
)
DIVISION = Cause(
    key="slow-path division",
    says="a division or square root that is not exact by construction carries a slow path, or an integer is divided by "
    "what is known at run time only",
    remedy="multiply by the inverse, move the divisor across the comparison, make it a compile-time constant, or use "
    "__fdividef, or --use_fast_math for all of them, where that is accurate enough",
    family="segment_intersection",
)
INSTRUCTIONS = Cause(
    key="instruction growth",
    says="the kernel executes more instructions for the same result",
    remedy="compute once, at compile time, or by a cheaper formula: hoist, unroll, FMA, signed counters, intrinsics",
    family="math_cost_ladder",
)
LATENCY = Cause(
    key="exposed latency",
    says="warps wait for their own results or loads, and there are too few others to run meanwhile",
    remedy="more independent work per thread (unroll, several accumulators, load ahead), or more warps",
    family="kernel_a_latency",
)
BARRIERS = Cause(
    key="barrier stalls",
    says="warps wait for each other at barriers, or for memory at fences",
    remedy="fewer barriers: warp shuffles for the last 32, __syncwarp within a warp, or smaller blocks; "
    "__threadfence only where other blocks read",
    family="reduce_sum",
)
VECTORISATION = Cause(
    key="lost vectorisation",
    says="the same bytes take more and narrower memory instructions",
    remedy="load float4 (16 bytes, aligned) per thread; keep __restrict__ and the alignment that the compiler needs",
    family="vector_loads_float4",
)
TENSOR = Cause(
    key="lost tensor cores",
    says="the matrix product runs on the arithmetic units instead of the tensor cores",
    remedy="keep the types and shapes that mma or wgmma take, or call CUTLASS or cuBLAS",
    family="hmma_1688",
)
CACHE = Cause(
    key="cache hit loss",
    says="the same requests miss a cache that used to serve them",
    remedy="bring back the locality: order the work by what it touches, make the working set smaller than the cache",
    family="md_tile_spatial_sort",
)
LAUNCH = Cause(
    key="launch configuration",
    says="grid and block do not fit the GPU: blocks too small, too odd or too few for its SMs",
    remedy="blocks of 128 to 256 threads, a multiple of 32, and several blocks for every SM",
    family="occupancy_block_size",
)

BY_KEY: dict[str, Cause] = {
    cause.key: cause for cause in (
        UNCOALESCED, REDUNDANT_TRAFFIC, BANK_CONFLICTS, SPILLING, STACK, ADDRESS, OCCUPANCY, DIVERGENCE, DOUBLE,
        DIVISION, INSTRUCTIONS, LATENCY, BARRIERS, VECTORISATION, TENSOR, CACHE, LAUNCH,
    )
}  # fmt: skip

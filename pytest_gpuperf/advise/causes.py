"""What a kernel can be slow of: every cause that ``advise`` may name, as data.

Sources: GTC25 "CUDA Techniques to Maximize Compute and Instruction Throughput" (S72685); GTC23 "What the profiler is
telling you: optimizing your CUDA application"; BLOG "Five basic performance advice for porting kernels to the GPU";
COURSE the "Optimization" chapter of a CUDA course.
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
    source: str
    """Where remedy and example come from."""


UNCOALESCED = Cause(
    key="uncoalesced access",
    says="the threads of a warp touch addresses far apart, so that a request moves more sectors than it has bytes for",
    remedy="let neighbouring threads take neighbouring elements: swap the layout or the index, or go through a tile in "
    "shared memory",
    family="transpose32",
    source="GTC23 'Coalesced access'; BLOG 3; COURSE checklist (2-10x)",
)
REDUNDANT_TRAFFIC = Cause(
    key="redundant global traffic",
    says="the same data goes to and from global memory more than once, or data that could be computed",
    remedy="keep it in a register, which const and __restrict__ let the compiler do, or share it between threads in "
    "shared memory, and write it back once; compute what takes few instructions",
    family="sample1_redundant_access",
    source="BLOG 1 and 2; COURSE 'Shared memory' (2-5x); GTC25 'Stall avoidance strategies'",
)
BANK_CONFLICTS = Cause(
    key="bank conflicts",
    says="lanes of a warp want different words of one shared-memory bank, and take turns",
    remedy="pad the rows of the tile by one element ([32][33]), or permute its columns",
    family="bank_conflicts",
    source="GTC23 'Shared memory bank conflicts'; COURSE checklist (1.2-2x)",
)
SPILLING = Cause(
    key="register spilling",
    says="the kernel needs more registers than it is allowed, and keeps the rest in local memory",
    remedy="raise or drop -maxrregcount and __launch_bounds__, or keep fewer values alive: unroll less, split kernels",
    family="occupancy_registers",
    source="GTC25 'Occupancy limiters: registers'",
)
STACK = Cause(
    key="stack from run-time indexing",
    says="an array of the thread is indexed by what is known at run time only, and so it lives in local memory",
    remedy="make every index a compile-time constant: a template parameter, full unrolling, or a switch over the cases",
    family="sample4_local_memory",
    source="BLOG 4 and 5",
)
ADDRESS = Cause(
    key="address of a local variable",
    says="a variable of the thread is read by its address, as printf reads its arguments, and so it lives in local "
    "memory",
    remedy="leave out printf, inline the function that takes the address (__forceinline__), or hand on the value",
    family="sample4_local_memory",
    source="CUDA C++ Programming Guide, 'Local Memory' and 'Formatted Output'",
)
OCCUPANCY = Cause(
    key="occupancy lost",
    says="an SM holds fewer warps, and hides less latency",
    remedy="give back what limits it: registers (__launch_bounds__, fewer live values, a branch as a template "
    "parameter), or shared memory per block",
    family="sample7_template_branch",
    source="GTC25 'Occupancy limiters'; BLOG 'Template the branch'; COURSE checklist (1.1-1.5x)",
)
DIVERGENCE = Cause(
    key="divergence",
    says="lanes of a warp go different ways, and the warp issues every way for some of its lanes",
    remedy="let whole warps decide alike: sort or queue the work, branch by warp, or choose by arithmetic",
    family="divergent_branch",
    source="GTC25 'Warp divergence'; BLOG 8; COURSE checklist (1.5-2x)",
)
DOUBLE = Cause(
    key="double-precision literals",
    says="the kernel computes in double precision",
    remedy="write 1.0f instead of 1.0, powf instead of pow, and in a template static_cast<T>(1.0); "
    "sinf and cosf carry some for large angles, sinpif, __sinf and --use_fast_math do not",
    family="polynomial",
    source="GTC25 'Use only the precision your application needs'; BLOG 4",
)
DIVISION = Cause(
    key="slow-path division",
    says="a division or square root that is not exact by construction carries a slow path, or an integer is divided by "
    "what is known at run time only",
    remedy="multiply by the inverse, move the divisor across the comparison, make it a compile-time constant, or use "
    "__fdividef, or --use_fast_math for all of them, where that is accurate enough",
    family="segment_intersection",
    source="GTC25 'Avoiding division', 'Cost hierarchy'",
)
INSTRUCTIONS = Cause(
    key="instruction growth",
    says="the kernel executes more instructions for the same result",
    remedy="compute once, at compile time, or by a cheaper formula: hoist, unroll, FMA, signed counters, intrinsics",
    family="math_cost_ladder",
    source="GTC25 'Ways to reduce instruction count', 'Small changes can have a large impact'",
)
LATENCY = Cause(
    key="exposed latency",
    says="warps wait for their own results or loads, and there are too few others to run meanwhile",
    remedy="more independent work per thread (unroll, several accumulators, load ahead), or more warps",
    family="kernel_a_latency",
    source="GTC25 'Latency bound kernel', 'Stall avoidance strategies'; GTC23 'Latency'",
)
BARRIERS = Cause(
    key="barrier stalls",
    says="warps wait for each other at barriers, or for memory at fences",
    remedy="fewer barriers: warp shuffles for the last 32, __syncwarp within a warp, or smaller blocks; "
    "__threadfence only where other blocks read",
    family="reduce_sum",
    source="COURSE 'Warp primitives' (1.2-1.5x) and thresholds; GTC25 'Barriers'",
)
VECTORISATION = Cause(
    key="lost vectorisation",
    says="the same bytes take more and narrower memory instructions",
    remedy="load float4 (16 bytes, aligned) per thread; keep __restrict__ and the alignment that the compiler needs",
    family="vector_loads_float4",
    source="GTC25 'Vectorized instructions'; BLOG on LG throttle",
)
TENSOR = Cause(
    key="lost tensor cores",
    says="the matrix product runs on the arithmetic units instead of the tensor cores",
    remedy="keep the types and shapes that mma or wgmma take, or call CUTLASS or cuBLAS",
    family="hmma_1688",
    source="GTC25 'Tensor core summary'; COURSE checklist (8-16x)",
)
CACHE = Cause(
    key="cache hit loss",
    says="the same requests miss a cache that used to serve them",
    remedy="bring back the locality: order the work by what it touches, make the working set smaller than the cache",
    family="md_tile_spatial_sort",
    source="COURSE thresholds (L2 hit rate > 50 %); BLOG 3",
)
WORK_PER_THREAD = Cause(
    key="more work per thread",
    says="a thread does the work of several, so that there are too few of them to fill the GPU",
    remedy="launch more threads with less work each, down to where the GPU is full",
    family="kernel_a_latency",
    source="GTC23 'Bigger grid to saturate all slots'; GTC25 'Thread block size'",
)
LAUNCH = Cause(
    key="launch configuration",
    says="grid and block do not fit the GPU: blocks too small, too odd or too few for its SMs",
    remedy="blocks of 128 to 256 threads, a multiple of 32, and several blocks for every SM",
    family="occupancy_block_size",
    source="GTC25 'Thread block size'; BLOG 6; COURSE checklist (1.1-1.3x)",
)

CAUSES: tuple[Cause, ...] = (
    UNCOALESCED, REDUNDANT_TRAFFIC, BANK_CONFLICTS, SPILLING, STACK, ADDRESS, OCCUPANCY, DIVERGENCE, DOUBLE, DIVISION,
    INSTRUCTIONS, LATENCY, BARRIERS, VECTORISATION, TENSOR, CACHE, WORK_PER_THREAD, LAUNCH,
)  # fmt: skip

BY_KEY: dict[str, Cause] = {cause.key: cause for cause in CAUSES}

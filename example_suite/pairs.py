"""Every naive/optimised pair of the suite: which two workloads, and what the naive one is slow of.

Both workloads of a pair are measured by one test, under these names.  A test's optimised workload has one naive
sibling: of two that differ in two things, there is a third one in between (naive, coalesced, padded).
``--naive-siblings`` turns the one into the other, and the gate has to notice; see ``siblings.py``.
"""

from __future__ import annotations

import dataclasses

UNCOALESCED = "uncoalesced access"
REDUNDANT = "redundant global traffic"
BANKS = "bank conflicts"
SPILLS = "register spilling"
STACK = "stack from run-time indexing"
OCCUPANCY = "occupancy lost"
DIVERGENCE = "divergence"
DOUBLE = "double-precision literals"
DIVISION = "slow-path division"
INSTRUCTIONS = "instruction growth"
LATENCY = "exposed latency"
BARRIERS = "barrier stalls"
NARROW = "lost vectorisation"
NO_TENSOR = "lost tensor cores"
LAUNCH = "launch configuration"
SEVERAL = ""


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two workloads that do the same, one of them slowly."""

    family: str
    """``transpose32``: ``kernels/transpose32.cu`` and ``test_transpose32.py``."""
    test: str
    """The test function that measures both."""
    optimised: str
    naive: str
    cause: str
    """What dominates, by its key among the causes of ``pytest_gpuperf.advise``; empty if no single one does."""
    why: str
    """What the naive one does."""

    @property
    def module(self) -> str:
        return f"test_{self.family}.py"


def _pairs(family: str, test: str, *rows: tuple[str, str, str, str]) -> tuple[Pair, ...]:
    """Rows of optimised, naive, cause and why."""
    return tuple(Pair(family, test, *row) for row in rows)


WAITS_ALONE = "one warp per scheduler waits for each addition before it issues the next"
IN_DOUBLE = "adds in double precision, which takes twice the cycles"
DIVIDES = "divides by the cross product, with a slow path for large operands"
LOOKS_FIRST = "compares bounding boxes first, though nearly half of them overlap"
LOOKS_NEVER = "evaluates the whole predicate for pairs that a box would have ruled out"
DIVES_ALONE = "the lane that finds an item dives at once, and the others of its warp wait"
TOO_FEW_WARPS = "half as many warps have half as many loads on their way"

PAIRS: tuple[Pair, ...] = (
    *_pairs(
        "kernel_a_latency",
        "test_chain_of_additions",
        ("f32_1warp", "f64_1warp", DOUBLE, IN_DOUBLE),
        ("f32_saturated", "f64_saturated", DOUBLE, IN_DOUBLE),
        ("f32_ilp2", "f32_1warp", LATENCY, f"{WAITS_ALONE}: half the work in the same time"),
        ("f32_3warps", "f32_1warp", LATENCY, f"{WAITS_ALONE}: a twelfth of the work in the same time"),
    ),
    *_pairs(
        "simt_divergence_mask",
        "test_branch_by_lane",
        ("uniform_true", "mask_divergent", DIVERGENCE, "three lanes of a warp take another side than the others"),
    ),
    *_pairs(
        "scout_and_dive",
        "test_diving_for_a_share_of_items",
        ("from queue, 1 in 256", "at once, 1 in 256", DIVERGENCE, DIVES_ALONE),
        ("from queue, 1 in 16", "at once, 1 in 16", DIVERGENCE, DIVES_ALONE),
        ("from queue, 1 in 4", "at once, 1 in 4", DIVERGENCE, DIVES_ALONE),
        ("at once, all", "from queue, all", SEVERAL, "queues items that every lane has anyway"),
        ("two kernels, 1 in 16", "at once, 1 in 16", DIVERGENCE, DIVES_ALONE),
    ),
    *_pairs(
        "md_tile_spatial_sort",
        "test_forces_of_many_atoms",
        ("patch_bisect", "patch_random", DIVERGENCE, "tiles of atoms from anywhere in a patch: few lanes are close"),
        ("patch_morton", "patch_random", DIVERGENCE, "tiles of atoms from anywhere in a patch: few lanes are close"),
    ),
    *_pairs(
        "select_dataflow",
        "test_choosing_by_flags",
        ("predicate_math", "branch", DIVERGENCE, "a warp goes through all sides of the choice, one load after another"),
        ("branch_in_registers", "math_in_registers", INSTRUCTIONS, "converts flags where the compiler would select"),
    ),
    *_pairs(
        "polygon_edge_dataflow",
        "test_adjusting_edges",
        ("dataflow_hot", "branch_hot", DIVERGENCE, "eight cases with a subtraction in each, which a warp goes through"),
        ("dataflow_once", "branch_once", DIVERGENCE, "the same once per element, while the memory sets the pace"),
    ),
    *_pairs(
        "dynamic_block_dims",
        "test_shape_of_a_block",
        ("virtual", "static (32, 8, 1)", LAUNCH, "a block of one shape for all polygons, most of whose threads idle"),
        ("all fit, static (8, 8, 4)", "all fit, virtual", SEVERAL, "chooses a shape where the fixed one fits"),
    ),
    *_pairs(
        "register_pipelining",
        "test_computing_while_loading",
        ("prefetch_1, 4 warps per SM", "plain, 4 warps per SM", LATENCY, "loads a value and waits before it computes"),
        ("prefetch_4, 4 warps per SM", "prefetch_1, 4 warps per SM", LATENCY, "has only one value on its way"),
        ("async_tiles, 4 warps per SM", "plain, 4 warps per SM", LATENCY, "loads a value and waits before it computes"),
        ("prefetch_1, 64 warps per SM", "plain, 64 warps per SM", LATENCY, "loads and waits; others run meanwhile"),
    ),
    *_pairs(
        "barriers",
        "test_exchange_in_many_blocks",
        ("converged", "group_sync", SEVERAL, "a barrier on each side of a branch, counted by a cooperative group"),
    ),
    *_pairs(
        "occupancy_block_size",
        "test_copy_by_block_size",
        ("block of 64", "block of 32", LAUNCH, "blocks so small that an SM runs out of places for them"),
        ("block of 1024", "block of 768", LAUNCH, "blocks of which an SM holds two, with a quarter of it left over"),
    ),
    *_pairs(
        "occupancy_registers",
        "test_limits_on_registers",
        ("at most 128 registers", "at most 32 registers", SPILLS, "keeps 128 values in 32 registers"),
    ),
    *_pairs(
        "occupancy_smem_cards",
        "test_copy_by_size_of_hand",
        ("128 threads with 0.5 KB", "128 threads with 98 KB", OCCUPANCY, "asks for shared memory it does not use"),
        ("96 threads with 73.5 KB", "128 threads with 98 KB", OCCUPANCY, "hands so large that much of an SM is left"),
    ),
    *_pairs(
        "moro_inversion",
        "test_inverting_many_numbers",
        ("Inlined, random numbers", "Called, random numbers", INSTRUCTIONS, "calls a function for each number"),
        ("FastLog, random numbers", "Inlined, random numbers", INSTRUCTIONS, "logarithms correct to the last bit"),
        (
            "Inlined, sorted numbers",
            "Inlined, random numbers",
            DIVERGENCE,
            "nearly every warp has numbers of each side",
        ),
    ),
    *_pairs(
        "kernel_fission",
        "test_one_launch_or_three",
        ("bonds", "fused, bonds only", OCCUPANCY, "bonds run with the registers that dihedrals need"),
    ),
    *_pairs(
        "expf_intrinsics",
        "test_chain_of_exponentials",
        ("__expf, one block per SM", "expf, one block per SM", INSTRUCTIONS, "an exponential correct to the last bits"),
        ("__expf, full", "expf, full", INSTRUCTIONS, "an exponential correct to the last bits, in the shadow of MUFU"),
    ),
    *_pairs(
        "loop_counter_signedness",
        "test_loop_of_many_rounds",
        ("count_signed", "count_unsigned", INSTRUCTIONS, "a counter that may wrap around is tested in every round"),
    ),
    *_pairs(
        "segment_intersection",
        "test_counting_among_many_segments",
        ("Compare at 1e+19", "Divide at 1e+19", DIVISION, DIVIDES),
        ("Compare at 1e+18", "Divide at 1e+18", DIVISION, DIVIDES),
        ("Compare at 100", "Divide at 100", DIVISION, DIVIDES),
        ("Orient at 1e+19", "Divide at 1e+19", DIVISION, DIVIDES),
        ("Orient at 1e+18", "Divide at 1e+18", DIVISION, DIVIDES),
        ("Orient at 100", "Divide at 100", DIVISION, DIVIDES),
        ("Divide at 1e+19", "Divide after box at 1e+19", INSTRUCTIONS, LOOKS_FIRST),
        ("Divide at 1e+18", "Divide after box at 1e+18", INSTRUCTIONS, LOOKS_FIRST),
        ("Divide after box at 100", "Divide at 100", INSTRUCTIONS, LOOKS_NEVER),
        ("Compare after box at 100", "Compare at 100", INSTRUCTIONS, LOOKS_NEVER),
        ("Orient after box at 100", "Orient at 100", INSTRUCTIONS, LOOKS_NEVER),
    ),
    *_pairs(
        "angle_compare",
        "test_many_questions",
        ("AngleByCosine, 64x", "AngleByAcos, 64x", INSTRUCTIONS, "computes an angle to compare it"),
        ("AngleByCosine, 1x", "AngleByAcos, 1x", INSTRUCTIONS, "computes an angle, and waits for memory anyway"),
        ("AngleBySquare, 64x", "AngleByCosine, 64x", DIVISION, "divides by lengths, which are roots"),
        ("DistanceBySquare, 64x", "DistanceByRoot, 64x", DIVISION, "takes a root to compare it"),
    ),
    *_pairs(
        "polynomial",
        "test_steps_from_pow_to_fma",
        ("pow_float", "pow_double", DOUBLE, "literals without an f: everything runs in double precision"),
        ("running_power", "pow_float", INSTRUCTIONS, "a call of powf for each of 64 terms"),
        ("horner", "running_power", INSTRUCTIONS, "three instructions per term, where two will do"),
        ("horner_fma", "horner", INSTRUCTIONS, "a multiplication and an addition apart"),
    ),
    *_pairs(
        "polynomial",
        "test_independent_work_or_more_blocks",
        ("Estrin, 1 block per SM", "Horner, 1 block per SM", LATENCY, "a chain in which each step waits for the last"),
        ("Horner, 8 blocks per SM", "Horner, 1 block per SM", LATENCY, "two warps per scheduler for a chain of FMA"),
        ("Estrin, 8 blocks per SM", "Estrin, 1 block per SM", LATENCY, "two warps per scheduler for two chains of FMA"),
    ),
    *_pairs(
        "hmma_1688",
        "test_product_by_tensor_cores",
        ("matmul_mma", "matmul_tiled32", NO_TENSOR, "multiplies matrices with scalar multiply-adds"),
    ),
    *_pairs(
        "vector_loads_float4",
        "test_gain_of_wide_loads",
        ("horner_from_shared<float4>", "horner_from_shared<float>", NARROW, "a load for every coefficient"),
        ("copy of float4, 64 warps per SM", "copy of float, 64 warps per SM", NARROW, "4 bytes per load and thread"),
        ("copy of float4, 8 warps per SM", "copy of float, 8 warps per SM", NARROW, "4 bytes per load and thread"),
        ("copy of float2, 64 warps per SM", "copy of float, 64 warps per SM", NARROW, "4 bytes per load and thread"),
    ),
    *_pairs(
        "math_cost_ladder",
        "test_costs",
        ("Multiply", "Divide", DIVISION, "divides by what is the same every time"),
        ("RemainderBy7", "Remainder", DIVISION, "a divisor that the compiler does not know"),
        ("Product", "Quotient", DIVISION, "divides on one side of a comparison, instead of multiplying on the other"),
        ("FloatLiteral", "DoubleLiteral", DOUBLE, "two literals without an f"),
        ("Fma", "Fma rolled up", INSTRUCTIONS, "a loop of one FMA, with its counter, test and branch"),
    ),
    *_pairs(
        "divergent_branch",
        "test_branch_in_a_long_computation",
        ("branch_by_warp", "branch_even_odd", DIVERGENCE, "even and odd lanes of a warp take different paths"),
    ),
    *_pairs(
        "matmul",
        "test_product_of_large_matrices",
        ("matmul_tiled32", "matmul_naive", REDUNDANT, "loads a row and a column for every element"),
        ("matmul_tiled16", "matmul_naive", REDUNDANT, "loads a row and a column for every element"),
    ),
    *_pairs(
        "reduce_sum",
        "test_sum_of_an_array",
        ("reduce_tree_shfl", "reduce_tree", BARRIERS, "waits at a barrier after each of eight steps"),
        ("reduce_shfl", "reduce_tree_shfl", BARRIERS, "waits at four barriers, where one will do"),
        ("reduce_grid_stride", "reduce_shfl", LATENCY, "one load of 4 bytes per thread is on its way"),
    ),
    *_pairs(
        "streams_overlap",
        "test_copies_beside_kernels",
        ("n_chunks", "serial", SEVERAL, "copies, then computes: the same work, one after the other"),
        ("two_streams", "serial", SEVERAL, "copies, then computes: the same work, one after the other"),
    ),
    *_pairs(
        "sample1_redundant_access",
        "test_accumulating_over_an_array",
        ("accumulate_register", "accumulate_naive", REDUNDANT, "adds up in global memory: 30 stores for one"),
        ("accumulate_restrict", "accumulate_naive", REDUNDANT, "lacks the __restrict__ that lets a register do"),
    ),
    *_pairs(
        "sample2_static_array",
        "test_adding_to_rows",
        ("static", "naive", REDUNDANT, "adds up in global memory, for want of a number of columns: 90 stores for 3"),
    ),
    *_pairs(
        "sample7_template_branch",
        "test_blur_of_an_image",
        ("template", "branch", OCCUPANCY, "keeps 168 registers for a branch that it never takes"),
    ),
    *_pairs(
        "sample3_layout",
        "test_sums_of_a_matrix",
        ("sum_rows of ColumnMajor", "sum_rows of RowMajor", UNCOALESCED, "neighbouring threads read a row apart"),
        ("sum_columns of RowMajor", "sum_columns of ColumnMajor", UNCOALESCED, "neighbours read a column apart"),
    ),
    *_pairs(
        "sample4_local_memory",
        "test_adding_rows",
        ("add_switch", "add_indexed", STACK, "an index that only the data know puts an array into local memory"),
    ),
    *_pairs(
        "sample5_runtime_bound",
        "test_sums_of_an_array",
        ("sum_constant", "sum_runtime", STACK, "a bound that the compiler does not know puts an array on the stack"),
    ),
    *_pairs(
        "sample6_mdrange",
        "test_blur_by_block_shape",
        ("linear", "mdrange", LAUNCH, "blocks of 16 x 2 threads: a single warp each"),
        ("b32x8", "mdrange", LAUNCH, "blocks of 16 x 2 threads: a single warp each"),
        ("b64x4", "mdrange", LAUNCH, "blocks of 16 x 2 threads: a single warp each"),
    ),
    *_pairs(
        "sample8_divergent_reduce",
        "test_reduction_with_a_branch",
        ("sum_by_warp", "sum_by_half_warp", DIVERGENCE, "half of every warp takes the dear path"),
    ),
    *_pairs(
        "muscl_reconstruction",
        "test_reconstruction_of_a_cube",
        ("fixed, VanLeer", "naive, VanLeer", SEVERAL, "loads and divides anew for each of six faces"),
        ("fixed, Minmod", "naive, Minmod", SEVERAL, "loads and divides anew for each of six faces"),
    ),
    *_pairs(
        "transpose32",
        "test_transpose_of_a_batch",
        ("transpose_coalesced", "transpose_naive", UNCOALESCED, "a warp writes a column: 32 sectors per store"),
        ("transpose_padded", "transpose_coalesced", BANKS, "a column of the tile lies in one bank"),
    ),
    *_pairs(
        "access_patterns",
        "test_reading_in_patterns",
        ("aligned", "unaligned", UNCOALESCED, "every load touches five sectors for four"),
        ("unaligned", "worst", UNCOALESCED, "lanes read 32 bytes apart: a sector for each float"),
    ),
    *_pairs(
        "bank_conflicts",
        "test_loading_from_banks",
        ("none", "three_way", BANKS, "three lanes want different words of one bank"),
        ("padded", "thirtytwo_way", BANKS, "all lanes want words of one bank"),
        ("chase, none", "chase, thirtytwo_way", BANKS, "all lanes want words of one bank, and wait for each"),
    ),
    *_pairs(
        "latency_hiding_chart",
        "test_bandwidth_by_warps",
        ("2 warps per scheduler", "1 warps per scheduler", LATENCY, TOO_FEW_WARPS),
        ("4 warps per scheduler", "2 warps per scheduler", LATENCY, TOO_FEW_WARPS),
        ("8 warps per scheduler", "4 warps per scheduler", LATENCY, TOO_FEW_WARPS),
        ("16 warps per scheduler", "8 warps per scheduler", LATENCY, TOO_FEW_WARPS),
    ),
)

"""Two cubins under one launch, on the simulated GPU: what is run, on which buffers, until when."""

from __future__ import annotations

import collections
import itertools

import msgspec
import numpy as np
import pytest
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.timing.paired_run import pair
from simulated_gpu import SimulatedGpu

from pytest_gpuperf.device.interface import Configuration
from pytest_gpuperf.device.launch import Kernel
from pytest_gpuperf.model.evidence import KernelBinary, Parameter, StaticProfile
from pytest_gpuperf.timing.blocks import MOST_PAD, PAD_STEP, RELOAD_EVERY
from pytest_gpuperf.timing.moving_buffers import MovingBuffers

PROFILE = StaticProfile(
    registers=32, stack_bytes=0, spill_store_bytes=0, spill_load_bytes=0, shared_bytes=0, constant_bytes=0, barriers=0,
    code_bytes=256, instructions=200, opcodes={}, code_hash="c0de",
)  # fmt: skip
PARAMETERS = tuple(Parameter(offset=8 * i, size=size, type=name) for i, (size, name) in enumerate(
    [(8, "float const*"), (8, "float*"), (4, "int")]))  # fmt: skip
POLICY = Policy(alpha=1e-3)


def binary(instructions=200, name="work"):
    return KernelBinary(
        name=name, symbol=name, arch="sm_90", toolchain="nvrtc", source_hash="", cubin=b"",
        profile=msgspec.structs.replace(PROFILE, instructions=instructions), parameters=PARAMETERS,
    )  # fmt: skip


class Gpu(SimulatedGpu):
    """Remembers what it loaded and on which arrays it ran."""

    def __init__(self, **settings):
        self.runs: list[tuple[int, int]] = []
        super().__init__(implementations={"work": self.work}, **settings)
        self.loaded: list[KernelBinary] = []
        self.grids: dict[int, set[tuple[int, int, int]]] = collections.defaultdict(set)
        """By instructions of the binary."""

    def work(self, a, b, n):
        b[:] = a
        self.runs.append((a.ctypes.data, b.ctypes.data))

    def load(self, binary):
        self.loaded.append(binary)
        kernel = super().load(binary)

        def launch(*configuration):
            self.last = binary
            self.grids[binary.profile.instructions].add(configuration[0])
            kernel(*configuration)

        return launch


@pytest.fixture
def gpu():
    return Gpu()


def launch_of(gpu, *arrays, instructions=200):
    a = gpu.arrays.random(1000, seed=1)
    given = arrays or (a, gpu.arrays.empty_like(a))
    kernel = Kernel({"sm_90": binary(instructions)}, device=gpu, native="sm_90", ptx=str)
    return kernel.launch(4, 256, (*given, 1000))


def paired(gpu, launch=None, baseline=None, **settings):
    settings = {"policy": POLICY, "seed": 7, **settings}
    return pair(gpu, gpu.timer(), launch or launch_of(gpu), baseline or binary(), **settings)


def test_equal_kernels_are_the_same(gpu):
    found = paired(gpu)
    assert found.paired.decision is Decision.SAME
    assert found.paired.ratio == pytest.approx(1.0, abs=0.005)
    assert len(found.r) == found.paired.blocks == len(found.blocks)
    assert found.remarks == ()


def test_one_percent_more_instructions_are_slower_in_the_right_direction(gpu):
    found = paired(gpu, launch_of(gpu, instructions=206))
    assert found.paired.decision is Decision.SLOWER
    assert found.paired.ratio == pytest.approx(1.024, abs=0.005)


def test_another_candidate_than_the_launch_s_own_can_be_given(gpu):
    found = paired(gpu, baseline=binary(206), candidate=binary(200))
    assert found.paired.decision is Decision.FASTER


def test_each_side_keeps_its_own_configuration(gpu):
    paired(gpu, launch_of(gpu, instructions=206), configuration=Configuration((9, 1, 1), (128, 1, 1), 0))
    assert gpu.grids == {200: {(9, 1, 1)}, 206: {(4, 1, 1)}}


def test_a_seed_orders_the_blocks_and_is_kept(gpu):
    orders = [[block.order for block in paired(Gpu(), seed=seed).blocks] for seed in (3, 3, 4)]
    assert orders[0] == orders[1] != orders[2]
    assert paired(gpu, seed=3).seed == 3


def test_both_modules_are_loaded_anew_every_eighth_block(gpu):
    policy = Policy(alpha=1e-30, alpha_faster=1e-30, beta=1e-30, blocks_max=20)
    found = paired(gpu, launch_of(gpu, instructions=201), policy=policy)
    assert len(found.blocks) == 20
    loaded = [one.profile.instructions for one in gpu.loaded]
    assert len(loaded) == 2 * (1 + 19 // RELOAD_EVERY)
    assert all(set(both) == {200, 201} for both in zip(loaded[::2], loaded[1::2], strict=True))


def test_which_module_is_loaded_first_is_drawn_from_the_seed():
    """What comes of lying behind the other one falls to either side."""

    def firsts(seed):
        gpu = Gpu()
        policy = Policy(alpha=1e-300, alpha_faster=1e-300, beta=1e-300)
        paired(gpu, launch_of(gpu, instructions=201), policy=policy, seed=seed)
        return [one.profile.instructions for one in gpu.loaded[::2]]

    assert firsts(1) == firsts(1)
    drawn = firsts(1) + firsts(2)
    assert 4 < drawn.count(200) < len(drawn) - 4


def test_blocks_move_the_buffers_of_both_sides_alike(gpu):
    found = paired(gpu)
    places = [place for place, _ in itertools.groupby(gpu.runs)]
    assert len(set(places)) == len(places)  # never back to an earlier place...
    assert len(places) == 1 + len(found.blocks)  # ...and nowhere within a block, whichever side runs


def test_a_reset_keeps_the_buffers_that_it_restores(gpu):
    launch, resets = launch_of(gpu), []
    paired(gpu, launch, reset=lambda: resets.append(1))
    assert len(set(gpu.runs)) == 1
    assert len(resets) == len(gpu.runs)


@pytest.mark.parametrize("seed", range(4))
def test_the_test_s_own_buffers_are_left_with_what_the_candidate_writes(gpu, seed):
    launch = launch_of(gpu, instructions=260)
    paired(gpu, launch, reset=lambda: None, seed=seed)
    assert gpu.last.profile.instructions == 260


def test_a_long_launch_makes_do_with_fewer_samples(gpu):
    found = paired(gpu, duration_ns=5e7, budget_s=5.0)
    assert (found.size, found.noise, found.paired.decision) == (4, None, Decision.SAME)
    assert len(gpu.runs) == 8 * len(found.blocks) <= 24


def test_without_time_for_more_one_block_is_taken_and_proves_nothing(gpu):
    """Here no number of blocks would prove anything; where some would, see the clear cases below."""
    hopeless = Policy(alpha=1e-30, alpha_faster=1e-30, beta=1e-30, blocks_max=20)
    found = paired(gpu, budget_s=1e-9, clock=ticking(1.0), policy=hopeless)
    assert len(found.blocks) == 1
    assert found.paired.decision is Decision.INCONCLUSIVE


def ticking(step_s):
    """A clock that goes on by as much whenever it is read."""
    reads = itertools.count()
    return lambda: step_s * next(reads)


def test_a_clear_case_is_finished_beyond_its_budget(gpu):
    found = paired(gpu, launch_of(gpu, instructions=220), budget_s=0.3, clock=ticking(0.02))
    assert found.paired.decision is Decision.SLOWER
    assert found.seconds > 0.3
    assert paired(gpu, budget_s=0.3, clock=ticking(0.02)).paired.decision is Decision.SAME


@pytest.mark.parametrize(("instructions", "decision"), [(200, Decision.SAME), (220, Decision.SLOWER)])
def test_a_budget_for_a_single_block_is_no_bound_for_a_clear_case(gpu, instructions, decision):
    """A long kernel under a short budget would stay undecided for ever."""
    found = paired(gpu, launch_of(gpu, instructions=instructions), budget_s=0.1, clock=ticking(0.03))
    assert found.paired.decision is decision
    assert found.seconds > 0.1


@pytest.mark.parametrize("step_s", [0.13, 1.3])
def test_a_clear_case_takes_the_blocks_that_it_needs_however_long_they_are(gpu, step_s):
    """13 blocks at a third of a second each, or at 4 s."""
    found = paired(gpu, launch_of(gpu, instructions=220), budget_s=2.0, clock=ticking(step_s))
    assert (found.paired.decision, len(found.blocks)) == (Decision.SLOWER, 13)


def test_an_open_case_ends_with_its_budget():
    policy = Policy(alpha=1e-30, alpha_faster=1e-30, beta=1e-30)
    noisy = Gpu(sample_sd=0.2)
    found = paired(noisy, launch_of(noisy), policy=policy, budget_s=0.5, clock=ticking(0.02))
    assert 0 < min(found.paired.blocks, 20) < 20
    assert found.seconds < 1.0


def test_blocks_within_which_the_clock_changed_vote_and_are_told(gpu):
    clocks = itertools.chain([1980, 1500, 1500], itertools.repeat(1500))
    gpu.state = lambda: msgspec.structs.replace(SimulatedGpu.state(gpu), sm_clock_mhz=next(clocks))
    found = paired(gpu)
    assert len(found.r) == len(found.blocks)
    assert found.remarks == (
        f"1 of {len(found.blocks)} blocks count though the SM clock went from 1980 to 1500 MHz within a block",
    )


# --- moving buffers ------------------------------------------------------------------------------


NO_ROOM = "its arrays stayed at their addresses: 0.0042 GB more for copies were not to be had"


def buffers(gpu, *arrays):
    return MovingBuffers.of(gpu, launch_of(gpu, *arrays))[0]


def test_a_moved_launch_has_the_same_contents_elsewhere_at_the_same_alignment(gpu):
    a, b = gpu.arrays.random(1000, seed=1), gpu.arrays.zeros(1000)
    moved = buffers(gpu, a, b).moved(12345)
    for old, new in zip((a, b), moved.arguments, strict=False):
        np.testing.assert_array_equal(old, new)
        assert not np.shares_memory(old, new)
        assert (old.ctypes.data - new.ctypes.data) % PAD_STEP == 0
    assert (moved.grid, moved.block, moved.arguments[2]) == ((4, 1, 1), (256, 1, 1), 1000)


def test_every_pad_keeps_the_copies_inside_their_room(gpu):
    a = gpu.arrays.random(1000, seed=1)
    moving = buffers(gpu, a, gpu.arrays.empty_like(a))
    for pad in range(0, MOST_PAD, 99 * PAD_STEP):
        np.testing.assert_array_equal(moving.moved(pad).arguments[0], a)


def test_what_a_kernel_wrote_into_a_copy_is_gone_in_the_next(gpu):
    a = gpu.arrays.random(1000, seed=1)
    moving = buffers(gpu, a, gpu.arrays.empty_like(a))
    moving.moved(1).arguments[0][:] = 0
    np.testing.assert_array_equal(moving.moved(2).arguments[0], a)


def test_an_array_given_twice_stays_one_array(gpu):
    a = gpu.arrays.random(1000, seed=1)
    first, second, _ = buffers(gpu, a, a).moved(1).arguments
    assert np.shares_memory(first, second)


def test_one_memory_that_is_given_in_two_shapes_is_moved_in_both(gpu):
    a = gpu.arrays.random(1000, seed=1)
    first, second, _ = buffers(gpu, a, a.reshape(10, 100)).moved(1).arguments
    assert (first.shape, second.shape) == ((1000,), (10, 100))
    assert first.ctypes.data == second.ctypes.data
    np.testing.assert_array_equal(first, a)


def test_one_memory_that_is_given_in_two_types_is_moved_in_both(gpu):
    """As a kernel takes it that works on the bits of its numbers."""
    a, bits = gpu.arrays.random(1000, seed=1), msgspec.structs.replace(PARAMETERS[1], type="int*")
    of_bits = msgspec.structs.replace(binary(), parameters=(PARAMETERS[0], bits))
    launch = Kernel({"sm_90": of_bits}, device=gpu, native="sm_90", ptx=str).launch(4, 256, (a, a.view("int32")))
    first, second = MovingBuffers.of(gpu, launch)[0].moved(1).arguments
    assert (str(first.dtype), str(second.dtype)) == ("float32", "int32")
    assert first.ctypes.data == second.ctypes.data


def test_fortran_order_and_shape_are_kept(gpu):
    a = np.asfortranarray(np.arange(12.0, dtype="float32").reshape(3, 4))
    copy = buffers(gpu, a, gpu.arrays.zeros(4)).moved(1).arguments[0]
    np.testing.assert_array_equal(copy, a)
    assert copy.flags.f_contiguous


def test_part_of_a_larger_array_keeps_everything_in_place(gpu):
    a = gpu.arrays.random(2000, seed=1)
    assert buffers(gpu, a[:1000], a[1000:]) is None
    assert buffers(gpu, a.reshape(2, 1000), gpu.arrays.zeros(4)) is not None


def test_arrays_that_fill_the_memory_stay_in_place(gpu):
    gpu.facts = msgspec.structs.replace(gpu.facts, memory_bytes=8 * 2 * (4000 + MOST_PAD) - 1)
    assert MovingBuffers.of(gpu, launch_of(gpu)) == (None, NO_ROOM)
    found = paired(gpu)
    assert NO_ROOM in found.remarks
    assert found.r


def test_where_memory_runs_out_buffers_stay_in_place(gpu, monkeypatch):
    launch, released = launch_of(gpu), []

    def full(shape, dtype="float32"):
        raise MemoryError

    monkeypatch.setattr(gpu.arrays, "empty", lambda shape, dtype="float32": np.empty(1) if shape == 1 else full(shape))
    monkeypatch.setattr(gpu, "release_unused", lambda: released.append(1))
    assert MovingBuffers.of(gpu, launch) == (None, NO_ROOM)
    assert released


def test_without_arrays_there_is_nothing_to_move(gpu):
    kernel = Kernel({"sm_90": msgspec.structs.replace(binary(), parameters=PARAMETERS[2:])}, device=gpu,
                    native="sm_90", ptx=str)  # fmt: skip
    assert MovingBuffers.of(gpu, kernel.launch(1, 32, (5,))) == (None, "")

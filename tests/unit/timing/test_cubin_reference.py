"""A baseline's machine code beside the candidate's, on a simulated GPU: what runs, where it lies, on which buffers."""

from __future__ import annotations

import itertools
import random
from typing import Any

import msgspec
import numpy as np
import pytest
from record_samples import profile_of
from simulated_gpu import SimulatedGpu

from pytest_gpuperf.device.launch import Kernel, Launch
from pytest_gpuperf.judge.decision import ALPHA, Decision
from pytest_gpuperf.model.evidence import KernelBinary, Parameter
from pytest_gpuperf.model.limits import TIGHT
from pytest_gpuperf.timing.blocks import MOST_PAD, PAD_STEP, RELOAD_EVERY
from pytest_gpuperf.timing.compare import Compared, compare
from pytest_gpuperf.timing.cubin_reference import BaselineLaunch, CubinReference, MovingBuffers, PairedWorkloads
from pytest_gpuperf.timing.rounds import Workload

PARAMETERS = tuple(Parameter(offset=8 * i, size=size, type=name) for i, (size, name) in enumerate(
    [(8, "float const*"), (8, "float*"), (4, "int")]))  # fmt: skip


def binary(instructions: int = 200) -> KernelBinary:
    return KernelBinary(
        name="work", symbol="work", arch="sm_90", toolchain="nvrtc", source_hash="", cubin=b"",
        profile=profile_of(instructions=instructions), parameters=PARAMETERS,
    )  # fmt: skip


class Gpu(SimulatedGpu):
    """Remembers what it loaded and on which arrays it ran."""

    def __init__(self, **settings: Any) -> None:
        self.runs: list[tuple[int, int]] = []
        super().__init__(implementations={"work": self.work}, **settings)
        self.loaded: list[int] = []
        """Instructions of the binaries."""

    def work(self, a: Any, b: Any, n: int) -> None:
        b[:] = a
        self.runs.append((a.ctypes.data, b.ctypes.data))

    def load(self, binary: KernelBinary) -> Any:
        instructions, kernel = binary.profile.instructions, super().load(binary)
        self.loaded.append(instructions)

        def launch(*given: Any) -> None:
            self.last = instructions
            kernel(*given)

        return launch


@pytest.fixture
def gpu() -> Gpu:
    return Gpu()


def launch_of(gpu: Gpu, *arrays: Any, instructions: int = 200) -> Launch:
    a = gpu.arrays.random(1000, seed=1)
    given = arrays or (a, gpu.arrays.empty_like(a))
    kernel = Kernel({"sm_90": binary(instructions)}, device=gpu, native="sm_90")
    return kernel.launch(4, 256, (*given, 1000))


def paired(gpu: Gpu, launch: Launch | None = None, *, reset: Any = None, seed: int = 7) -> Compared:
    reference = CubinReference(gpu, gpu.timer(), launch or launch_of(gpu), BaselineLaunch(binary()), reset=reset)
    return compare(gpu, reference, TIGHT, ALPHA, seed=seed, duration_ns=1e4, budget_s=5.0)


def test_both_modules_are_loaded_anew_every_eighth_block_in_an_order_of_the_coin(gpu: Gpu) -> None:
    """What comes of lying behind the other one falls to either side."""
    reference = CubinReference(gpu, gpu.timer(), launch_of(gpu, instructions=201), BaselineLaunch(binary()))
    coin = random.Random(1)
    for call in range(40 * RELOAD_EVERY):
        reference.place(call, coin)
    assert len(gpu.loaded) == 2 * 40
    pairs = list(zip(gpu.loaded[::2], gpu.loaded[1::2], strict=True))
    assert set(pairs) == {(200, 201), (201, 200)}
    assert 8 < pairs.count((200, 201)) < 32


def test_blocks_move_the_buffers_of_both_sides_alike(gpu: Gpu) -> None:
    found = paired(gpu)
    assert (found.comparison.decision(TIGHT, ALPHA), found.comparison.remarks) == (Decision.SAME, ())
    places = [place for place, _ in itertools.groupby(gpu.runs)]
    assert len(set(places)) == len(places)  # never back to an earlier place...
    assert len(places) == 1 + len(found.comparison.r)  # ...and nowhere within a block, whichever side runs


def test_a_reset_keeps_the_buffers_that_it_restores(gpu: Gpu) -> None:
    resets: list[int] = []
    paired(gpu, launch_of(gpu), reset=lambda: resets.append(1))
    assert len(set(gpu.runs)) == 1
    assert len(resets) == len(gpu.runs)


def test_own_buffers_are_left_with_what_the_candidate_writes(gpu: Gpu) -> None:
    for seed in range(4):
        paired(gpu, launch_of(gpu, instructions=260), reset=lambda: None, seed=seed)
        assert gpu.last == 260


def test_two_launches_of_a_test_move_while_they_are_compared(gpu: Gpu) -> None:
    """The pilot runs them where the test has their arrays, and no block does."""
    launches = launch_of(gpu), launch_of(gpu)
    reference = PairedWorkloads(gpu, gpu.timer(), (Workload(launches[0]), Workload(launches[1])))
    found = compare(gpu, reference, TIGHT, ALPHA, seed=7, duration_ns=1e4, budget_s=5.0).comparison
    assert len(set(gpu.runs)) == 2 + 2 * len(found.r)
    assert reference.remarks == ()


# --- moving buffers ------------------------------------------------------------------------------


def moved(gpu: Gpu, *arrays: Any, seed: int = 1) -> tuple[Any, ...]:
    """The arguments, moved once."""
    buffers, _ = MovingBuffers.of(gpu, launch_of(gpu, *arrays))
    assert buffers is not None
    return tuple(buffers.moved(random.Random(seed)).arguments)


def test_moved_launch_has_the_same_contents_elsewhere_at_the_same_alignment(gpu: Gpu) -> None:
    """What a kernel wrote into a copy is gone in the next; every pad keeps the copies inside their room."""
    a, b = gpu.arrays.random(1000, seed=1), gpu.arrays.zeros(1000)
    buffers, _ = MovingBuffers.of(gpu, launch_of(gpu, a, b))
    assert buffers is not None
    offsets = set()
    for seed in range(200):
        elsewhere = buffers.moved(random.Random(seed))
        for old, new in zip((a, b), elsewhere.arguments, strict=False):
            np.testing.assert_array_equal(old, new)
            assert not np.shares_memory(old, new)
            room = buffers.rooms[old.ctypes.data]
            assert np.shares_memory(room, new)
            assert (old.ctypes.data - new.ctypes.data) % PAD_STEP == 0
            offsets.add(new.ctypes.data - room.ctypes.data)
        assert (elsewhere.grid, elsewhere.block, elsewhere.arguments[2]) == ((4, 1, 1), (256, 1, 1), 1000)
        elsewhere.arguments[0][:] = 0
    assert MOST_PAD * 0.98 < max(offsets) < MOST_PAD
    assert min(offsets) < MOST_PAD * 0.02


@pytest.mark.parametrize("other", [lambda a: a, lambda a: a.reshape(10, 100), lambda a: a.view("int32")])
def test_one_memory_that_is_given_twice_stays_one(gpu: Gpu, other: Any) -> None:
    """In another shape, or in another type, as a kernel takes it that works on the bits of its numbers."""
    a = gpu.arrays.random(1000, seed=1)
    of_bits = msgspec.structs.replace(PARAMETERS[1], type="int*")
    parameters = (PARAMETERS[0], of_bits if other(a).dtype == np.int32 else PARAMETERS[1])
    code = msgspec.structs.replace(binary(), parameters=parameters)
    launch = Kernel({"sm_90": code}, device=gpu, native="sm_90").launch(4, 256, (a, other(a)))
    buffers, _ = MovingBuffers.of(gpu, launch)
    assert buffers is not None
    first, second = buffers.moved(random.Random(1)).arguments
    assert (first.shape, second.shape, second.dtype) == (a.shape, other(a).shape, other(a).dtype)
    assert first.ctypes.data == second.ctypes.data
    np.testing.assert_array_equal(first, a)


def test_part_of_a_larger_array_keeps_everything_in_place(gpu: Gpu) -> None:
    """Nor is there anything to move without arrays."""
    code = msgspec.structs.replace(binary(), parameters=PARAMETERS[2:])
    alone = Kernel({"sm_90": code}, device=gpu, native="sm_90").launch(1, 32, (5,))
    assert MovingBuffers.of(gpu, alone) == (None, "")
    a = gpu.arrays.random(2000, seed=1)
    assert MovingBuffers.of(gpu, launch_of(gpu, a[:1000], a[1000:])) == (None, "")
    assert moved(gpu, a.reshape(2, 1000), gpu.arrays.zeros(4))

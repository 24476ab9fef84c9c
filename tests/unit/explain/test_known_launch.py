"""A launch read out of an identity, for the warp model."""

from __future__ import annotations

from pytest_gpuperf.explain.comparison import known_launch
from pytest_gpuperf.model.evidence import Parameter
from pytest_gpuperf.model.time_record import Identity

ARGUMENTS = ("float32[1024,32] align=16", "int32=-7", "null", "bool=True", "float32=1.5", "address align=4",
             "Pair=0x0102030405060708", "uint64=9", "float32[4]")  # fmt: skip


def test_sizes_and_integers_are_read() -> None:
    identity = Identity(code="c", launch="grid=(64, 2, 1) block=(32, 8, 1) shared=0", arguments=ARGUMENTS)
    found = known_launch(identity)
    assert found is not None
    assert (found.grid, found.block, found.warps) == ((64, 2, 1), (32, 8, 1), 8)
    assert found.integers == (None, -7, 0, 1, None, None, None, 9, None)
    assert found.sizes == (8, 4, 8, 1, 4, 8, 8, 8, 8)


def test_a_callable_has_no_launch() -> None:
    assert known_launch(Identity(code="", launch="callable")) is None
    assert known_launch(None) is None


def test_a_launch_fits_a_kernel_of_the_same_parameters_alone() -> None:
    found = known_launch(Identity(code="c", launch="grid=(1, 1, 1) block=(32, 1, 1) shared=0", arguments=ARGUMENTS[:2]))
    assert found is not None
    pointer, number = Parameter(offset=0, size=8), Parameter(offset=8, size=4)
    assert found.fits((pointer, number))
    assert not found.fits((pointer, pointer))
    assert not found.fits((pointer,))

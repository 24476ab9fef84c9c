"""Which record a new workload continues, and the command that lets it follow."""

from __future__ import annotations

import pytest

from pytest_gpuperf.judge.continued import Work, move_command, origin_of
from pytest_gpuperf.model.evidence import Identity, Key, StaticProfile, StaticRecord


def work(
    node: str, code: str = "c0", workload: str = "k", kernel: str = "k", block: int | None = 32, arguments: str = ""
) -> Work:
    module, _, test = node.partition("::")
    profile = StaticProfile(
        registers=32, stack_bytes=0, spill_store_bytes=0, spill_load_bytes=0, shared_bytes=0, constant_bytes=0,
        barriers=0, code_bytes=128, instructions=8, opcodes={}, code_hash=code * 32,
    )  # fmt: skip
    shape = None if block is None else (block, 1, 1)
    record = StaticRecord(kernel=kernel, source_hash="", profile=profile, block=shape)
    identity = Identity(code=code, launch="l", arguments=(arguments,)) if arguments else None
    return Work(Key(module=module, test=test, workload=workload), {"sm_90": record}, identity)


NEW = work("b.py::test_new[1]")


@pytest.mark.parametrize(
    ("gone", "found"),
    [
        ([], None),
        ([work("a.py::test_old")], 0),
        ([work("a.py::test_old", block=64)], None),
        ([work("a.py::test_old", block=None)], 0),
        ([work("a.py::test_old", "c1")], None),
        ([work("b.py::test_old", "c1")], 0),
        ([work("b.py::test_old", "c1", kernel="other")], None),
        ([work("b.py::test_old", "c1"), work("b.py::test_older", "c2")], None),
        ([work("b.py::test_old[1]", "c1"), work("b.py::test_old[2]", "c1")], 0),
        ([work("a.py::test_new[1]", "c1")], 0),
        ([work("a.py::test_old[2]"), work("a.py::test_old[1]")], 1),
        ([work("b.py::test_old", "c1"), work("a.py::test_old")], 1),
    ],
)
def test_origin(gone: list[Work], found: int | None) -> None:
    assert origin_of(NEW, gone) is (None if found is None else gone[found])


def test_where_both_were_timed_their_arguments_tell_them_apart() -> None:
    new = work("b.py::test_new", arguments="n=2")
    gone = [work("b.py::test_a", arguments="n=1"), work("b.py::test_z", arguments="n=2")]
    assert origin_of(new, gone) is gone[1]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("a.py::test_x[1]", "a.py::test_y[1]", "a.py::test_x a.py::test_y"),
        ("a.py::test_x[1]", "a.py::test_x[2]", "'a.py::test_x[1]' 'a.py::test_x[2]'"),
        ("a.py::test_x[1]", "b.py::test_x[1]", "a.py b.py"),
        ("a.py::test_x", "b.py::test_y", "a.py::test_x b.py::test_y"),
    ],
)
def test_the_command_takes_as_much_along_as_was_renamed_alike(old: str, new: str, words: str) -> None:
    assert move_command(work(old).key, work(new).key) == f"gpuperf baselines mv {words}"


def test_the_command_for_a_workload() -> None:
    old, new = (work("a.py::test_x", workload=name).key for name in ("k", "l"))
    assert move_command(old, new) == "gpuperf baselines mv 'a.py::test_x [k]' 'a.py::test_x [l]'"


@pytest.mark.parametrize(
    ("near", "far"),
    [
        (work("b.py::test_new[1]", workload="other"), work("b.py::test_a[1]")),  # of this very test
        (work("z.py::test_z[1]", workload="z"), work("b.py::test_new")),  # of the same parameters
        (work("z.py::test_z[1]"), work("b.py::test_a[1]", workload="a")),  # of the same workload
        (work("b.py::test_z[1]"), work("a.py::test_new[1]")),  # of the same module
        (work("z.py::test_new[1]"), work("a.py::test_z[1]")),  # of the same test
    ],
)
def test_of_several_with_its_code_the_nearest_is_its_origin(near: Work, far: Work) -> None:
    assert origin_of(NEW, [near, far]) is near
    assert origin_of(NEW, [far, near]) is near


def test_machine_code_tells_where_only_one_of_two_was_timed() -> None:
    timed, untimed = work("a.py::test_old", arguments="n=1"), work("a.py::test_old")
    assert origin_of(work("b.py::test_new"), [timed]) is timed
    assert origin_of(work("b.py::test_new", arguments="n=1"), [untimed]) is untimed


def test_parameters_with_brackets_stay_whole() -> None:
    old, new = (work(f"a.py::{name}[x[0]]").key for name in ("test_x", "test_y"))
    assert move_command(old, new) == "gpuperf baselines mv a.py::test_x a.py::test_y"

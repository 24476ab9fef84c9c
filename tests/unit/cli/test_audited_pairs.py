"""Which kernel is which: two builds of one file, with names that several kernels share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_samples import static_of

from pytest_gpuperf.cli.audit_command import AuditedPairs, compared
from pytest_gpuperf.compile.machine_code.audited import AuditedKernel

LAMBDA = "_ZN1fUlvE{}_E"
"""Of those with numbers ``kernel_key`` has one key."""


def build(words: str, arch: str = "sm_90") -> list[AuditedKernel]:
    """Kernels such as ``a=1 #3=2``: names, of lambdas the numbers, each with what stands for its code."""
    kernels = []
    for word in words.split():
        name, _, code = word.partition("=")
        symbol = LAMBDA.format(name[1:]) if name.startswith("#") else name
        kernels.append(AuditedKernel("k.so", arch, static_of(kernel=symbol, code=code)))
    return kernels


def told(found: AuditedPairs) -> dict[str, str]:
    """Each list of the comparison as words."""

    def name(kernel: AuditedKernel) -> str:
        number = kernel.record.kernel.removeprefix("_ZN1fUlvE").removesuffix("_E")
        return f"#{number}" if number.isdigit() else kernel.record.kernel

    lists = {
        "kept": sorted(f"{name(one.old)}-{name(one.new)}" for one in found.pairs),
        "renamed": [f"{name(old)}-{name(new)}" for old, new in found.renamed],
        "gone": list(map(name, found.gone)),
        "new": list(map(name, found.new)),
    }
    return {what: " ".join(names) for what, names in lists.items() if names}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("a=1 b=2", "a=9 b=2", {"kept": "a-a b-b"}, id="of one name"),
        pytest.param("#1=A #2=B", "#1=X #2=A #3=B", {"kept": "#1-#2 #2-#3", "new": "#1"}, id="a lambda before others"),
        pytest.param("#2=B #10=C", "#3=X #12=Y", {"kept": "#10-#12 #2-#3"}, id="all lambdas changed"),
        pytest.param("#1=A #2=B", "#2=X", {"kept": "#2-#2", "gone": "#1"}, id="a symbol that stays"),
        pytest.param(
            "old=1 gone=2", "now=1 new=3", {"renamed": "old-now", "gone": "gone", "new": "new"}, id="equal code"
        ),
        pytest.param("a=1 a=2", "a=2 a=3", {"kept": "a-a a-a"}, id="several of one name"),
    ],
)
def test_kernels_are_known_again(old: str, new: str, expected: dict[str, str]) -> None:
    assert told(compared(build(old), build(new))) == expected


builds = st.lists(st.builds("{}={}".format, st.sampled_from(["a", "b", "#1", "#2", "#3"]), st.sampled_from("123"))).map(
    " ".join
)


@given(builds, builds)
def test_every_kernel_is_accounted_for_once(old: str, new: str) -> None:
    sides = build(old), build(new)
    found = compared(*sides)
    if all(sides):
        pairs = [*(one[:2] for one in found.pairs), *found.renamed]
        for number, (side, rest) in enumerate(zip(sides, (found.gone, found.new), strict=True)):
            assert sorted(map(id, side)) == sorted(map(id, (*(pair[number] for pair in pairs), *rest)))

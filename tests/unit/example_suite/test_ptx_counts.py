"""The instructions of a kernel's PTX, as the example suite counts them."""

from __future__ import annotations

from pathlib import Path

from loaded_scripts import load_script

COUNTS = load_script(Path(__file__).parents[3] / "example_suite" / "ptx_counts.py")
PTX = """
.version 9.0
// .visible .entry commented() { }
.visible .entry first(.param .u64 first_param_0)
{
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [first_param_0];  // add.s32 in a comment
    @%p1 bra $L__BB0_2;
    { .reg .b32 temp_param_reg; call.uni (retval0), helper, (param0); }
$L__BB0_2: fma.rn.f32 %f1, %f2, %f3, %f4; @!%p2 fma.rn.f32 %f1, %f1, %f1, %f1;
    cp.async.bulk.shared::cluster.global [%r1], [%rd1], 16, [%r2];
    ret;
}
.weak .entry _Z6secondPf(.param .u64 p) { ld.const.f32 %f1, [unused]; ret; }
"""


def test_instructions_of_one_entry_are_counted_without_labels_predicates_and_comments() -> None:
    assert COUNTS.ptx_instructions(COUNTS.ptx_of(PTX, "first")) == {
        "bra": 1, "call.uni": 1, "cp.async.bulk.shared::cluster.global": 1, "fma.rn.f32": 2, "ld.param.u64": 1,
        "ret": 1,
    }  # fmt: skip
    assert COUNTS.ptx_instructions(COUNTS.ptx_of(PTX, "_Z6secondPf")) == {"ld.const.f32": 1, "ret": 1}

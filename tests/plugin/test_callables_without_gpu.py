"""Callables without a GPU: they have neither a time nor machine code, and nobody is told otherwise."""

from __future__ import annotations

import pytest

CALLABLE = """
def test_call(gpu, gpuperf):
    a = gpu.random(512, seed=1)
    def call():
        a.fill(0)
    gpuperf(call)
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_run_of_callables_alone_says_why_nothing_was_measured(suite, workers):
    suite.write("test_call.py", CALLABLE)
    result = suite.run("--gpuperf", "test_call.py", *workers)
    assert result.ret == 10
    result.stdout.fnmatch_lines(
        ["timing needs a GPU: 0 workloads were judged by static evidence only, 1 callable was not judged (*",
         "ERROR: nothing was measured: 1 test ran and has no kernel or time to judge without a GPU. *"]
    )  # fmt: skip
    text = result.stdout.str()
    assert "registers / spilled bytes" not in text


def test_callables_do_not_count_as_judged(suite):
    suite.write("test_call.py", CALLABLE)
    result = suite.run("--gpuperf", "-k", "other or call")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["timing needs a GPU: 1 workload was judged by static evidence only, 1 callable was not judged (*"]
    )

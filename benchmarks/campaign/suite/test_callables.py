"""Nine callables of CuPy, PyTorch and Triton, for ``paired_campaign.py callables``.

    python test_callables.py 1 2 > sizes.json

finds, for each callable and percent, the percent of more work at which it is that much slower here.
"""

import json
import random
import statistics
import sys

import pytest

MORE = {}
"""Percent of more work, by the callable's name."""
AGAIN = 1
NAMES = {
    "cupy": ("multiply 12.8 M", "multiply 128 M", "sum 100 M", "twelve additions"),
    "torch": ("softmax", "layer norm", "matmul, scale"),
    "triton": ("vector add", "Triton softmax"),
}
FACTORS = (1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 6)
"""Sizes that are tried, in percent of more work a percent of more time: tails of grids hide small ones."""
PLACES, ROUNDS = 10, 8


@pytest.mark.parametrize("again", range(AGAIN))
@pytest.mark.parametrize("library", NAMES)
def test_callables(gpu, gpuperf, library, again):
    pytest.importorskip(library)
    for name in NAMES[library]:
        call, reset = made(name, MORE.get(name, 0))
        gpuperf(call, name=name, reset=reset)


def made(name, percent):
    """The callable with so much more work, and its reset if it has one."""
    make = of_cupy if name in NAMES["cupy"] else of_torch
    return make(name, lambda number: int(number * (1 + percent / 100)))


def of_cupy(name, more):
    import cupy

    millions = {"sum 100 M": 100, "twelve additions": 8, "multiply 12.8 M": 12.8, "multiply 128 M": 128}[name]
    x = cupy.random.rand(more(1_000_000 * millions), dtype="float32")
    if name == "sum 100 M":
        return lambda: x.sum(), None
    if name == "twelve additions":
        return lambda: [cupy.add(x, 1, out=x) for _ in range(12)], lambda: x.fill(0)
    y = cupy.empty_like(x)
    return lambda: cupy.multiply(x, 2, out=y), None


def of_torch(name, more):
    """PyTorch's own, and Triton's kernels on its arrays."""
    import torch

    torch.manual_seed(1)
    if name == "softmax":
        rows = torch.randn(more(8192), 4096, device="cuda")
        return lambda: torch.softmax(rows, 1), None
    if name == "layer norm":
        wide = torch.randn(more(32768), 1024, device="cuda")
        return lambda: torch.nn.functional.layer_norm(wide, (1024,)), None
    if name == "matmul, scale":
        a, b = (torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        scaled = torch.randn(more(64_000_000), device="cuda")
        return lambda: (torch.matmul(a, b), scaled.mul_(1)), None
    import triton_callables

    if name == "vector add":
        x, y, total = (torch.randn(more(64_000_000), device="cuda") for _ in range(3))
        return lambda: triton_callables.add[(-(-x.numel() // 1024),)](x, y, total, x.numel(), BLOCK=1024), None
    rows, result = (torch.randn(more(32768), 1024, device="cuda") for _ in range(2))
    return lambda: triton_callables.softmax[(rows.shape[0],)](rows, result, COLUMNS=1024), None


def slowed(name, percent):
    """Percent of more work that make it at least so many percent slower, and the ratio of times."""
    for factor in FACTORS:
        ratio = statistics.mean(ratio_of(name, percent * factor, draw) for draw in range(PLACES))
        if ratio >= 1 + percent / 100:
            break
    return percent * factor, ratio


def ratio_of(name, percent, draw):
    """Median ratio of two neighbours' times, by CUDA events behind a flush of the L2; the arrays' places are drawn."""
    import torch

    torch.cuda.empty_cache()
    chance, pads, sides = random.Random(draw), [], {}
    for more in (0, percent) if draw % 2 else (percent, 0):
        pads.append(torch.empty(chance.randrange(1 << 26), dtype=torch.uint8, device="cuda"))
        sides[more] = made(name, more)
    spoiled = torch.empty(1 << 28, device="cuda")

    def time_of(more):
        run, reset = sides[more]
        if reset:
            reset()
        spoiled.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end)

    times = [(time_of(0), time_of(percent)) for _ in range(3 + ROUNDS)]
    return statistics.median(slow / fast for fast, slow in times[3:])


if __name__ == "__main__":
    wanted = [int(one) for one in sys.argv[1:]]
    every = [name for names in NAMES.values() for name in names]
    json.dump({name: {percent: slowed(name, percent) for percent in wanted} for name in every}, sys.stdout)

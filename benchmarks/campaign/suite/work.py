"""Nine callables of CuPy, PyTorch and Triton, with so many percent more work, and how much longer that takes.

    python work.py 1 2 > sizes.json

finds, for each callable and percent, the size at which it is that much slower here: tails of grids hide small sizes.
"""

import json
import random
import statistics
import sys

NAMES = {
    "cupy": ("multiply 12.8 M", "multiply 128 M", "sum 100 M", "twelve additions"),
    "torch": ("softmax", "layer norm", "matmul, scale"),
    "triton": ("vector add", "Triton softmax"),
}
FACTORS = (1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 6)
"""Sizes that are tried, in percent of more work a percent of more time."""
PLACES, ROUNDS = 10, 8


def made(name, percent):
    """The callable, and its reset if it has one."""
    library = next(library for library, names in NAMES.items() if name in names)
    return {"cupy": _of_cupy, "torch": _of_torch, "triton": _of_triton}[library](
        name, lambda number: int(number * (1 + percent / 100))
    )


def _of_cupy(name, more):
    import cupy

    if name.startswith("multiply"):
        elements = more({"multiply 12.8 M": 12_800_000, "multiply 128 M": 128_000_000}[name])
        x, y = cupy.random.rand(elements, dtype="float32"), cupy.empty(elements, dtype="float32")
        return lambda: cupy.multiply(x, 2, out=y), None
    if name == "sum 100 M":
        z = cupy.random.rand(more(100_000_000), dtype="float32")
        return lambda: z.sum(), None
    w = cupy.random.rand(more(8_000_000), dtype="float32")

    def twelve():
        for _ in range(12):
            cupy.add(w, 1, out=w)

    return twelve, lambda: w.fill(0)


def _of_torch(name, more):
    import torch

    torch.manual_seed(1)
    if name == "softmax":
        rows = torch.randn(more(8192), 4096, device="cuda")
        return lambda: torch.softmax(rows, 1), None
    if name == "layer norm":
        wide = torch.randn(more(32768), 1024, device="cuda")
        return lambda: torch.nn.functional.layer_norm(wide, (1024,)), None
    a, b = (torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    scaled = torch.randn(more(64_000_000), device="cuda")

    def chain():
        torch.matmul(a, b)
        scaled.mul_(1)

    return chain, None


def _of_triton(name, more):
    import torch
    import triton_callables

    torch.manual_seed(2)
    if name == "vector add":
        x, y = (torch.randn(more(64_000_000), device="cuda") for _ in range(2))
        total = torch.empty_like(x)
        return lambda: triton_callables.add(x, y, total), None
    rows = torch.randn(more(32768), 1024, device="cuda")
    result = torch.empty_like(rows)
    return lambda: triton_callables.softmax(rows, result), None


def slowed(name, percents):
    """Percent of more work that make it at least so many percent slower, and the ratio of times, for each percent."""
    found = {}
    for percent in percents:
        for factor in FACTORS:
            ratios = [_ratio(name, percent * factor, draw) for draw in range(PLACES)]
            found[percent] = percent * factor, statistics.mean(ratios)
            if found[percent][1] >= 1 + percent / 100:
                break
    return found


def _ratio(name, percent, draw):
    """Median over rounds of the ratio of two neighbours' times, by CUDA events, each behind a flush of the L2.

    Where the arrays lie is drawn: on an H200 that is worth some percent of an addition.
    """
    import torch

    chance = random.Random(draw)
    torch.cuda.empty_cache()
    pads, sides = [], []
    for more in (0, percent) if draw % 2 else (percent, 0):
        pads.append(torch.empty(chance.randrange(1 << 26), dtype=torch.uint8, device="cuda"))
        sides.append(made(name, more))
    base, other = sides if draw % 2 else sides[::-1]
    spoiled = torch.empty(1 << 28, device="cuda")

    def time_of(run, reset):
        if reset:
            reset()
        spoiled.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end)

    for one in (base, other) * 3:
        time_of(*one)
    pairs = [(time_of(*base), time_of(*other)) for _ in range(ROUNDS)]
    return statistics.median(slow / fast for fast, slow in pairs)


if __name__ == "__main__":
    wanted = [int(one) for one in sys.argv[1:]]
    json.dump({name: slowed(name, wanted) for names in NAMES.values() for name in names}, sys.stdout)

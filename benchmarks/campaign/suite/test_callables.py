"""Callables that ``paired_campaign.py callables`` gates in a repository made of this file and ``triton_callables.py``.

``MORE`` is replaced by percent of more work; ``share`` is the part of a callable's time that grows with its size.
"""

import pytest

MORE = 0
AGAIN = 1

again = pytest.mark.parametrize("again", range(AGAIN))


def more(number, share=1.0):
    return int(number * (1 + MORE / share / 100))


@again
def test_cupy(gpu, gpuperf, again):
    cupy = pytest.importorskip("cupy")
    for name, elements in (("multiply 12.8 M", 12_800_000), ("multiply 128 M", 128_000_000)):
        x, y = cupy.random.rand(more(elements), dtype="float32"), cupy.empty(more(elements), dtype="float32")
        gpuperf(lambda x=x, y=y: cupy.multiply(x, 2, out=y), name=name)
    z = cupy.random.rand(more(100_000_000, 0.88), dtype="float32")
    gpuperf(lambda: z.sum(), name="sum 100 M")
    w = cupy.random.rand(more(8_000_000, 0.97), dtype="float32")

    def twelve():
        for _ in range(12):
            cupy.add(w, 1, out=w)

    gpuperf(twelve, name="twelve additions", reset=lambda: w.fill(0))


@again
def test_torch(gpu, gpuperf, again):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    rows, wide = torch.randn(more(8192), 4096, device="cuda"), torch.randn(more(32768), 1024, device="cuda")
    gpuperf(lambda: torch.softmax(rows, 1), name="softmax")
    gpuperf(lambda: torch.nn.functional.layer_norm(wide, (1024,)), name="layer norm")
    a, b = (torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    scaled = torch.randn(more(64_000_000, 0.41), device="cuda")

    def chain():
        torch.matmul(a, b)
        scaled.mul_(1)

    gpuperf(chain, name="matmul, scale")


@again
def test_triton(gpu, gpuperf, again):
    torch = pytest.importorskip("torch")
    kernels = pytest.importorskip("triton_callables")
    torch.manual_seed(2)
    x, y = (torch.randn(more(64_000_000), device="cuda") for _ in range(2))
    total, rows = torch.empty_like(x), torch.randn(more(32768), 1024, device="cuda")
    result = torch.empty_like(rows)
    gpuperf(lambda: kernels.add(x, y, total), name="vector add")
    gpuperf(lambda: kernels.softmax(rows, result), name="Triton softmax")

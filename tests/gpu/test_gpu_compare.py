"""``gpuperf.compare`` on a real GPU: true ratios, and libraries as references."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.gpu

KERNELS = """
extern "C" __global__ void chain(float* out, int rounds)
{
    float x = threadIdx.x;
    for (int i = 0; i < rounds; ++i) x = x * 0.99f + 1.0f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
extern "C" __global__ void doubled(const float* in, float* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = 2.0f * in[i];
}
"""
SUITE = """
import pytest

@pytest.mark.parametrize("rounds", [4000, 3920, 4080, 4400])
def test_chain(cuda_kernel, gpu, gpuperf, rounds):
    kernel, arrays = cuda_kernel("kernels.cu", "chain"), [gpu.empty(1 << 18) for _ in range(2)]
    ours, reference = (kernel.launch(1024, 256, (y, n)) for y, n in zip(arrays, (rounds, 4000)))
    found = gpuperf.compare({"ours": ours, "reference": reference}, reference="reference", at_most=1.0)
    assert found["ours"].speedup == pytest.approx(4000 / rounds, rel=0.005)

@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_library(cuda_kernel, gpu, gpuperf, library):
    module = pytest.importorskip(library)
    x = gpu.random(1 << 26, seed=1)
    y, given = gpu.empty_like(x), module.asarray(x) if library == "cupy" else module.as_tensor(x, device="cuda")
    launch = cuda_kernel("kernels.cu", "doubled").launch(1 << 18, 256, (x, y))
    works = {"ours": lambda: (launch(), y)[1], library: lambda: given * 2}
    assert gpuperf.compare(works, reference=library, at_least=0.8, outputs=True)["ours"].speedup < 1.5
"""


@pytest.mark.usefixtures("cuda_device")
def test_ratios_are_true_and_libraries_are_references(pytester: pytest.Pytester) -> None:
    (pytester.path / "kernels.cu").write_text(KERNELS, encoding="utf-8")
    pytester.makepyfile(SUITE)
    arguments = ("--gpuperf", "-p", "no:cacheprovider", "-rA", "--gpuperf-open=warn")
    done = pytester.runpytest_subprocess(*arguments)
    said = done.stdout.str()
    assert done.parseoutcomes() == {"passed": 4, "failed": 2}, said
    for rounds, verdict in ((4000, "SAME"), (3920, "SAME"), (4080, "SLOWER"), (4400, "SLOWER")):
        done.stdout.re_match_lines([rf".*(test_chain\[{rounds}\].*|  ours .*){verdict}.*"])

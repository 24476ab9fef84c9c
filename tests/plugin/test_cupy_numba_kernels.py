"""Kernels of CuPy and Numba: recorded, unchanged, paired when they change, gated without a GPU, refused."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence
from fat_binaries import cubin_of
from suite_under_test import HERE, RECORD, SIMULATED

from pytest_gpuperf.compile.nvcc import toolchain

SAMPLES = HERE.parent / "unit" / "device"

RAW_TEST = f"""
import sys
sys.path.insert(0, {str(SAMPLES)!r})
from cupy_samples import raw


def test_scale(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel.from_cupy(raw("scale"))
    x = gpu.full(256, 3.0)
    launch = kernel.launch(grid=1, block=256, args=(x, 1.0, 256))
    gpuperf(launch, check=lambda: gpu.assert_equal(x, gpu.full(256, 3.0)))
"""

NUMBA_TEST = f"""
import sys
sys.path.insert(0, {str(SAMPLES)!r})
import pytest
from numba_samples import LATEST, NumbaCuda
from pytest_gpuperf.compile.adapters import handed

numba = NumbaCuda(LATEST)


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba.cuda", numba)
    monkeypatch.setattr(handed.importlib.metadata, "version", lambda package: numba.facts["version"])


def test_axpy(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel.from_numba(numba.dispatcher("axpy"), numba.signature("axpy"))
    x, y = gpu.random(1024, seed=1), gpu.zeros(1024)
    gpuperf(kernel.launch(grid=4, block=256, args=(2.5, x, y)), check=lambda: gpu.assert_equal(y, x * 2.5))
"""

KNOWN = """
def scale(x, factor, n):
    x[:] = x * factor

def axpy(*parameters):
    a, x, y = (parameters[place] for place in (0, 5, 12))
    y[:] = x * a
"""


@pytest.fixture
def known_suite(gpu_suite):
    """On a simulated GPU that knows these kernels."""
    known = '"work": work, "scale": scale, "axpy": axpy'
    gpu_suite.write("conftest.py", KNOWN + SIMULATED.replace('"work": work', known))
    return gpu_suite


def toolchains(suite):
    return list(read_evidence(suite.path / "baselines/sm_90/test_suite.jsonl")["toolchains"])


def test_a_kernel_of_cupy_is_recorded_unchanged_and_paired_when_it_changes(known_suite):
    slow = raw_source_of_more_work()
    known_suite.write("test_suite.py", f"SLOW = {slow!r}\n{RAW_TEST}")
    known_suite.run(*RECORD, subprocess=True).assert_outcomes(passed=1)
    assert toolchains(known_suite) == [toolchain()]
    result = known_suite.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  scale .* UNCHANGED"])

    known_suite.edit("test_suite.py", 'raw("scale")', 'raw("scale", options=["-DN=1"], code=SLOW)')
    result = known_suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"scale  SLOWER  on simulated-gpu \(time\) ",
            r" .* paired, \d+\+\d+ blocks",
            r" +proven to be more than 0.5 % slower, in two processes; the source and its machine code changed",
        ]
    )


def raw_source_of_more_work():
    return (
        'extern "C" __global__ void scale(float* x, float by, int n)\n'
        "{\n    int i = threadIdx.x;\n    float f = sinf(by) + x[i];\n"
        "    if (i < n) x[i] = f * cosf(f);\n}\n"
    )


def test_a_kernel_of_numba_is_recorded_unchanged_and_paired_when_it_changes(known_suite):
    known_suite.write("test_suite.py", NUMBA_TEST)
    known_suite.run(*RECORD, subprocess=True).assert_outcomes(passed=1)
    (compiler,) = toolchains(known_suite)
    assert compiler.startswith("numba-cuda 0.30.4, ptxas ")
    result = known_suite.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  axpy .* UNCHANGED"])

    known_suite.edit("test_suite.py", "def test_axpy", f"{MORE_WORK}\ndef test_axpy")
    result = known_suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"axpy  SLOWER  on simulated-gpu \(time\) ", r" .* paired, \d+\+\d+ blocks"])


MORE_WORK = r"""
import re
ptx = numba.facts["kernels"]["axpy"]["ptx"]
adding = re.search(r"\n\tfma\.rn\.f32[^\n]*", ptx["sm_90"])[0]
target = re.search(r"%f\d+", adding)[0]
more = "".join(f"\n\tfma.rn.f32 {target}, {target}, {target}, {target};" for _ in range(20))
ptx["sm_90"] = ptx["sm_90"].replace(adding, adding + more)
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (RAW_TEST, r"  scale +8 / 0 / 100%  8 / 0 / 100%  8 / 0 / 100%"),
        (NUMBA_TEST, r"  axpy +14 / 0 / 100%  14 / 0 / 100%  10 / 0 / 100%"),
    ],
)
def test_without_a_gpu_their_machine_code_is_gated_for_every_target(suite, text, line):
    suite.write("test_suite.py", text)
    suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90,sm_120").stdout.fnmatch_lines(["3 baselines written"])
    records = [suite.path / f"baselines/{arch}/test_suite.jsonl" for arch in ("sm_80", "sm_90", "sm_120")]
    assert all(record.exists() for record in records)
    result = suite.run("--gpuperf")
    result.stdout.re_match_lines([line + r" +UNCHANGED", r".* 1 static only"])


@pytest.mark.parametrize(
    ("problem", "outcome"), [("CudaSupportError('no driver')", "1 static only"), ("ValueError('its own')", "1 failed")]
)
def test_device_functions_of_numba_need_a_device_where_there_is_none(suite, problem, outcome):
    """Numba compiles them for the GPU that is there; whatever else it raises is an error of the test."""
    failing = f"from numba_samples import CudaSupportError\nnumba.problem = {problem}\n\n\n@pytest.fixture"
    suite.write("test_suite.py", NUMBA_TEST.replace("@pytest.fixture", failing, 1))
    result = suite.run("--gpuperf", "--gpuperf-arch=sm_90")
    result.stdout.fnmatch_lines([f"*{outcome} in *"])


def test_a_cooperative_kernel_of_cupy_is_launched_cooperatively(known_suite):
    known_suite.write("test_suite.py", RAW_TEST.replace('raw("scale")', 'raw("scale", enable_cooperative_groups=True)'))
    known_suite.run(*RECORD, subprocess=True).assert_outcomes(passed=1)
    time = (known_suite.path / "baselines/simulated-gpu/test_suite.jsonl").read_text()
    assert "cooperative" in time


@pytest.mark.parametrize(
    ("text", "old", "new", "words"),
    [
        (RAW_TEST, 'raw("scale")', "print", "from_cupy takes a RawKernel, or a RawModule with the name of a kernel"),
        (NUMBA_TEST, 'numba.signature("axpy")', '"void(float32)"', "from_numba takes a signature of Numba's types"),
    ],
)
def test_what_cannot_be_taken_is_refused_in_the_test(known_suite, text, old, new, words):
    known_suite.write("test_suite.py", text)
    known_suite.edit("test_suite.py", old, new)
    result = known_suite.run()
    result.assert_outcomes(failed=1)
    assert words in result.stdout.str()


CUBIN_TEST = f"""
import sys
sys.path.insert(0, {str(SAMPLES)!r})
from cupy_samples import module


def test_scale(cuda_kernel):
    cuda_kernel.from_cupy(module("cubin"), "scale")
"""


def test_a_cubin_of_cupy_s_lies_where_cupy_was_told_and_not_beside_the_test(suite):
    cubin = cubin_of('extern "C" __global__ void scale(float* x) { x[threadIdx.x] *= 2; }', "scale")
    (suite.path / "kernels").mkdir()
    (suite.path / "kernels" / "scale.cubin").write_bytes(cubin)
    (suite.path / "tests").mkdir()
    (suite.path / "tests" / "test_scale.py").write_text(CUBIN_TEST)
    result = suite.run("--gpuperf", "tests/test_scale.py")
    result.assert_outcomes(passed=1)

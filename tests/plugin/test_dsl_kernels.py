"""Kernels of the CuTe DSL and of cuTile: recorded, unchanged and paired, gated without a GPU, refused."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence
from suite_under_test import HERE, RECORD, SIMULATED

SAMPLES = HERE.parent / "unit" / "device"
ARRIVE = f"import sys\nsys.path.insert(0, {str(SAMPLES)!r})\n"

CUTE_TEST = f"""{ARRIVE}
import pytest
from dsl_samples import cute_compiled

from pytest_gpuperf.compile.adapters import cute
from pytest_gpuperf.device.driver_calls import CapturedKernel
from pytest_gpuperf.device.interface import Configuration

STEPS = 100
SYMBOL = "kernel_cutlass_decay_kernel_tensorptrf32gmemalign16o1_tensorptrf32gmemalign16o1_%d_0"


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    monkeypatch.setattr(cute, "library", lambda name, _: name + " 4.8.1")


def tensor(array):
    return array.ctypes.data.to_bytes(8, "little") + array.size.to_bytes(8, "little")


def decay(x, out):
    return CapturedKernel(SYMBOL % STEPS, Configuration((16, 1, 1), (256, 1, 1)), (tensor(x), tensor(out)))


def test_decay(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel.from_cute(cute_compiled(f"cute-decay{{STEPS}}-4.8.1-sm_90a"))
    x = gpu.random(4096, seed=1)
    out = gpu.empty_like(x)
    gpuperf(kernel.launch(decay, (x, out)), check=lambda: gpu.assert_equal(out, x))
"""

COPYING = """
import ctypes
import numpy as np


def at(tensor):
    content = tensor.tobytes()
    address, size = (int.from_bytes(content[place : place + 8], "little") for place in (0, 8))
    return np.ctypeslib.as_array((ctypes.c_float * size).from_address(address))


def decay_kernel(x, out):
    at(out)[:] = at(x)
"""

ADDED = """

def test_add(cuda_kernel):
    compiled = [cute_compiled(f"cute-add-4.8.1-{arch}") for arch in ("sm_80", "sm_90a", "sm_100a")]
    cuda_kernel.from_cute(compiled, name="adding")
"""

CUTILE_TEST = f"""{ARRIVE}
from types import SimpleNamespace

from dsl_samples import RecordedSignature, install_recorded_cutile

install_recorded_cutile()
STEPS = 40


def test_decay(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel.from_cutile(SimpleNamespace(), RecordedSignature(f"cutile-decay{{STEPS}}-1.7.0"), arch="sm_90")
    x = gpu.random(4096, seed=1)
    out = gpu.empty_like(x)
    gpuperf(kernel.launch(4, (x, out, 1024, STEPS)), check=lambda: gpu.assert_equal(out, x))
"""

DECAYING = """
def decay(x, length, stride, out, *_):
    assert (int(length), int(stride)) == (4096, 1)
    out[:] = x
"""

SOFTMAX_TEST = f"""{ARRIVE}
from types import SimpleNamespace

from dsl_samples import RecordedSignature, install_recorded_cutile

install_recorded_cutile()


def test_softmax(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel.from_cutile(SimpleNamespace(), RecordedSignature("cutile-softmax-1.7.0"))
    x = gpu.random((64, 1024), seed=1)
    gpuperf(kernel.launch(64, (x, gpu.empty_like(x), 1024)))
"""
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
THREE = f"--gpuperf-arch={','.join(ARCHITECTURES)}"


def on_simulated_gpu(gpu_suite, test, implementation, name):
    gpu_suite.write("test_suite.py", test)
    gpu_suite.write("conftest.py", implementation + SIMULATED.replace('"work": work', f'"{name}": {name}'))
    gpu_suite.run(*RECORD, subprocess=True).assert_outcomes(passed=1)
    return gpu_suite


@pytest.fixture
def cute_suite(gpu_suite):
    """On a simulated GPU, with a baseline of a kernel of the CuTe DSL."""
    return on_simulated_gpu(gpu_suite, CUTE_TEST, COPYING, "decay_kernel")


@pytest.fixture
def cutile_suite(gpu_suite):
    """On a simulated GPU, with a baseline of a kernel of cuTile."""
    return on_simulated_gpu(gpu_suite, CUTILE_TEST, DECAYING, "decay")


def workload(suite, target, test="test_decay"):
    """The only workload on record for the target, with its toolchain where it has one."""
    content = read_evidence(suite.path / "baselines" / target / "test_suite.jsonl")
    toolchains = content.get("toolchains") or {"": content["tests"]}
    ((toolchain, tests),) = toolchains.items()
    (found,) = tests[test].values()
    return toolchain, found


# --- the CuTe DSL --------------------------------------------------------------------------------


def test_a_cute_kernel_is_recorded_with_what_its_call_was_given_and_stays_unchanged(cute_suite):
    toolchain, _ = workload(cute_suite, "sm_90")
    assert toolchain == "cutlass-dsl 4.8.1"
    _, time = workload(cute_suite, "simulated-gpu")
    assert time["identity"]["arguments"] == ("as called(float32[4096], float32[4096])", "as called")
    result = cute_suite.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  decay_kernel .* UNCHANGED"])


def test_a_slower_cute_kernel_is_paired_with_its_baseline_and_fails(cute_suite):
    cute_suite.edit("test_suite.py", "STEPS = 100", "STEPS = 104")
    result = cute_suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"decay_kernel  SLOWER  on simulated-gpu \(time\)  x1\.\d+ ",
            r" .* paired, \d+\+\d+ blocks",
            r" +also: instructions 113 -> 117",
            r" +proven to be more than 0.5 % slower, in two processes",
        ]
    )


def test_a_faster_cute_kernel_passes(cute_suite):
    cute_suite.edit("test_suite.py", "STEPS = 100", "STEPS = 104")
    cute_suite.run(*RECORD, subprocess=True).assert_outcomes(passed=1)
    cute_suite.edit("test_suite.py", "STEPS = 104", "STEPS = 100")
    result = cute_suite.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  decay_kernel .* FASTER"])


def test_a_cute_kernel_that_is_called_with_other_arrays_is_no_longer_the_same_work(cute_suite):
    cute_suite.edit("test_suite.py", "(4096, seed=1)", "(8192, seed=1)")
    result = cute_suite.run("--gpuperf", "--gpuperf-open=fail")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"decay_kernel  NOT-COMPARABLE  on simulated-gpu \(time\)",
            r" +the baseline cannot be launched .* was as called\(float32\[4096\], .* is as called\(float32\[8192",
        ]
    )


def test_three_architectures_of_a_cute_kernel_are_gated_without_a_gpu(suite):
    suite.write("test_suite.py", CUTE_TEST + ADDED)
    suite.run("--update-baselines").stdout.fnmatch_lines(["*4 baselines written*"])
    for arch in ARCHITECTURES:
        assert workload(suite, arch, "test_add")[1]["kernel"] == "adding"
    result = suite.run("--gpuperf")
    result.stdout.re_match_lines([r"  decay_kernel .* UNCHANGED"])
    result.stdout.re_match_lines([r"  adding +12 / 0 / - +12 / 0 / - +12 / 0 / - +UNCHANGED"])
    suite.edit("test_suite.py", "cute-add-", "cute-doubles-")
    result = suite.run("--gpuperf", "--gpuperf-open=fail")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"adding  WORSE  on sm_80 \(static\)",
            r" +instructions: fp64 0 -> 1 \(a double literal",
            r"adding  WORSE  on sm_90, sm_100 \(static\)",
            r" +instructions: fp64 0 -> 1 \(a double literal",
        ]
    )


def test_a_cute_kernel_for_another_gpu_is_refused(gpu_suite):
    gpu_suite.write(
        "test_suite.py",
        f"{ARRIVE}from dsl_samples import cute_compiled\n\n\ndef test_it(cuda_kernel):\n"
        '    cuda_kernel.from_cute(cute_compiled("cute-add-4.8.1-sm_80"))\n',
    )
    result = gpu_suite.run()
    result.assert_outcomes(failed=1)
    assert "add_kernel, compiled by the CuTe DSL: it is machine code for sm_80, and this GPU is sm_90" in (
        result.stdout.str()
    )


def test_what_is_no_kernel_is_refused_with_the_remedy(suite):
    suite.write("test_suite.py", "def test_it(cuda_kernel):\n    cuda_kernel.from_cute(5)\n")
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert (
        "from_cute takes what cute.compile(...) returned with its machine code, not int with None: cute.compile("
        in (result.stdout.str())
    )


# --- cuTile --------------------------------------------------------------------------------------


def test_a_cutile_kernel_is_recorded_unchanged_and_paired_when_it_changes(cutile_suite):
    toolchain, static = workload(cutile_suite, "sm_90")
    assert (toolchain, static["block"]) == ("cutile, ptxas 13.4.92", (128, 1, 1))
    result = cutile_suite.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  decay .* UNCHANGED"])

    cutile_suite.edit("test_suite.py", "STEPS = 40", "STEPS = 50")
    result = cutile_suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"decay  SLOWER  on simulated-gpu \(time\) ",
            r" .* paired, \d+\+\d+ blocks",
            r" +also: .*instructions \d+ -> \d+",
        ]
    )


def test_a_cutile_kernel_is_compiled_for_every_target_and_gated_without_a_gpu(suite):
    suite.write("test_suite.py", SOFTMAX_TEST)
    suite.run("--update-baselines", THREE).stdout.fnmatch_lines(["*3 baselines written*", "*1 static only*"])
    blocks = [workload(suite, arch, "test_softmax")[1]["block"] for arch in ARCHITECTURES]
    assert blocks == [(128, 1, 1), (256, 1, 1), (256, 1, 1)]
    result = suite.run("--gpuperf", THREE)
    result.stdout.re_match_lines([r"  softmax .* UNCHANGED", r".* 1 static only"])


def test_a_target_that_cutile_does_not_compile_for_is_refused_with_its_words(suite):
    suite.write("test_suite.py", SOFTMAX_TEST)
    result = suite.run("--gpuperf", "--gpuperf-arch=sm_75")
    result.assert_outcomes(failed=1)
    assert "cuTile cannot compile the kernel for sm_75: unsupported GPU sm_75" in result.stdout.str()

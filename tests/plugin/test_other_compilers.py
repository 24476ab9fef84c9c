"""Kernels of CuPy, Numba, the CuTe DSL, cuTile and nvcc: recorded, unchanged and paired, without a GPU too, refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evidence_tree import read_evidence
from fat_binaries import cubin_of
from stand_in_nvcc import StandInNvcc, forget_nvcc, found_as
from suite_under_test import HERE, HOG, RECORD, SIMULATED, Suite, assert_refused, sections, with_baselines

from pytest_gpuperf.compile.nvcc import toolchain

ARRIVE = f"import sys\nsys.path.insert(0, {str(HERE.parent / 'unit' / 'device')!r})\n"

CUPY = f"""{ARRIVE}
import pytest
from handed_samples import raw

SLOW = '''extern "C" __global__ void scale(float* x, float by, int n)
{{
    int i = threadIdx.x;
    float f = sinf(by) + x[i];
    if (i < n) x[i] = f * cosf(f);
}}
'''


@pytest.mark.parametrize("cooperative", [False, True])
def test_scale(cuda_kernel, gpu, gpuperf, cooperative):
    kernel = cuda_kernel.from_cupy(raw("scale", enable_cooperative_groups=cooperative))
    x = gpu.full(256, 3.0)
    launch = kernel.launch(grid=1, block=256, args=(x, 1.0, 256))
    gpuperf(launch, check=lambda: gpu.assert_equal(x, gpu.full(256, 3.0)))
"""

NUMBA = f"""{ARRIVE}
import pytest
from handed_samples import LATEST, CudaSupportError, NumbaCuda
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
MORE_WORK = r"""
import re
ptx = numba.facts["kernels"]["axpy"]["ptx"]
adding = re.search(r"\n\tfma\.rn\.f32[^\n]*", ptx["sm_90"])[0]
target = re.search(r"%f\d+", adding)[0]
more = "".join(f"\n\tfma.rn.f32 {target}, {target}, {target}, {target};" for _ in range(20))
ptx["sm_90"] = ptx["sm_90"].replace(adding, adding + more)


"""

CUTE_INSTALLED = f"""{ARRIVE}
import pytest
from handed_samples import cute_compiled

from pytest_gpuperf.compile.adapters import cute
from pytest_gpuperf.device.driver_calls import CapturedKernel
from pytest_gpuperf.device.interface import Configuration


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    monkeypatch.setattr(cute, "library", lambda name, _: name + " 4.8.1")
"""
CUTE = f"""{CUTE_INSTALLED}
STEPS = 100
SYMBOL = "kernel_cutlass_decay_kernel_tensorptrf32gmemalign16o1_tensorptrf32gmemalign16o1_%d_0"


def tensor(array):
    return array.ctypes.data.to_bytes(8, "little") + array.size.to_bytes(8, "little")


def decay(x, out):
    return CapturedKernel(SYMBOL % STEPS, Configuration((16, 1, 1), (256, 1, 1)), (tensor(x), tensor(out)))


def test_cute(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel.from_cute(cute_compiled(f"cute-decay{{STEPS}}-4.8.1-sm_90a"))
    x = gpu.random(4096, seed=1)
    out = gpu.empty_like(x)
    gpuperf(kernel.launch(decay, (x, out)), check=lambda: gpu.assert_equal(out, x))
"""
CUTE_OF_THREE = f"""{CUTE_INSTALLED}

def test_add(cuda_kernel):
    compiled = [cute_compiled(f"cute-add-4.8.1-{{arch}}") for arch in ("sm_80", "sm_90a", "sm_100a")]
    cuda_kernel.from_cute(compiled, name="adding")
"""

CUTILE = f"""{ARRIVE}
from types import SimpleNamespace

from handed_samples import RecordedSignature, install_recorded_cutile

install_recorded_cutile()
STEPS = 40


def test_cutile(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel.from_cutile(SimpleNamespace(), RecordedSignature(f"cutile-decay{{STEPS}}-1.7.0"), arch="sm_90")
    x = gpu.random(4096, seed=1)
    out = gpu.empty_like(x)
    gpuperf(kernel.launch(4, (x, out, 1024, STEPS)), check=lambda: gpu.assert_equal(out, x))
"""
CUTILE_OF_ANY = f"""{ARRIVE}
from types import SimpleNamespace

from handed_samples import RecordedSignature, install_recorded_cutile

install_recorded_cutile()


def test_softmax(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel.from_cutile(SimpleNamespace(), RecordedSignature("cutile-softmax-1.7.0"))
    x = gpu.random((64, 1024), seed=1)
    gpuperf(kernel.launch(64, (x, gpu.empty_like(x), 1024)))
"""

KNOWN = """
import ctypes
import numpy as np

def scale(x, factor, n):
    x[:] = x * factor

def axpy(*parameters):
    a, x, y = (parameters[place] for place in (0, 5, 12))
    y[:] = x * a

def at(tensor):
    content = tensor.tobytes()
    address, size = (int.from_bytes(content[place : place + 8], "little") for place in (0, 8))
    return np.ctypeslib.as_array((ctypes.c_float * size).from_address(address))

def decay_kernel(x, out):
    at(out)[:] = at(x)

def decay(x, length, stride, out, *_):
    assert (int(length), int(stride)) == (4096, 1)
    out[:] = x
"""
NAMES = ("scale", "axpy", "decay_kernel", "decay")
FILES = {
    "conftest.py": KNOWN
    + SIMULATED.replace('"work": work', ", ".join(f'"{name}": {name}' for name in NAMES)).replace(
        ', "other": work', ""
    ),
    "test_cupy.py": CUPY, "test_numba.py": NUMBA, "test_cute.py": CUTE, "test_cutile.py": CUTILE,
}  # fmt: skip
SLOWER = (
    ("test_cupy.py", 'raw("scale",', 'raw("scale", options=["-DN=1"], code=SLOW,'),
    ("test_numba.py", "\n\ndef test_axpy", f"{MORE_WORK}def test_axpy"),
    ("test_cute.py", "STEPS = 100", "STEPS = 104"),
    ("test_cutile.py", "STEPS = 40", "STEPS = 50"),
)


@pytest.fixture
def compilers(suite: Suite, shared_folder: Path) -> Suite:
    """On a simulated GPU, with a baseline of a kernel of each compiler."""
    return with_baselines(suite, shared_folder / "compilers", FILES, *RECORD)


def workload(suite: Suite, module: str, target: str) -> tuple[str, dict[str, Any]]:
    """The first workload on record for the target, with its toolchain where it has one."""
    content = read_evidence(suite.path / "baselines" / target / f"test_{module}.jsonl")
    ((compiler, tests),) = (content.get("toolchains") or {"": content["tests"]}).items()
    return compiler, next(iter(next(iter(tests.values())).values()))


def test_kernels_are_on_record_with_their_compilers(compilers: Suite) -> None:
    found = {module: workload(compilers, module, "sm_90")[0] for module in ("cupy", "numba", "cute", "cutile")}
    assert found.pop("numba").startswith("numba-cuda 0.30.4, ptxas ")
    assert found == {"cupy": toolchain(), "cute": "cutlass-dsl 4.8.1", "cutile": "cutile, ptxas 13.4.92"}
    assert workload(compilers, "cutile", "sm_90")[1]["block"] == (128, 1, 1)
    _, time = workload(compilers, "cute", "simulated-gpu")
    assert time["identity"]["arguments"] == ("as called(float32[4096], float32[4096])", "as called")
    assert "cooperative" in (compilers.path / "baselines/simulated-gpu/test_cupy.jsonl").read_text()


def test_kernels_are_unchanged_and_paired_when_they_change(compilers: Suite) -> None:
    result = compilers.run("--gpuperf")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["5 workloads: 5 UNCHANGED"])
    for edit in SLOWER:
        compilers.edit(*edit)
    result = compilers.run("--gpuperf", "-k", "not True")
    result.assert_outcomes(failed=4, deselected=1)
    of_each = {"scale[False]": "scale", "axpy": "axpy", "cute": "decay_kernel", "cutile": "decay"}
    found = sections(result)
    assert found.keys() == of_each.keys()
    for test, kernel in of_each.items():
        for words in (f"{kernel}  SLOWER  on simulated-gpu (time) ", " paired, ", "slower, in two processes"):
            assert words in found[test], test
    assert "the source and its machine code changed" in found["scale[False]"]
    assert "also: instructions 113 -> 117" in found["cute"]


REFUSED = {
    "cuda_kernel.from_cupy(print)": "from_cupy takes a RawKernel, or a RawModule with the name of a kernel",
    "numba = NumbaCuda(LATEST)\nsys.modules['numba.cuda'] = numba\n"
    'cuda_kernel.from_numba(numba.dispatcher("axpy"), "void(float32)")':
        "from_numba takes a signature of Numba's types",
    'cuda_kernel.from_cute(cute_compiled("cute-add-4.8.1-sm_80"))':
        "add_kernel, compiled by the CuTe DSL: it is machine code for sm_80, and this GPU is sm_90",
    "cuda_kernel.from_cute([])":
        "from_cute takes what cute.compile(...) returned with its machine code, not list with None: cute.compile(",
}  # fmt: skip


def test_what_cannot_be_taken_is_refused_with_the_remedy(gpu_suite: Suite) -> None:
    samples = "from handed_samples import LATEST, NumbaCuda, cute_compiled\n"
    assert_refused(gpu_suite, REFUSED, before=ARRIVE + samples)


# --- without a GPU -------------------------------------------------------------------------------


def without_gpu(suite: Suite, *given: str, **files: str) -> pytest.RunResult:
    """A run of these files alone."""
    for name, text in files.items():
        suite.write(f"test_{name}.py", text)
    return suite.run(*given, *(f"test_{name}.py" for name in files))


def test_cupy_and_numba_are_gated_for_every_target(suite: Suite) -> None:
    files = {"cupy": CUPY.replace("[False, True]", "[False]"), "numba": NUMBA}
    recorded = without_gpu(suite, "--update-baselines", "--gpuperf-arch=sm_80,sm_90,sm_120", **files)
    recorded.stdout.fnmatch_lines(["6 baselines written"])
    result = without_gpu(suite, "--gpuperf", **files)
    result.stdout.re_match_lines([
        r"  scale +8 / 0 / 100% +8 / 0 / 100% +8 / 0 / 100% +UNCHANGED",
        r"  axpy +14 / 0 / 100% +14 / 0 / 100% +10 / 0 / 100% +UNCHANGED",
        r".* 2 static only",
    ])  # fmt: skip


def test_device_functions_of_numba_need_a_device_where_there_is_none(suite: Suite) -> None:
    """Numba compiles them for the GPU that is there; whatever else it raises is an error of the test."""
    no_driver, its_own = (
        NUMBA.replace("\n\n@pytest.fixture", f"numba.problem = {problem}\n\n\n@pytest.fixture")
        for problem in ("CudaSupportError('no driver')", "ValueError('its own')")
    )
    result = without_gpu(suite, "--gpuperf", "--gpuperf-arch=sm_90", no_driver=no_driver, its_own=its_own)
    result.stdout.fnmatch_lines(["*1 failed*1 static only*"])


def test_cute_and_cutile_are_gated_for_their_targets(suite: Suite) -> None:
    files = {"cute": CUTE_OF_THREE, "cutile": CUTILE_OF_ANY}
    three = "--gpuperf-arch=sm_80,sm_90,sm_100"
    without_gpu(suite, "--update-baselines", three, **files).stdout.fnmatch_lines(["*6 baselines written*"])
    for arch, block in (("sm_80", 128), ("sm_90", 256), ("sm_100", 256)):
        assert workload(suite, "cute", arch)[1]["kernel"] == "adding"
        assert workload(suite, "cutile", arch)[1]["block"] == (block, 1, 1)
    result = without_gpu(suite, "--gpuperf", **files)
    result.stdout.re_match_lines(
        [r"  adding +12 / 0 / - +12 / 0 / - +12 / 0 / - +UNCHANGED", r"  softmax .* UNCHANGED"]
    )
    files["cute"] = CUTE_OF_THREE.replace("cute-add-", "cute-doubles-")
    result = without_gpu(suite, "--gpuperf", "--gpuperf-open=fail", **files)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([
        r"adding  WORSE  on sm_80 \(static\)",
        r" +instructions: fp64 0 -> 1",
        r"adding  WORSE  on sm_90, sm_100 \(static\)",
        r" +instructions: fp64 0 -> 1",
    ])  # fmt: skip
    result = without_gpu(suite, "--gpuperf", "--gpuperf-arch=sm_75", cutile=CUTILE_OF_ANY)
    result.assert_outcomes(failed=1)
    assert "cuTile cannot compile the kernel for sm_75: unsupported GPU sm_75" in result.stdout.str()


def test_cubin_of_cupy_s_lies_where_cupy_was_told_and_not_beside_the_test(suite: Suite) -> None:
    (suite.path / "kernels").mkdir()
    cubin = cubin_of('extern "C" __global__ void scale(float* x) { x[threadIdx.x] *= 2; }', "scale")
    (suite.path / "kernels" / "scale.cubin").write_bytes(cubin)
    (suite.path / "tests").mkdir()
    test = "from handed_samples import module\n\ndef test_scale(cuda_kernel):\n"
    suite.write("tests/test_scale.py", f'{ARRIVE}{test}    cuda_kernel.from_cupy(module("cubin"), "scale")\n')
    suite.run("--gpuperf", "tests/test_scale.py").assert_outcomes(passed=1)


BY_NVCC = """
def test_hog(cuda_kernel):
    assert cuda_kernel("hog.cu", "hog", compiler="nvcc").registers > 0
"""


def test_nvcc_is_recorded_under_its_name_and_judged(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, request: Any
) -> None:
    """By a stand-in.  What it takes of whole programs is in tests/unit/compile."""
    nvcc = StandInNvcc(tmp_path_factory.mktemp("nvcc"))
    request.addfinalizer(forget_nvcc)
    found_as(monkeypatch, lambda: str(nvcc.folder / "nvcc"))
    nvcc.makes(HOG)
    suite.write("hog.cu", HOG)
    without_gpu(suite, "--update-baselines", "--gpuperf-arch=sm_90", hog=BY_NVCC).assert_outcomes(passed=1)
    assert workload(suite, "hog", "sm_90")[0] == "nvcc 13.0.88"
    without_gpu(suite, "--gpuperf", hog=BY_NVCC).assert_outcomes(passed=1)
    nvcc.makes(HOG, "--maxrregcount=32")
    suite.write("hog.cu", f"{HOG}int other;")
    result = without_gpu(suite, "--gpuperf", hog=BY_NVCC)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*hog*WORSE*"])

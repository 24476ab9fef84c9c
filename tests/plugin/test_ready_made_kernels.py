"""Kernels that others have compiled: recorded, unchanged, exchanged and paired, gated without a GPU, refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from evidence_tree import read_evidence
from fat_binaries import MADE_BY_NVCC, cubin_of, fat_binary
from suite_under_test import KERNEL, RECORD, Suite, assert_refused

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.nvcc import toolchain

PTXAS = toolchain().replace("nvrtc", "ptxas")
ARCHS = "--gpuperf-arch=sm_80,sm_90"
TEST = """
def test_{name}(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel.from_cubin({what}, "work")
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=8, block=256, args=(a, b, 1024)), check=lambda: gpu.assert_equal(b, a))
"""
CUBIN_TEST = TEST.format(name="work", what='"work.cubin"')
FAT_TEST = TEST.format(name="fat", what='"work.fatbin"')
EACH_TEST = TEST.format(name="each", what='{"sm_80": "work80.cubin", "sm_90": "work90.cubin"}')


def make_cubin(suite, steps, text=KERNEL):
    (suite.path / "work.cubin").write_bytes(cubin_of(text, "work", "sm_90", f"-DSTEPS={steps}"))


def make_fat(suite, **texts):
    """For the architectures of these kernels' texts."""
    cubins = [(arch, cubin_of(text, "work", arch, "-DSTEPS=100")) for arch, text in texts.items()]
    (suite.path / "work.fatbin").write_bytes(fat_binary(cubins))
    for arch, cubin in cubins:
        (suite.path / f"work{arch.removeprefix('sm_')}.cubin").write_bytes(cubin)


def baseline(suite, target):
    """The one workload on record, by toolchain for an architecture."""
    content = read_evidence(suite.path / "baselines" / target / "test_suite.jsonl")
    toolchains = content.get("toolchains") or {"": content["tests"]}
    return {name: work for name, tests in toolchains.items() for works in tests.values() for work in works.values()}


@pytest.fixture(scope="module")
def cubin_recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where baselines of the ready-made kernel are kept between tests."""
    return tmp_path_factory.mktemp("cubin") / "baselines"


@pytest.fixture
def cubin_suite(gpu_suite: Suite, cubin_recording: Path) -> Suite:
    """On a simulated GPU, with a baseline of a kernel that came as a cubin."""
    gpu_suite.write("test_suite.py", CUBIN_TEST)
    make_cubin(gpu_suite, steps=100)
    if not cubin_recording.exists():
        gpu_suite.run(*RECORD).assert_outcomes(passed=1)
        shutil.copytree(gpu_suite.path / "baselines", cubin_recording)
    shutil.copytree(cubin_recording, gpu_suite.path / "baselines", dirs_exist_ok=True)
    return gpu_suite


def test_cubin_is_recorded_with_its_own_toolchain_and_its_machine_code(cubin_suite):
    """The same one is unchanged; another one of the same speed passes."""
    ((made_by, static),) = baseline(cubin_suite, "sm_90").items()
    assert made_by == PTXAS
    assert static["profile"]["instructions"] == 116
    assert static["occupancy"]["fraction"] == 1
    (time,) = baseline(cubin_suite, "simulated-gpu").values()
    stored = BaselineStore(cubin_suite.path / "baselines").cubin(time["cubin"])
    assert stored == (cubin_suite.path / "work.cubin").read_bytes()
    assert time["identity"]["toolchain"] == PTXAS
    assert time["identity"].get("source", "") == ""
    for factor, verdict in (("1.5f", "UNCHANGED"), ("1.25f", "SAME")):
        make_cubin(cubin_suite, 100, "\n\n" + KERNEL.replace("x * 1.5f", f"x * {factor}"))
        result = cubin_suite.run("--gpuperf")
        result.assert_outcomes(passed=1)
        result.stdout.re_match_lines([rf"  work .* {verdict}$"])


def test_slower_cubin_is_paired_and_fails(cubin_suite):
    """Of other parameters too; what NVRTC makes instead is another compiler's."""
    make_cubin(cubin_suite, 104, KERNEL.replace("int n", "long long n"))
    result = cubin_suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([
        r".*work  SLOWER  on simulated-gpu \(time\)  x1\.\d+ \[1.*\] ", r" .* paired, \d+\+\d+ blocks",
        r" +also: registers 8 -> 9.*, instructions 116 ->",
        r" +proven to be more than 1 % slower, in two processes; the machine code changed; argument 3 was "
        r"int32=1024 and is int64=1024; the baseline ran with its own arguments",
    ])  # fmt: skip
    cubin_suite.edit(
        "test_suite.py", '.from_cubin("work.cubin", "work")', '("work.cu", "work", options=["-DSTEPS=104"])'
    )
    result = cubin_suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([
        r"work  SLOWER  ", r" .* paired",
        rf" +proven .*; the machine code changed; the compiler changed from {PTXAS} to {toolchain()}",
    ])  # fmt: skip
    assert f"the baseline was compiled by {PTXAS}, this is {toolchain()}" in result.stdout.str()


def test_cubin_is_gated_without_a_gpu_as_its_own_architecture(cubin_suite):
    """Whatever others a run asks for; spills of unknown size are gated by their traces."""
    cubin_suite.write("conftest.py", "")
    assert cubin_suite.run("--gpuperf", ARCHS).ret == 0
    cubin_suite.edit("test_suite.py", '"work")', '"work", arch="sm_90")')
    assert cubin_suite.run("--gpuperf", "--gpuperf-arch=sm_80").ret == 0
    spilling = "float x = a[i], t[64]; for (int k = 0; k < 64; ++k) t[(k * n) % 64] = x; x = t[n % 64];"
    make_cubin(cubin_suite, 100, KERNEL.replace("float x = a[i];", spilling))
    result = cubin_suite.run("--gpuperf", "--gpuperf-arch=sm_80")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "stack frame 0 -> 256 bytes" in text
    assert "instructions: local_store 0 -> " in text
    assert "spill stores" not in text
    result.stdout.re_match_lines([r"work  WORSE  on sm_90 \(static\)", r"  work +\d+ / \? / 100% +WORSE"])


# --- several architectures -----------------------------------------------------------------------


def test_each_architecture_of_a_kernel_is_on_record_and_the_gpu_launches_its_own(gpu_suite):
    """Of a fat binary, and of a cubin each; one that is not this GPU's gates too."""
    make_fat(gpu_suite, sm_80=KERNEL, sm_90=KERNEL)
    gpu_suite.write("test_suite.py", FAT_TEST + EACH_TEST)
    gpu_suite.run(*RECORD, ARCHS).assert_outcomes(passed=2)
    for arch in ("sm_80", "sm_90"):
        (records,) = read_evidence(gpu_suite.path / "baselines" / arch / "test_suite.jsonl")["toolchains"].values()
        assert set(records) == {"test_fat", "test_each"}
        assert list(baseline(gpu_suite, arch)) == [PTXAS]
    (time,) = baseline(gpu_suite, "simulated-gpu").values()
    assert read_cubin(BaselineStore(gpu_suite.path / "baselines").cubin(time["cubin"])).arch == "sm_90"
    result = gpu_suite.run("--gpuperf")
    result.assert_outcomes(passed=2)
    assert "2 workloads: 2 UNCHANGED" in result.stdout.lines
    make_fat(gpu_suite, sm_80=KERNEL.replace("x * 1.5f", "x * 1.7"), sm_90=KERNEL)
    result = gpu_suite.run("--gpuperf")
    result.assert_outcomes(failed=2)
    result.stdout.re_match_lines([r".*work  WORSE  on sm_80 \(static\)"])


REFUSED = {
    'from_cubin("other.cubin", "work")': "other.cubin: no such file; there are: work",
    'from_cubin("test_suite.py", "work")': "test_suite.py: not a cubin: it starts with b'",
    'from_cubin("work.cubin", "wrok")': 'no kernel "wrok" in ',
    'from_cubin(b"version https://git-lfs.github.com/spec/v1", "k")': "cubin: it starts with b'version https://git-lfs",
    'from_cubin(b"", "work")': "a cubin of 0 bytes: not a cubin",
    r"from_cubin('work.cubin', 'work', name='a\nb')": r"from_cubin: name='a\nb' is not valid: it takes text of",
    "from_cubin('work.cubin', 5)": "from_cubin: symbol=5 is not valid: it takes text of one line, printable",
    "from_cute(5, name=5)": "from_cute: name=5 is not valid: it takes text of one line, printable",
    "from_cutile(5, 5, name=5)": "from_cutile: name=5 is not valid: it takes text of one line, printable",
    "from_cubin(5, 'work')": "from_cubin takes a cubin's bytes or its path, not int",
    'from_cubin("work.cubin", "work").ptx()': "work: it is machine code alone, there is no PTX of it for",
    'from_cubin("work.cubin", "work", source=5)': "from_cubin: source=5 is not valid: it takes a string",
    'from_cubin("work.cubin", "work", arch="sm_80")': "no machine code for sm_80, only for sm_90. To do: compile",
    'from_cubin("work.cubin", "work").launch(8, 256, (gpu.empty(9), 9))':
        "work takes 3 arguments (8 bytes, 8 bytes, 4 bytes), and 2 were given",
    "from_triton(5)": "from_triton takes a kernel that Triton compiled, not int",
    'from_cubin("work80.cubin", "work")': "work80.cubin: it is machine code for sm_80, and this GPU is sm_90: compile",
    'from_cubin("work.fatbin", "work", arch="sm_75")': "no machine code for sm_75, only for sm_80",
    'from_cubin({"sm_80": "work80.cubin"}, "work")':
        "work80.cubin: it is machine code for sm_80, and this GPU is sm_90: compile it for sm_90",
    'from_cubin({"sm_90": "work80.cubin"}, "work")': "work80.cubin for sm_90: it was compiled for sm_80, and not for",
    'from_cubin({"sm_9": "work80.cubin"}, "work")': "'sm_9' is no architecture; give {'sm_90': path}",
    'from_cubin({}, "work")': "'{}' is no architecture; give {'sm_90': path}",
    'from_cubin({"sm_90": "test_suite.py"}, "work")': "test_suite.py for sm_90: not a cubin",
    'from_cubin("work.fatbin", "wrok")': 'no kernel "wrok" in ',
    'from_cubin("ptx.fatbin", "work")': "ptx.fatbin: it holds no GPU machine code (PTX alone",
    'from_cubin("twice.fatbin", "work")': "2 of its cubins have a kernel work: pass the object file",
}  # fmt: skip


def test_what_is_no_kernel_is_refused_with_its_place(gpu_suite):
    make_fat(gpu_suite, sm_80=KERNEL, sm_90=KERNEL)
    make_cubin(gpu_suite, 100)
    (gpu_suite.path / "ptx.fatbin").write_bytes((MADE_BY_NVCC / "ptx.fatbin").read_bytes())
    twice = [("sm_90", cubin_of(KERNEL, "work", "sm_90", f"-DSTEPS={steps}")) for steps in (100, 104)]
    (gpu_suite.path / "twice.fatbin").write_bytes(fat_binary(twice))
    assert_refused(gpu_suite, {f"cuda_kernel.{call}": words for call, words in REFUSED.items()})
    lacking = "work.fatbin: it has no machine code for sm_120, only for sm_80, sm_90."
    assert_refused(gpu_suite, {'cuda_kernel.from_cubin("work.fatbin", "work")': lacking}, "--gpuperf-arch=sm_120")

"""Kernels that others have compiled: recorded, unchanged, exchanged and paired, gated without a GPU, refused."""

from __future__ import annotations

import shutil

import pytest
from evidence_tree import read_evidence
from fat_binaries import MADE_BY_NVCC, cubin_of, fat_binary
from suite_under_test import HERE, KERNEL, RECORD, SIMULATED, assert_refused

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.compile.source import KernelSource

PTXAS = toolchain().replace("nvrtc", "ptxas")
SAMPLES = HERE.parent / "unit" / "device"

CUBIN_TEST = """
def test_work(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel.from_cubin("work.cubin", "work")
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=8, block=256, args=(a, b, 1024)), check=lambda: gpu.assert_equal(b, a))
"""

TRITON_TEST = f"""
import sys
sys.path.insert(0, {str(SAMPLES)!r})
from triton_samples import compiled


def test_add(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel.from_triton(compiled("add-3.6.0"))
    x, y = gpu.random(4096, seed=1), gpu.random(4096, seed=2)
    out = gpu.empty_like(x)
    launch = kernel.launch(4, (x, y, out, 4096, 1024))
    gpuperf(launch, bytes=3 * x.nbytes, check=lambda: gpu.assert_equal(out, x + y))
"""

ADDING = """
def add(x, y, out, n, *scratch):
    assert [int(pointer) for pointer in scratch] == [0, 0]
    out[:] = x + y
"""


def make_cubin(suite, steps, arch="sm_90", text=KERNEL):
    binary = compile_kernel(KernelSource(text, "work", options=(f"-DSTEPS={steps}",)), arch)
    (suite.path / "work.cubin").write_bytes(binary.cubin)


def baseline(suite, target):
    """The one workload on record, by toolchain for an architecture."""
    content = read_evidence(suite.path / "baselines" / target / "test_suite.jsonl")
    toolchains = content.get("toolchains") or {"": content["tests"]}
    return {name: work for name, tests in toolchains.items() for works in tests.values() for work in works.values()}


@pytest.fixture(scope="module")
def cubin_recording(tmp_path_factory, recording):
    """Where baselines of the ready-made kernel are kept between tests."""
    return tmp_path_factory.mktemp("cubin") / "baselines"


@pytest.fixture
def cubin_suite(gpu_suite, cubin_recording):
    """On a simulated GPU, with a baseline of a kernel that came as a cubin."""
    gpu_suite.write("test_suite.py", CUBIN_TEST)
    make_cubin(gpu_suite, steps=100)
    if not cubin_recording.exists():
        gpu_suite.run(*RECORD, subprocess=True).assert_outcomes(passed=1)
        shutil.copytree(gpu_suite.path / "baselines", cubin_recording)
    shutil.copytree(cubin_recording, gpu_suite.path / "baselines", dirs_exist_ok=True)
    return gpu_suite


# --- cubins --------------------------------------------------------------------------------------


def test_a_cubin_is_recorded_with_its_own_toolchain_and_its_machine_code(cubin_suite):
    ((toolchain_of_it, static),) = baseline(cubin_suite, "sm_90").items()
    assert toolchain_of_it == PTXAS
    assert static["profile"]["instructions"] == 116
    assert static["occupancy"]["fraction"] == 1
    (time,) = baseline(cubin_suite, "simulated-gpu").values()
    stored = BaselineStore(cubin_suite.path / "baselines").cubin(time["cubin"])
    assert stored == (cubin_suite.path / "work.cubin").read_bytes()
    assert time["identity"]["toolchain"] == PTXAS
    assert time["identity"].get("source", "") == ""


def test_the_same_cubin_is_unchanged(cubin_suite):
    result = cubin_suite.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  work .* UNCHANGED$"])


@pytest.mark.parametrize(("edit", "verdict"), [("1.25f", "SAME"), ("1.5f", "UNCHANGED")])
def test_a_cubin_of_the_same_speed_passes(cubin_suite, edit, verdict):
    make_cubin(cubin_suite, 100, text="\n\n" + KERNEL.replace("x * 1.5f", f"x * {edit}"))
    result = cubin_suite.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([rf"  work .* {verdict}$"])


def test_a_slower_cubin_of_the_same_parameters_is_paired_and_fails(cubin_suite):
    make_cubin(cubin_suite, 104)
    result = cubin_suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"work  SLOWER  on simulated-gpu \(time\)  x1\.\d+ \[1.*\] ",
            r" .* paired, \d+\+\d+ blocks",
            r" +also: instructions 116 -> 120",
            r" +proven to be more than 0.5 % slower, in two processes; the machine code changed$",
        ]
    )


def test_a_slower_cubin_of_other_parameters_is_paired_with_those_on_record(cubin_suite):
    make_cubin(cubin_suite, 104, text=KERNEL.replace("int n", "long long n"))
    result = cubin_suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r".*work  SLOWER ",
            r" .* paired",
            r" +.*argument 3 was int32=1024 and is int64=1024; the baseline ran with its own",
        ]
    )


def test_changed_code_of_an_unknown_compiler_is_not_comparable_by_itself_and_paired(cubin_suite, monkeypatch):
    monkeypatch.setattr("pytest_gpuperf.compile.machine_code.binary.read_cubin", _without_assembler)
    path = cubin_suite.path / "baselines" / "sm_90" / "test_suite.jsonl"
    path.write_text(path.read_text().replace(PTXAS, "unknown"))
    cubin_suite.run("--gpuperf").stdout.re_match_lines([r"  work .* UNCHANGED"])
    make_cubin(cubin_suite, 100, text=KERNEL.replace("1.5f", "1.25f"))
    result = cubin_suite.run("--gpuperf", "--gpuperf-open=fail")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [r"work  NOT-COMPARABLE  on sm_90 \(static\)", r" +the machine code does not say which compiler made it"]
    )


def _without_assembler(cubin):
    return read_cubin(cubin)._replace(assembler="")


def test_what_nvrtc_makes_instead_is_paired_though_its_static_evidence_is_another_toolchain_s(cubin_suite):
    cubin_suite.edit(
        "test_suite.py", '.from_cubin("work.cubin", "work")', '("work.cu", "work", options=["-DSTEPS=104"])'
    )
    result = cubin_suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"work  SLOWER  ",
            r" .* paired",
            rf" +proven .*; the machine code changed; the compiler changed from {PTXAS} to {toolchain()}",
        ]
    )
    assert f"the baseline was compiled by {PTXAS}, this is {toolchain()}" in result.stdout.str()


def test_spills_of_unknown_size_are_shown_as_such_and_their_traces_are_gated(cubin_suite):
    spilling = KERNEL.replace("float x = a[i];", "float x = a[i], t[64]; for (int k = 0; k < 64; ++k) "
                              "t[(k * n) % 64] = x; x = t[n % 64];")  # fmt: skip
    make_cubin(cubin_suite, 100, text=spilling)
    result = cubin_suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "stack frame 0 -> 256 bytes" in text
    assert "instructions: local_store 0 -> " in text
    assert "spill stores" not in text
    cubin_suite.write("conftest.py", "")  # no GPU: the table of static evidence
    cubin_suite.run("--gpuperf").stdout.re_match_lines([r"  work +\d+ / \? / 100% +WORSE"])


def test_without_a_gpu_the_cubin_s_own_architecture_is_gated(suite, cubin_recording, cubin_suite):
    cubin_suite.write("conftest.py", "")
    make_cubin(cubin_suite, 104, text=KERNEL.replace("float x = a[i];", "double x = a[i];"))
    result = cubin_suite.run("--gpuperf", "--gpuperf-arch=sm_80")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"work  WORSE  on sm_90 \(static\)", r".*instructions: fp64 0 -> \d+"])


def test_a_cubin_of_one_architecture_is_gated_as_that_whatever_others_a_run_asks_for(cubin_suite):
    result = cubin_suite.run("--gpuperf", "--gpuperf-arch=sm_80,sm_90")
    result.assert_outcomes(passed=1)
    cubin_suite.edit("test_suite.py", '"work")', '"work", arch="sm_90")')
    result = cubin_suite.run("--gpuperf", "--gpuperf-arch=sm_80")
    result.assert_outcomes(passed=1)


def test_without_a_gpu_a_launch_of_a_cubin_is_validated(suite):
    suite.write("test_suite.py", CUBIN_TEST.replace("(a, b, 1024)", "(a, 1024)"))
    make_cubin(suite, 100)
    result = suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    assert "work takes 3 arguments (8 bytes, 8 bytes, 4 bytes), and 2 were given" in result.stdout.str()


def test_a_cubin_for_another_gpu_is_refused(cubin_suite):
    make_cubin(cubin_suite, 100, arch="sm_80")
    result = cubin_suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [r"E .*work\.cubin: it is machine code for sm_80, and this GPU is sm_90: compile it for"]
    )


NO_KERNEL = {
    'from_cubin("other.cubin", "work")': "no such file; there are: work.cubin. Paths are relative to the",
    'from_cubin("test_suite.py", "work")': "test_suite.py: not a cubin: it does not start as a 64-bit ELF",
    'from_cubin("work.cubin", "wrok")': 'no kernel "wrok" in ',
    'from_cubin(b"", "work")': "a cubin of 0 bytes: not a cubin",
    "from_cubin('work.cubin', 'work', name=5)": "from_cubin: name=5 is not valid: it takes text of one line",
    r"from_cubin('work.cubin', 'work', name='a\nb')": r"from_cubin: name='a\nb' is not valid: it takes text of",
    "from_cubin('work.cubin', 5)": "from_cubin: symbol=5 is not valid: it takes text of one line, printable",
    "from_cute(5, name=5)": "from_cute: name=5 is not valid: it takes text of one line, printable",
    "from_cutile(5, 5, name=5)": "from_cutile: name=5 is not valid: it takes text of one line, printable",
    "from_cubin(5, 'work')": "from_cubin takes a cubin's bytes or its path, not int",
    'from_cubin("work.cubin", "work", source=5)': "from_cubin: source=5 is not valid: it takes a string",
    'from_cubin("work.cubin", "work", arch="sm_80")': "no machine code for sm_80 in it; it has sm_90. Compile it",
    "from_triton(5)": "from_triton takes what Triton has compiled, not int",
}


def test_what_is_no_kernel_is_refused_with_its_place(cubin_suite):
    assert_refused(cubin_suite, {f"cuda_kernel.{call}": words for call, words in NO_KERNEL.items()})


# --- several architectures -----------------------------------------------------------------------

SEVERAL = {
    "a fat binary": 'from_cubin("work.fatbin", "work")',
    "a cubin each": 'from_cubin({"sm_80": "work80.cubin", "sm_90": "work90.cubin"}, "work")',
}


@pytest.fixture
def several_suite(gpu_suite):
    """On a simulated GPU of sm_90, with a kernel for sm_80 and sm_90 in both forms."""
    cubins = [(arch, cubin_of(KERNEL, "work", arch, "-DSTEPS=100")) for arch in ("sm_80", "sm_90")]
    (gpu_suite.path / "work.fatbin").write_bytes(fat_binary(cubins))
    for arch, cubin in cubins:
        (gpu_suite.path / f"work{arch.removeprefix('sm_')}.cubin").write_bytes(cubin)
    return gpu_suite


@pytest.mark.parametrize("call", SEVERAL.values(), ids=SEVERAL)
def test_each_architecture_that_the_run_asks_for_is_on_record_and_the_gpu_launches_its_own(several_suite, call):
    several_suite.write("test_suite.py", CUBIN_TEST.replace('from_cubin("work.cubin", "work")', call))
    several_suite.run(*RECORD, "--gpuperf-arch=sm_80,sm_90", subprocess=True).assert_outcomes(passed=1)
    for arch in ("sm_80", "sm_90"):
        ((toolchain_of_it, static),) = baseline(several_suite, arch).items()
        assert toolchain_of_it == PTXAS
        assert static["profile"]["instructions"] > 100
    (time,) = baseline(several_suite, "simulated-gpu").values()
    stored = BaselineStore(several_suite.path / "baselines").cubin(time["cubin"])
    assert read_cubin(stored).arch == "sm_90"
    result = several_suite.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  work .* UNCHANGED$"])


def test_what_got_worse_for_another_architecture_than_this_gpus_fails(several_suite):
    several_suite.write("test_suite.py", CUBIN_TEST.replace('"work.cubin"', '"work.fatbin"'))
    several_suite.run(*RECORD, "--gpuperf-arch=sm_80,sm_90", subprocess=True).assert_outcomes(passed=1)
    worse = KERNEL.replace("x * 1.5f", "x * 1.7")
    cubins = [("sm_80", worse), ("sm_90", KERNEL)]
    content = fat_binary((arch, cubin_of(text, "work", arch, "-DSTEPS=100")) for arch, text in cubins)
    (several_suite.path / "work.fatbin").write_bytes(content)
    result = several_suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r".*work  WORSE  on sm_80 \(static\)"])


NO_CODE = {
    'from_cubin("work.fatbin", "work", arch="sm_75")': "no machine code for sm_75 in it; it has sm_80",
    'from_cubin({"sm_80": "work80.cubin"}, "work")':
        "work80.cubin: it is machine code for sm_80, and this GPU is sm_90: compile it for sm_90",
    'from_cubin({"sm_90": "work80.cubin"}, "work")': "work80.cubin for sm_90: it was compiled for sm_80, and not for",
    'from_cubin({"sm_9": "work80.cubin"}, "work")': "'sm_9' is no architecture; give {'sm_90': path}",
    'from_cubin({}, "work")': "'{}' is no architecture; give {'sm_90': path}",
    'from_cubin({"sm_90": "gone.cubin"}, "work")': "gone.cubin: no such file",
    'from_cubin({"sm_90": "test_suite.py"}, "work")': "test_suite.py for sm_90: not a cubin",
    'from_cubin("work.fatbin", "wrok")': 'no kernel "wrok" in ',
    'from_cubin("ptx.fatbin", "work")': "ptx.fatbin: it holds no machine code for a GPU; PTX alone",
    'from_cubin("twice.fatbin", "work")': "2 cubins in it have a kernel work: name the object file",
}  # fmt: skip


def test_architectures_that_are_not_there_are_named_with_those_that_are(several_suite):
    ptx = (MADE_BY_NVCC / "ptx.fatbin").read_bytes()
    (several_suite.path / "ptx.fatbin").write_bytes(ptx)
    twice = [("sm_90", cubin_of(KERNEL, "work", "sm_90", f"-DSTEPS={steps}")) for steps in (100, 104)]
    (several_suite.path / "twice.fatbin").write_bytes(fat_binary(twice))
    assert_refused(several_suite, {f"cuda_kernel.{call}": words for call, words in NO_CODE.items()})
    lacking = "work.fatbin: there is no machine code for sm_120 in it; it has sm_80, sm_90."
    assert_refused(several_suite, {'cuda_kernel.from_cubin("work.fatbin", "work")': lacking}, "--gpuperf-arch=sm_120")


def test_without_a_gpu_all_that_is_there_of_what_a_run_gates_by_default_is_gated(suite):
    (suite.path / "work.fatbin").write_bytes((MADE_BY_NVCC / "work.fatbin").read_bytes())
    suite.write("test_suite.py", CUBIN_TEST.replace('"work.cubin"', '"work.fatbin"'))
    suite.run(*RECORD, subprocess=True).stdout.fnmatch_lines(["*= 1 static only in *"])
    assert sorted(path.name for path in (suite.path / "baselines").iterdir() if path.name.startswith("sm_")) == [
        "sm_80", "sm_90",
    ]  # fmt: skip


# --- Triton --------------------------------------------------------------------------------------


def test_an_architecture_on_record_that_a_file_no_longer_has_is_not_measured(suite, monkeypatch):
    """And one that the file never had is not asked for."""
    cubins = {arch: cubin_of(KERNEL, "work", arch, "-DSTEPS=1") for arch in ("sm_80", "sm_90")}
    (suite.path / "work.fatbin").write_bytes(fat_binary(cubins.items()))
    suite.write("test_suite.py", CUBIN_TEST.replace("work.cubin", "work.fatbin"))
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90").ret == 0
    monkeypatch.setenv("CI", "true")
    assert suite.run("--gpuperf").ret == 0
    (suite.path / "work.fatbin").write_bytes(fat_binary([("sm_80", cubins["sm_80"])]))
    result = suite.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["ERROR: * NOT-MEASURED on sm_90: its test did not reach it: *for this architecture too*"]
    )


@pytest.fixture
def triton_suite(gpu_suite):
    """On a simulated GPU, with a kernel that Triton compiled."""
    gpu_suite.write("test_suite.py", TRITON_TEST)
    gpu_suite.write("conftest.py", ADDING + SIMULATED.replace('"work": work', '"add": add, "work": work'))
    return gpu_suite


def test_a_triton_kernel_is_recorded_unchanged_and_paired_when_it_changes(triton_suite):
    triton_suite.run(*RECORD, subprocess=True).assert_outcomes(passed=1)
    assert list(baseline(triton_suite, "sm_90")) == ["triton 3.6.0"]
    result = triton_suite.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  add .* UNCHANGED"])

    triton_suite.edit("test_suite.py", "add-3.6.0", "add-one-warp-3.6.0")
    result = triton_suite.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"add  WORSE  on sm_90 \(static\)",
            r" +also: .*block 128x1x1 -> 32x1x1",
            r"add  SLOWER  on simulated-gpu \(time\) ",
            r" .* paired, \d+\+\d+ blocks",
            r" +proven .*the source and its machine code changed; the launch changed from .* block=\(128, 1, 1\)",
        ]
    )


def test_without_a_gpu_a_triton_kernel_is_static_only(suite):
    suite.write("test_suite.py", TRITON_TEST)
    suite.run("--update-baselines").stdout.fnmatch_lines(["1 baseline written", "*1 static only*"])
    result = suite.run("--gpuperf")
    result.stdout.re_match_lines([r"  add +30 / 0 / 100% +UNCHANGED", r".* 1 static only"])


def test_a_kernel_that_only_triton_can_launch_is_refused_with_the_remedy(triton_suite):
    triton_suite.edit("test_suite.py", '"add-3.6.0"', '"add-3.6.0", num_ctas=2')
    result = triton_suite.run()
    result.assert_outcomes(failed=1)
    assert "clusters of 2 blocks. Give gpuperf a function that launches it with Triton" in result.stdout.str()

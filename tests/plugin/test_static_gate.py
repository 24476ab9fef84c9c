"""``pytest --gpuperf`` without a GPU: static evidence is gated, nothing claims to have been timed."""

from __future__ import annotations

import html
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree

import pytest
from suite_under_test import HOG, hog_test, sections

from pytest_gpuperf.compile.machine_code import sass

RED = ("options=[]", "options=['-maxrregcount=32']")
ALONE = ("--gpuperf", "test_hog.py")


@pytest.fixture
def hog_suite(suite):
    suite.write("hog.cu", HOG)
    suite.write("test_hog.py", hog_test())
    suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90,sm_120", "test_hog.py")
    return suite


def test_every_workload_is_listed_and_the_run_passes(suite):
    """A test that is static only has a status of its own."""
    result = suite.run("--gpuperf", "--gpuperf-arch=sm_80,sm_90", "-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines([
        "*test_suite.py::test_work*1024* STATIC ONLY*", "*sm_80*sm_90*", "*test_suite.py::test_work*1024*",
        "*work* / 0 / 100%*NEW*", "timing needs a GPU: 3 workloads were judged by static evidence only*",
    ])  # fmt: skip
    assert result.parseoutcomes() == {"static only": 3} or "3 static only" in result.stdout.lines[-1]
    assert "passed" not in result.stdout.lines[-1]
    refused = suite.run("--gpuperf", "--gpuperf-require-gpu")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*--gpuperf-require-gpu: *"])


def test_test_of_which_nothing_could_be_compared_is_skipped_at_its_own_line(suite):
    result = suite.run("--junitxml=junit.xml")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*3 static only*"])
    *_, skipped = ElementTree.parse(suite.path / "junit.xml").getroot().iter("skipped")
    at = 1 + (suite.path / "test_suite.py").read_text().splitlines().index("def test_other(cuda_kernel, gpu, gpuperf):")
    assert skipped.text.startswith(f"{suite.path / 'test_suite.py'}:{at}: static only: ")


def test_spills_fail_the_test_itself_on_every_architecture(hog_suite):
    """--lf runs it again; where no failure shows the regression, the end of the run does."""
    below = "test_hog.py::test_hog: hog  WORSE  on sm_80"
    hog_suite.edit("test_hog.py", *RED)
    result = hog_suite.pytester.runpytest_inprocess("--gpuperf", "--junitxml=junit.xml")
    assert result.ret == 1
    text = result.stdout.str()
    told = re.findall(r"^hog  WORSE  on (sm_.*) \(static\)$", text, re.MULTILINE)
    assert sorted(arch for archs in told for arch in archs.split(", ")) == ["sm_120", "sm_80", "sm_90"]
    assert text.count("spill stores 0 -> ") == len(told)
    assert "pytest --update-baselines" in text
    assert "end_of_test.py" not in text
    assert below not in text
    junit = ElementTree.parse(hog_suite.path / "junit.xml").getroot().find("testsuite")
    assert junit.get("failures") == "1"
    again = hog_suite.pytester.runpytest_inprocess("--gpuperf", "--lf", "--tb=no")
    again.assert_outcomes(failed=1)
    assert below in again.stdout.str()
    hog_suite.edit("test_hog.py", "    gpuperf(kernel", "    assert a.size == 0\n    gpuperf(kernel")
    assert below in hog_suite.run(*ALONE).stdout.str()


EXPECTED = """import pytest
from pytest_gpuperf import PerformanceRegression

@pytest.mark.xfail(raises=PerformanceRegression, reason="until #7", strict=True)
def test_hog"""


def test_expected_regression_is_reported_and_covers_no_other_failure(hog_suite):
    hog_suite.edit("test_hog.py", *RED)
    hog_suite.edit("test_hog.py", "def test_hog", EXPECTED)
    result = hog_suite.run(*ALONE)
    assert result.parseoutcomes() == {"xfailed": 1}
    assert "hog  WORSE  on sm_80" in result.stdout.str()
    hog_suite.write("test_hog.py", (hog_suite.path / "test_hog.py").read_text() + "    assert False\n")
    assert hog_suite.run(*ALONE).parseoutcomes() == {"failed": 1}


def test_missing_baselines_fail_under_ci(suite, monkeypatch):
    """But for those of a test that is expected to fail: no update would record them."""
    monkeypatch.setenv("CI", "true")
    result = suite.run("--gpuperf", "-k", "other")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*doubling  NEW  on *", "*--update-baselines=new*"])
    assert suite.run("--gpuperf", "--gpuperf-open=warn").ret == 0
    suite.edit("test_suite.py", "def test_other", "@pytest.mark.xfail(reason='flaky')\ndef test_other")
    suite.write("test_suite.py", (suite.path / "test_suite.py").read_text() + "    assert False\n")
    assert suite.run("--gpuperf", "-k", "other").ret == 0


WHO = r"    the baseline was compiled by nvrtc 12\.0\.88, this is nvrtc 13\.0\.88"


def test_another_compiler_is_compared_by_what_costs_by_itself(suite):
    """Each report has the figures of both sides, and names both compilers."""
    suite.run("--update-baselines", "--gpuperf-arch=sm_90")
    suite.blame_another_compiler()
    suite.run("--gpuperf").stdout.fnmatch_lines(["3 workloads: 3 UNCHANGED"])
    suite.edit("work.cu", "k < STEPS", "k < 2 * STEPS")
    result = suite.run("--gpuperf")
    assert result.ret == 0
    assert result.stdout.str().count("compile with the same version") == 1
    result.stdout.re_match_lines(
        [r"test_suite\.py::test_work\[1024\] and 1 workload more like it: work  NOT-COMPARABLE  on sm_90 .*",
         r"    also: instructions .*",
         r"    another compiler: compile with the same version, or accept it with pytest --update-baselines", WHO]
    )  # fmt: skip
    suite.write("hog.cu", HOG)
    suite.write("test_hog.py", hog_test())
    suite.run("--update-baselines", *ALONE[1:])
    suite.blame_another_compiler()
    suite.edit("test_hog.py", *RED)
    red = suite.run("--update-baselines=new", *ALONE[1:])
    assert "0 baselines written" in red.stdout.str()
    red = suite.run(*ALONE, "--gpuperf-report=all.md,all.html,all.json")
    assert red.ret == 1
    red.stdout.re_match_lines([
        r"hog  WORSE  on sm_90 \(static\)", "    spill stores 0 -> .*", WHO, ".*cause: register spilling.*"
    ])  # fmt: skip
    for ending in ("md", "html"):
        text = html.unescape((suite.path / f"all.{ending}").read_text())
        assert re.search(rf"    spill stores 0 -> (.|\n)*{WHO}", text)
    (judged,) = json.loads((suite.path / "all.json").read_text())["tests"][0]["workloads"][0]["judgements"]
    assert judged["changes"][0]["before"] == 0 < judged["changes"][0]["after"]
    assert re.fullmatch(WHO.strip(), *judged["notes"])


# --- however its test ends -----------------------------------------------------------------------

LAUNCH = (
    "launch = {}cuda_kernel('hog.cu', 'hog', options=[]).launch(1, 32, ({}gpu.random(4096, seed=1), {}gpu.empty(32)))"
)
FUNCTION = f"""
import unittest, pytest

def test_hog(cuda_kernel, gpu, gpuperf):
    {LAUNCH.format("", "", "")}
    END
"""
TEST_CASE = f"""
import unittest, pytest

class TestHog(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def tools(self, cuda_kernel, gpuperf, gpu):
        self.cuda_kernel, self.gpuperf, self.gpu = cuda_kernel, gpuperf, gpu

    def test_hog(self):
        {LAUNCH.format("self.", "self.", "self.")}
        END
"""
IN_FIXTURE = """
import unittest, pytest

@pytest.fixture(scope="function")
def kernel(cuda_kernel, request):
    cuda_kernel("hog.cu", "hog", options=[])
    END

def test_hog(kernel, gpu): pass
"""
OF_MODULE = IN_FIXTURE.replace('"function"', '"module"')
SKIP, SKIP_TEST = "pytest.skip('too small')", "raise unittest.SkipTest('too small')"
ENDS = {
    # the test, how it ends, and then its status
    "skip_behind_the_workload": (FUNCTION, f"gpuperf(launch); {SKIP}", "SKIPPED"),
    "skip_behind_the_kernel": (FUNCTION, SKIP, "SKIPPED"),
    "skip_of_unittest": (FUNCTION, SKIP_TEST, "SKIPPED"),
    "its_own_failure": (FUNCTION, "pytest.fail('not so')", "FAILED"),
    "data": (FUNCTION, "gpu.random(8, seed=1).sum()", "STATIC ONLY"),
    "skip_test_of_a_case": (TEST_CASE, "self.skipTest('too small')", "SKIPPED"),
    "time_of_a_case": (TEST_CASE, "self.gpuperf(launch).time_ns", "STATIC ONLY"),
    "failure_of_a_case": (TEST_CASE, "self.fail('not so')", "FAILED"),
    "skip_of_a_fixture": (IN_FIXTURE, SKIP, "SKIPPED"),
    "skip_of_a_modules": (OF_MODULE, SKIP, "SKIPPED"),
    "unittest_skip_of_a_modules": (OF_MODULE, SKIP_TEST, "SKIPPED"),
    "data_of_a_fixture": (IN_FIXTURE, "request.getfixturevalue('gpu').random(8, seed=1).sum()", "STATIC ONLY"),
}


def statuses(result):
    """By the name of a file with one test, of a verbose run."""
    return dict(re.findall(r"^test_(\w+)\.py::\S+ (STATIC ONLY|[A-Z]+)", result.stdout.str(), re.MULTILINE))


def test_regression_is_not_hidden_by_the_end_of_its_test(suite):
    suite.write("hog.cu", HOG)
    (suite.path / "test_suite.py").unlink()
    for case, (text, _, _) in ENDS.items():
        suite.write(f"test_{case}.py", text.replace("END", "pass"))
    suite.run("--update-baselines", "--gpuperf-arch=sm_90")
    for case, (text, end, _) in ENDS.items():
        suite.write(f"test_{case}.py", text.replace("END", end))
    suite.write("test_no_kernel.py", f"import pytest\ndef test_it(cuda_kernel):\n    {SKIP}\n")
    green = suite.run("--gpuperf", "-v", "-rs")
    assert statuses(green) == {**{case: end for case, (_, _, end) in ENDS.items()}, "no_kernel": "SKIPPED"}
    green.stdout.fnmatch_lines(["SKIPPED * test_no_kernel.py:*: too small"])
    verdicts = re.findall(r"^  hog .* (\S+)$", green.stdout.str(), re.MULTILINE)
    assert len(verdicts) == len(ENDS)
    assert set(verdicts) <= {"UNCHANGED", "SAME"}  # it was recorded without a launch
    for case in ENDS:
        suite.edit(f"test_{case}.py", *RED)
    red = suite.run("--gpuperf", "-v")
    text = red.stdout.str()
    assert {case for case, status in statuses(red).items() if status not in ("FAILED", "ERROR")} == {"no_kernel"}
    assert len(re.findall(r"^hog  WORSE  on sm_90 \(static\)$", text, re.MULTILINE)) == len(ENDS)
    assert "During handling" not in text
    assert text.count("E       Failed: not so") == text.count("E       AssertionError: not so") == 1


WIDE = HOG.replace("64", "VALUES").replace("63", "VALUES - 1").replace("32 * k", "256 * k")
WIDE = WIDE.replace("void hog", "void __launch_bounds__(256) hog")
"""Its launch has eight warps, of which fewer are resident where it holds many values."""
LAUNCHED = """
import pytest

def test_hog(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("hog.cu", "hog", options=["-DVALUES=8"])
    gpuperf(kernel.launch(grid=1, block=256, args=(gpu.random(65536, seed=1), gpu.empty(256))))
"""


def test_kernel_of_a_test_that_skips_before_its_launch_has_the_recorded_one(suite):
    skip = "    pytest.skip('no GPU of this size')\n"
    suite.write("hog.cu", WIDE)
    suite.write("test_hog.py", LAUNCHED)
    assert suite.run("--update-baselines", "test_hog.py").ret == 0
    suite.edit("test_hog.py", "    gpuperf(", f"{skip}    gpuperf(")
    assert suite.run(*ALONE).ret == 0
    suite.edit("test_hog.py", "VALUES=8", "VALUES=128")
    red = suite.run(*ALONE)
    assert red.ret == 1
    red.stdout.fnmatch_lines(["hog  WORSE  on *", "*occupancy 100 -> *"])
    assert suite.run("--update-baselines", "test_hog.py").ret == 0
    suite.edit("test_hog.py", skip, "")
    accepted = suite.run(*ALONE)
    assert accepted.ret == 0
    accepted.stdout.fnmatch_lines(["*hog *UNCHANGED"])


# --- kernels of one name -------------------------------------------------------------------------

HOG_AGAIN = 'cuda_kernel("hog.cu", "hog", options=[])'
LAUNCHED_WITH_64 = (
    'cuda_kernel("hog.cu", "hog", options=["-maxrregcount=64"]).launch(1, 32, (gpu.random(4096, seed=1), '
    "gpu.empty(32)))"
)
OTHERS = {
    # lines of a test beside HOG_AGAIN, and then: its own name, and that of the other kernel
    "options": ('cuda_kernel("hog.cu", "hog", options=["-DB", "-maxrregcount=64"])', "hog", "hog [-DB -maxrr"),
    "files": ('cuda_kernel("other.cu", "hog", options=[])', "hog [hog.cu]", "hog [other.cu]"),
    "a_callable": ("gpuperf(lambda: None, name='hog')", "hog [kernel]", ""),
    "a_workload": (f"gpuperf({LAUNCHED_WITH_64})", "hog [kernel]", "hog"),
    "a_workload_by_another_name": (f"gpuperf({LAUNCHED_WITH_64}, name='mine')", "hog", "mine"),
}


def test_each_kernel_of_one_name_is_gated(suite):
    """Whichever of the two comes first."""
    suite.write("hog.cu", HOG)
    suite.write("other.cu", HOG.replace("0.25f", "0.125f"))
    tests = {f"test_{case}_{turn}": case for case in OTHERS for turn in ("first", "second")}
    for test, case in tests.items():
        lines = [HOG_AGAIN, OTHERS[case][0]]
        lines = lines if test.endswith("first") else lines[::-1]
        suite.write(f"{test}.py", f"def {test}(cuda_kernel, gpu, gpuperf):\n    {lines[0]}\n    {lines[1]}\n")
    flags = ("--gpuperf-arch=sm_90", "--ignore=test_suite.py", "-v")
    assert suite.run("--update-baselines", *flags).ret == 0
    green = suite.run("--gpuperf", *flags)
    assert green.ret == 0
    tables = dict(re.findall(r"^test_\w+\.py::(\w+)\n((?:  \S.*\n)+)", green.stdout.str(), re.MULTILINE))
    for test, case in tests.items():
        rows = tables[test].splitlines()
        for name in filter(None, OTHERS[case][1:]):
            assert any(row.startswith(f"  {name}") and row.endswith("UNCHANGED") for row in rows), (test, rows)
        suite.edit(f"{test}.py", HOG_AGAIN, HOG_AGAIN.replace("[]", '["-maxrregcount=32"]'))
    red = suite.run("--gpuperf", *flags)
    red.assert_outcomes(failed=len(tests))
    worse = re.findall(r"^(\S.*)  WORSE  on sm_90 \(static\)$", red.stdout.str(), re.MULTILINE)
    assert len(worse) == len(tests)


REFUSED = """
import pytest

@pytest.fixture
def late(cuda_kernel, gpu, gpuperf, request):
    launch = cuda_kernel("hog.cu", "hog", options=[]).launch(1, 32, (gpu.random(4096, seed=1), gpu.empty(32)))
    yield
    if request.node.name == "test_workload":
        gpuperf(launch)
    cuda_kernel('hog.cu', 'hog')

def test_workload(late): pass

def test_kernel(late): pass
"""


def test_kernels_and_workloads_after_the_end_of_a_test_are_refused(suite):
    suite.write("hog.cu", HOG)
    suite.write("test_hog.py", REFUSED)
    result = suite.run(*ALONE)
    assert result.ret == 1
    text = result.stdout.str()
    for test, what in (("test_workload", "the workload 'hog'"), ("test_kernel", "the kernel hog")):
        assert f"TestOver: test_hog.py::{test}: {what} comes after the end of the test and " in text


# --- what is disassembled ------------------------------------------------------------------------


def test_machine_code_is_read_where_it_changed_and_where_it_is_recorded(suite, monkeypatch):
    """A gated run reads none that its baselines have on record."""
    read, real = [], sass.run_nvdisasm
    monkeypatch.setattr(sass, "run_nvdisasm", lambda tool, arch, code: (read.append(arch), real(tool, arch, code))[1])
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(suite.path / "cache"))
    flags = ("--gpuperf-arch=sm_80,sm_90", "-k", "other")
    suite.run("--update-baselines", *flags)

    def cold(mode):
        shutil.rmtree(suite.path / "cache")
        read.clear()
        return suite.run(mode, *flags)

    cold("--gpuperf").stdout.fnmatch_lines(["*UNCHANGED*"])
    assert read == []
    cold("--update-baselines=all")
    assert {*read} == {"sm_80", "sm_90"}
    suite.edit("other.cu", "a[i] * 2.0f", "a[i] * 3.0f + a[i + 1]")
    cold("--gpuperf").stdout.fnmatch_lines(["*SAME*"])
    assert {*read} == {"sm_80", "sm_90"}


# --- a kernel with arch= of its own: its record binds that kernel, and makes no other be compiled for it ---

ARCHS = "--gpuperf-arch=sm_80,sm_90"
OPEN = ("--gpuperf", "--gpuperf-open=fail")
OWN_ARCH = """
def test_own(cuda_kernel):
    cuda_kernel("other.cu", "other", arch="sm_90a")
"""


def modules_on_record(suite, arch):
    return sorted(file.name for file in (suite.path / "baselines" / arch).glob("*.jsonl"))


def test_variant_is_on_record_for_its_kernel_alone(suite):
    """A change of it and its going are seen."""
    suite.write("test_own.py", OWN_ARCH)
    assert suite.run("--update-baselines", ARCHS).ret == 0
    assert suite.run(*OPEN).ret == 0
    assert suite.run("--update-baselines=all").ret == 0
    assert modules_on_record(suite, "sm_90a") == ["test_own.jsonl"]
    assert modules_on_record(suite, "sm_90") == ["test_suite.jsonl"]
    suite.edit("other.cu", "a[i] * 2.0f", "a[i] * 2.0f + __shfl_sync(~0u, a[i], 3)")
    result = suite.run("--gpuperf", "test_own.py")
    result.stdout.fnmatch_lines(["*sm_90a  verdict", "*other * SAME"])
    changed = '"work.cu", "work", options=["-DSTEPS=1"]'
    suite.write("test_own.py", OWN_ARCH.replace('"other.cu", "other", arch="sm_90a"', changed))
    result = suite.run("--gpuperf", "test_own.py")
    result.stdout.fnmatch_lines(["1 workload NOT-MEASURED on sm_90a: *: test_own.py::test_own [[]other[]]*"])


LIMITED = HOG.replace("void hog", "void BOUNDS hog").replace(
    "    float arr", "    __shared__ float pad[WORDS];\n    float arr"
)
LIMITED = LIMITED.replace(
    "    b[", "    pad[threadIdx.x % 32] = r;\n    __syncthreads();\n    r += pad[threadIdx.x / 32];\n    b["
)
LIMITS = """
import pytest

KEPT = ("__launch_bounds__(1024)", 32, 0, None)
ROWS = {
    "registers": ("", 32, 0, None),
    "static": ("__launch_bounds__(1024)", 10240, 61440, None),
    "dynamic": ("__launch_bounds__(1024)", 32, 170000, None),
    "cluster": ("__launch_bounds__(1024)", 32, 0, 2),
}

@pytest.mark.parametrize("limit", ROWS)
def test_limit(cuda_kernel, gpu, gpuperf, limit):
    bounds, words, shared_bytes, cluster = ROWS[limit]
    kernel = cuda_kernel("limits.cu", "hog", options=["-DBOUNDS=" + bounds, f"-DWORDS={words}"])
    a, b = gpu.random(4096, seed=1), gpu.empty(1024)
    gpuperf(kernel.launch(2, 1024, (a, b), shared_bytes, cluster=cluster))
"""
REFUSED_BY = {
    "registers": (
        r"\d+ registers x 1,024 threads, of 65,536",
        {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"},
    ),
    "static": ("102,400 bytes of shared memory a block, of 101,376", {"sm_86", "sm_89", "sm_120"}),
    "dynamic": (
        r"170,128 bytes of shared memory a block, of 1(?:66,912|01,376)",
        {"sm_80", "sm_86", "sm_89", "sm_120"},
    ),
    "cluster": ("clusters begin with sm_90", {"sm_80", "sm_86", "sm_89"}),
}


def test_launch_that_fits_no_sm_is_worse_and_is_not_recorded(suite):
    """Until its limit is kept; each message names the limit."""
    flags = ("--gpuperf-arch=sm_80,sm_86,sm_89,sm_90,sm_100,sm_120", "test_limits.py")
    suite.write("limits.cu", LIMITED)
    suite.write("test_limits.py", LIMITS)
    recorded = suite.run("--update-baselines", *flags)
    assert recorded.ret == 1
    recorded.stdout.fnmatch_lines(["8 baselines written, 16 refused"])
    broken = suite.run("--gpuperf", *flags)
    suite.edit("test_limits.py", "ROWS[limit]", "KEPT")
    assert suite.run("--update-baselines=all", *flags).ret == 0
    assert suite.run("--gpuperf", *flags).ret == 0
    suite.edit("test_limits.py", "= KEPT", "= ROWS[limit]")
    for red in (broken, suite.run("--gpuperf", *flags)):
        found = sections(red)
        assert found.keys() == {f"limit[{limit}]" for limit in REFUSED_BY}
        for limit, (words, archs) in REFUSED_BY.items():
            text = found[f"limit[{limit}]"]
            told = re.findall(rf"WORSE  on (.*) \(static\)\n(?:    .*\n)*?    does not fit: {words}: ", text)
            assert {arch for one in told for arch in one.split(", ")} == archs
            assert "cause:" not in text
            assert "intended" not in text

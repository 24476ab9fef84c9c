"""``pytest --gpuperf`` without a GPU: static evidence is gated, nothing claims to have been timed."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from suite_under_test import HOG

HOG_TEST = """
def test_hog(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("hog.cu", "hog", options=[])
    a, b = gpu.random(4096, seed=1), gpu.empty(32)
    gpuperf(kernel.launch(grid=1, block=32, args=(a, b)))
"""


@pytest.fixture
def hog_suite(suite):
    suite.write("hog.cu", HOG)
    suite.write("test_hog.py", HOG_TEST)
    suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90,sm_120")
    return suite


def test_every_workload_is_listed_and_the_run_passes(suite):
    result = suite.run("--gpuperf", "--gpuperf-arch=sm_80,sm_90")
    assert result.ret == 0
    result.stdout.fnmatch_lines([
        "*sm_80*sm_90*", "*test_suite.py::test_work*1024*", "*work* / 0 / 100%*NEW*",
        "timing needs a GPU: 3 workloads were judged by static evidence only*",
    ])  # fmt: skip


def test_a_static_only_test_has_a_status_of_its_own(suite):
    result = suite.run("--gpuperf", "-v")
    result.stdout.fnmatch_lines(["*test_suite.py::test_work*1024* STATIC ONLY*"])
    assert result.parseoutcomes() == {"static only": 3} or "3 static only" in result.stdout.lines[-1]
    assert "passed" not in result.stdout.lines[-1]


def test_a_test_of_which_nothing_could_be_compared_is_skipped_at_its_own_line(suite):
    suite.run("-k", "other", "--junitxml=junit.xml")
    (skipped,) = ElementTree.parse(suite.path / "junit.xml").getroot().iter("skipped")
    line = 1 + (suite.path / "test_suite.py").read_text().splitlines().index(
        "def test_other(cuda_kernel, gpu, gpuperf):"
    )
    assert skipped.text.startswith(f"{suite.path / 'test_suite.py'}:{line}: static only: ")


def test_spills_fail_the_test_itself_with_bytes_on_every_architecture(hog_suite):
    hog_suite.edit("test_hog.py", "options=[]", 'options=["-maxrregcount=32"]')
    result = hog_suite.run("--gpuperf", "test_hog.py", "--junitxml=junit.xml")
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    told = re.findall(r"^hog  WORSE  on (sm_.*) \(static\)$", text, re.MULTILINE)
    assert sorted(arch for archs in told for arch in archs.split(", ")) == ["sm_120", "sm_80", "sm_90"]
    assert text.count("spill stores 0 -> ") == len(told)
    assert "pytest --update-baselines" in text
    assert "end_of_test.py" not in text
    suite = ElementTree.parse(hog_suite.path / "junit.xml").getroot().find("testsuite")
    assert suite.get("failures") == "1"


RED = ("options=[]", 'options=["-maxrregcount=32"]')
SUMMARY_WORDS = "test_hog.py::test_hog: hog  WORSE  on sm_80"


@pytest.mark.parametrize(
    ("flags", "more", "is_below"),
    [((), "", False), (("--tb=no",), "", True), (("--tb=line",), "", True), ((), "assert a.size == 0", True)],
)
def test_what_no_failure_shows_is_said_below(hog_suite, flags, more, is_below):
    hog_suite.edit("test_hog.py", *RED)
    hog_suite.edit("test_hog.py", "    gpuperf(kernel", f"    {more}\n    gpuperf(kernel")
    assert (SUMMARY_WORDS in hog_suite.run("--gpuperf", *flags).stdout.str()) == is_below


def test_last_failed_reruns_the_regressed_test(hog_suite):
    hog_suite.edit("test_hog.py", "options=[]", 'options=["-maxrregcount=32"]')
    hog_suite.pytester.runpytest_inprocess("--gpuperf")
    again = hog_suite.pytester.runpytest_inprocess("--gpuperf", "--lf")
    again.assert_outcomes(failed=1)
    assert "hog  WORSE" in again.stdout.str()


def test_a_comment_a_name_and_a_reordered_helper_change_nothing(hog_suite):
    hog_suite.write("hog.cu", "// a comment\n" + HOG.replace("arr", "values"))
    result = hog_suite.run("--gpuperf", "test_hog.py")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*hog*UNCHANGED*"])


EXPECTED = """import pytest
from pytest_gpuperf import PerformanceRegression

@pytest.mark.xfail(raises=PerformanceRegression, reason="until #7", strict=True)
def test_hog"""


@pytest.mark.parametrize(("more", "outcome"), [("", {"xfailed": 1}), ("    assert False\n", {"failed": 1})])
def test_an_expected_regression_is_reported_and_covers_no_other_failure(hog_suite, more, outcome):
    hog_suite.edit("test_hog.py", *RED)
    hog_suite.edit("test_hog.py", "def test_hog", EXPECTED)
    hog_suite.write("test_hog.py", f"{(hog_suite.path / 'test_hog.py').read_text().rstrip()}\n{more}")
    result = hog_suite.run("--gpuperf", "test_hog.py")
    assert result.parseoutcomes() == outcome
    assert SUMMARY_WORDS in result.stdout.str()


def test_missing_baselines_fail_under_ci(suite, monkeypatch):
    monkeypatch.setenv("CI", "true")
    result = suite.run("--gpuperf", "-k", "other")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*doubling  NEW  on *", "*--update-baselines=new*"])
    assert suite.run("--gpuperf", "--gpuperf-open=warn").ret == 0


def test_a_better_kernel_passes_and_fails_when_strict(suite):
    suite.edit("work.cu", "x * 1.5f", "x * 1.5")
    suite.run("--update-baselines", "--gpuperf-arch=sm_90", "-k", "work")
    suite.edit("work.cu", "x * 1.5", "x * 1.5f")
    result = suite.run("--gpuperf", "-k", "work")
    assert result.ret == 0
    assert "work  BETTER" in result.stdout.str()
    assert "instructions: fp64 " in result.stdout.str()
    assert suite.run("--gpuperf", "--gpuperf-strict", "-k", "work").ret == 1


def test_require_gpu_refuses_a_machine_without_one(suite):
    result = suite.run("--gpuperf", "--gpuperf-require-gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--gpuperf-require-gpu: *"])


def test_another_compiler_is_told_once_for_all_workloads(suite):
    suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90")
    suite.blame_another_compiler()
    result = suite.run("--gpuperf")
    assert result.ret == 0
    assert result.stdout.str().count("compile with the same version") == 1
    result.stdout.re_match_lines(
        [r"test_suite\.py::test_work\[1024\] and 2 workloads more like it: work  NOT-COMPARABLE  on sm_80, sm_90 .*",
         r"    the baseline was compiled by nvrtc 12\.\S+, this is nvrtc 13\.\S+: compile with the same version, or .*"]
    )  # fmt: skip


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

@pytest.fixture(scope="SCOPE")
def kernel(cuda_kernel, request):
    cuda_kernel("hog.cu", "hog", options=[])
    END

def test_hog(kernel, gpu): pass
"""
SKIP, SKIP_TEST = "pytest.skip('too small')", "raise unittest.SkipTest('too small')"
ENDS = {
    # the test, how it ends, and then its outcome: as parseoutcomes() has it, with the word behind a number
    "skip behind the workload": (FUNCTION, f"gpuperf(launch); {SKIP}", "static"),
    "skip behind the kernel": (FUNCTION, SKIP, "skipped"),
    "skip of unittest": (FUNCTION, SKIP_TEST, "skipped"),
    "its own failure": (FUNCTION, "pytest.fail('not so')", "failed"),
    "data": (FUNCTION, "gpu.random(8, seed=1).sum()", "static"),
    "skipTest": (TEST_CASE, "self.skipTest('too small')", "skipped"),
    "SkipTest": (TEST_CASE, SKIP_TEST, "skipped"),
    "time": (TEST_CASE, "self.gpuperf(launch).time_ns", "static"),
    "failure of a case": (TEST_CASE, "self.fail('not so')", "failed"),
    "skip of a fixture": (IN_FIXTURE.replace("SCOPE", "function"), SKIP, "skipped"),
    "skip of a module's": (IN_FIXTURE.replace("SCOPE", "module"), SKIP, "skipped"),
    "SkipTest of a module's": (IN_FIXTURE.replace("SCOPE", "module"), SKIP_TEST, "skipped"),
    "data of a fixture": (
        IN_FIXTURE.replace("SCOPE", "function"), "request.getfixturevalue('gpu').random(8, seed=1).sum()", "static"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS)
def test_a_regression_is_not_hidden_by_the_end_of_its_test(hog_suite, case):
    text, end, outcome = ENDS[case]
    hog_suite.write("test_hog.py", text.replace("END", "pass"))
    hog_suite.run("--update-baselines=new", "test_hog.py")
    hog_suite.write("test_hog.py", text.replace("END", end))
    green = hog_suite.run("--gpuperf", "test_hog.py")
    assert set(green.parseoutcomes()) == {outcome}
    green.stdout.re_match_lines([r"  hog .*(UNCHANGED|SAME)"])  # it was recorded without a launch
    hog_suite.edit("test_hog.py", *RED)
    red = hog_suite.run("--gpuperf", "test_hog.py")
    assert red.ret == 1
    red.stdout.fnmatch_lines(["*hog*WORSE  on *"])
    text = red.stdout.str()
    assert "During handling" not in text
    assert ("not so" in text) == (outcome == "failed")
    if outcome != "failed":
        assert text.count("spill stores 0 -> ") == len(re.findall(r"^hog  WORSE  on ", text, re.MULTILINE))


def test_a_test_that_skips_before_any_kernel_is_left_alone(hog_suite):
    hog_suite.write("test_skips.py", f"import pytest\ndef test_skips(cuda_kernel):\n    {SKIP}\n")
    result = hog_suite.run("--gpuperf", "test_skips.py", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * test_skips.py:*: too small"])


WIDE = """
extern "C" __global__ void __launch_bounds__(256) hog(const float* a, float* b)
{
    float arr[VALUES];
#pragma unroll
    for (int k = 0; k < VALUES; ++k) arr[k] = a[threadIdx.x + 256 * k];
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < VALUES; ++k) s = s * 0.5f + arr[k];
    float r = s;
#pragma unroll
    for (int k = VALUES - 1; k >= 0; --k) r = r * 0.25f + arr[k] * s;
    b[threadIdx.x] = r;
}
"""
LAUNCHED = """
import pytest

def test_hog(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("hog.cu", "hog", options=["-DVALUES=8"])
    gpuperf(kernel.launch(grid=1, block=256, args=(gpu.random(65536, seed=1), gpu.empty(256))))
"""


@pytest.mark.parametrize("accepted", [True, False])
def test_kernel_of_a_test_that_skips_before_its_launch_has_the_recorded_one(suite, accepted):
    suite.write("hog.cu", WIDE)
    suite.write("test_hog.py", LAUNCHED)
    assert suite.run("--update-baselines", "test_hog.py").ret == 0
    suite.edit("test_hog.py", "    gpuperf(", "    pytest.skip('no GPU of this size')\n    gpuperf(")
    assert suite.run("--gpuperf", "test_hog.py").ret == 0
    suite.edit("test_hog.py", "VALUES=8", "VALUES=128")
    if accepted:
        assert suite.run("--update-baselines", "test_hog.py").ret == 0
        suite.edit("test_hog.py", "    pytest.skip('no GPU of this size')\n", "")
    result = suite.run("--gpuperf", "test_hog.py")
    assert result.ret == (0 if accepted else 1)
    worse = ["hog  WORSE  on *", "*occupancy 100 -> *"]
    result.stdout.fnmatch_lines(["*hog *UNCHANGED"] if accepted else worse)


# --- kernels of one name ---------------------------------------------------------------------------

HOG_AGAIN = 'cuda_kernel("hog.cu", "hog", options=[])'
OTHERS = {
    # lines of a test beside HOG_AGAIN, and then: its line, and that of the other kernel, as patterns
    "options": ('cuda_kernel("hog.cu", "hog", options=["-DB", "-maxrregcount=64"])', "hog", r"hog \[-DB -maxrr.*\]"),
    "files": ('cuda_kernel("other.cu", "hog", options=[])', r"hog \[hog.cu\]", r"hog \[other.cu\]"),
    "a callable": ("gpuperf(lambda: None, name='hog')", r"hog \[kernel\]", ""),
    "a workload": (
        'gpuperf(cuda_kernel("hog.cu", "hog", options=["-maxrregcount=64"]).launch(1, 32, (gpu.random(4096, seed=1), '
        "gpu.empty(32))))", r"hog \[kernel\]", "hog",
    ),
    "a workload by another name": (
        'gpuperf(cuda_kernel("hog.cu", "hog", options=["-maxrregcount=64"]).launch(1, 32, (gpu.random(4096, seed=1), '
        "gpu.empty(32))), name='mine')", "hog", "mine",
    ),
}  # fmt: skip


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("case", OTHERS)
def test_each_kernel_of_one_name_is_gated(hog_suite, case, first):
    more, own, other = OTHERS[case]
    hog_suite.write("other.cu", HOG.replace("0.25f", "0.125f"))
    lines = [HOG_AGAIN, more] if first else [more, HOG_AGAIN]
    hog_suite.write("test_hog.py", "def test_hog(cuda_kernel, gpu, gpuperf):\n    {}\n    {}\n".format(*lines))
    assert hog_suite.run("--update-baselines", "test_hog.py").ret == 0
    green = hog_suite.run("--gpuperf", "test_hog.py")
    assert green.ret == 0
    for name in filter(None, (own, other)):
        green.stdout.re_match_lines([rf"  {name} .* UNCHANGED"])
    hog_suite.edit("test_hog.py", HOG_AGAIN, HOG_AGAIN.replace("[]", '["-maxrregcount=32"]'))
    red = hog_suite.run("--gpuperf", "test_hog.py")
    red.assert_outcomes(failed=1)
    assert len(set(re.findall(r"^(\S.*)  WORSE  on ", red.stdout.str(), re.MULTILINE))) == 1


def test_a_second_kernel_of_a_name_is_new_and_one_compiled_again_is_the_same(hog_suite):
    hog_suite.write("test_hog.py", f"def test_hog(cuda_kernel):\n    {HOG_AGAIN}\n    {HOG_AGAIN}\n")
    hog_suite.run("--update-baselines", "test_hog.py").stdout.fnmatch_lines(["0 baselines written: *"])
    hog_suite.edit(
        "test_hog.py", f"{HOG_AGAIN}\n    cuda", HOG_AGAIN.replace("[]", "['-maxrregcount=64']") + "\n    cuda"
    )
    result = hog_suite.run("--gpuperf", "test_hog.py")
    assert result.ret == 0
    result.stdout.re_match_lines([r"  hog \[-maxrregcount=64\] .* NEW", r"  hog .* UNCHANGED"])


SAME_OPTIONS = """
TEXT = 'extern "C" __global__ void twice(float* y) { y[threadIdx.x] *= %s; }'

def test_twice(cuda_kernel):
    cuda_kernel(TEXT % "2.0f", "twice")
    cuda_kernel(TEXT % "3.0f", "twice")
"""


def test_kernels_that_differ_in_nothing_but_their_text_are_refused_with_the_remedy(suite):
    suite.write("test_hog.py", SAME_OPTIONS)
    result = suite.run("--gpuperf", "test_hog.py")
    result.assert_outcomes(failed=1)
    told = "test_hog.py::test_twice: several kernels called 'twice' differ in nothing but their text, "
    result.stdout.fnmatch_lines([f"{told}*rename the function of one*name='...'*"])


LATE = """
import pytest

@pytest.fixture
def late(cuda_kernel, gpu, gpuperf):
    launch = cuda_kernel("hog.cu", "hog", options=[]).launch(1, 32, (gpu.random(4096, seed=1), gpu.empty(32)))
    yield
    CALL

def test_hog(late): pass
"""


@pytest.mark.parametrize(
    ("call", "what"),
    [("gpuperf(launch)", "the workload 'hog'"), ("cuda_kernel('hog.cu', 'hog')", "the kernel hog")],
    ids=["workload", "kernel"],
)
def test_what_comes_after_a_tests_end_is_refused_for_nothing_would_judge_it(hog_suite, call, what):
    hog_suite.write("test_hog.py", LATE.replace("CALL", call))
    result = hog_suite.run("--gpuperf", "test_hog.py")
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"*TestOver: test_hog.py::test_hog: {what} comes after the test's end and *"])


XFAIL = "import pytest\n@pytest.mark.xfail(reason='flaky')\ndef test_hog"


def test_a_new_workload_of_a_test_that_is_expected_to_fail_stays_expected(suite, monkeypatch):
    """No update would record it."""
    monkeypatch.setenv("CI", "true")
    suite.write("hog.cu", HOG)
    suite.write("test_hog.py", HOG_TEST.replace("def test_hog", XFAIL) + "    assert False\n")
    result = suite.run("--gpuperf", "test_hog.py")
    assert result.ret == 0, result.stdout.str()


ANGLES = """
extern "C" __global__ void angles(float* a) { a[threadIdx.x] = sinf(a[threadIdx.x]) / 3.0f; }
"""
ANGLES_TEST = """
def test_angles(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("angles.cu", "angles", options=["--use_fast_math"])
    gpuperf(kernel.launch(grid=1, block=32, args=(gpu.empty(32),)))
"""


def test_a_dropped_use_fast_math_is_among_the_remedies(suite):
    suite.write("angles.cu", ANGLES)
    suite.write("test_angles.py", ANGLES_TEST)
    suite.run("--update-baselines", "--gpuperf-arch=sm_90", "test_angles.py")
    suite.edit("test_angles.py", '"--use_fast_math"', "")
    result = suite.run("--gpuperf", "test_angles.py")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*sinpif, __sinf and --use_fast_math do not"])

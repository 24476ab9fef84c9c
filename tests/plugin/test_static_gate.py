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
    result.stdout.fnmatch_lines(["*sm_80*sm_90*", "*test_suite.py::test_work*1024*", "*work* / 0 / 100%*NEW*"])
    result.stdout.fnmatch_lines(["timing needs a GPU: 3 workloads were judged by static evidence only*"])


def test_architectures_without_a_baseline_are_named_in_the_order_of_the_table(suite):
    result = suite.run("--gpuperf", "--gpuperf-arch=sm_80,sm_90,sm_120")
    result.stdout.fnmatch_lines(
        ["* sm_80 * sm_90 * sm_120 *", "next: record 3 new workloads: pytest --update-baselines=new *"]
    )


def test_a_static_only_test_has_a_status_of_its_own(suite):
    result = suite.run("--gpuperf", "-v")
    result.stdout.fnmatch_lines(["*test_suite.py::test_work*1024* STATIC ONLY*"])
    assert result.parseoutcomes() == {"static only": 3} or "3 static only" in result.stdout.lines[-1]
    assert "passed" not in result.stdout.lines[-1]


def test_a_test_that_reads_no_time_is_static_only_too(suite):
    result = suite.run("--gpuperf", "-v", "-k", "other")
    result.stdout.fnmatch_lines(["*test_other STATIC ONLY*", "*1 static only*"])


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


def test_what_a_failure_has_shown_is_not_said_again_below(hog_suite):
    hog_suite.edit("test_hog.py", *RED)
    assert SUMMARY_WORDS not in hog_suite.run("--gpuperf").stdout.str()


@pytest.mark.parametrize("style", ["--tb=no", "--tb=line"])
def test_what_no_failure_shows_is_said_below(hog_suite, style):
    hog_suite.edit("test_hog.py", *RED)
    assert SUMMARY_WORDS in hog_suite.run("--gpuperf", style).stdout.str()


def test_a_regression_beside_an_error_of_the_test_is_said_below(hog_suite):
    hog_suite.edit("test_hog.py", *RED)
    hog_suite.edit("test_hog.py", "    gpuperf(kernel", "    assert a.size == 0\n    gpuperf(kernel")
    text = hog_suite.run("--gpuperf").stdout.str()
    assert "assert 4096 == 0" in text
    assert SUMMARY_WORDS in text


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


def test_an_expected_regression_is_reported_and_not_failed(hog_suite):
    hog_suite.edit("test_hog.py", *RED)
    hog_suite.edit("test_hog.py", "def test_hog", EXPECTED)
    result = hog_suite.run("--gpuperf", "test_hog.py")
    result.assert_outcomes(xfailed=1)
    assert SUMMARY_WORDS in result.stdout.str()


def test_an_expected_regression_covers_no_other_failure(hog_suite):
    hog_suite.edit("test_hog.py", *RED)
    hog_suite.edit("test_hog.py", "def test_hog", EXPECTED)
    text = (hog_suite.path / "test_hog.py").read_text()
    hog_suite.write("test_hog.py", f"{text.rstrip()}\n    assert False\n")
    hog_suite.run("--gpuperf", "test_hog.py").assert_outcomes(failed=1)


def test_missing_baselines_fail_under_ci(suite, monkeypatch):
    monkeypatch.setenv("CI", "true")
    result = suite.run("--gpuperf", "-k", "other")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*doubling  NEW  on *", "*--update-baselines=new*"])


def test_missing_baselines_can_be_told_to_warn_under_ci(suite, monkeypatch):
    monkeypatch.setenv("CI", "true")
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


def test_another_compiler_is_told_of_a_few_workloads_by_name(suite):
    suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90")
    suite.blame_another_compiler()
    result = suite.run("--gpuperf", "-k", "other")
    result.stdout.fnmatch_lines(["test_suite.py::test_other: doubling  NOT-COMPARABLE  on sm_80, sm_90 (static)"])


SKIPPED_TEST = """
import pytest

def test_hog(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("hog.cu", "hog", options=[])
    launch = kernel.launch(grid=1, block=32, args=(gpu.random(4096, seed=1), gpu.empty(32)))
    END
"""
CUT_SHORT = ["gpuperf(launch); pytest.skip('too small')", "pytest.skip('too small')"]


@pytest.mark.parametrize("end", CUT_SHORT, ids=["after the workload", "after the kernel"])
def test_a_regression_is_not_hidden_by_a_skip(hog_suite, end):
    hog_suite.write("test_hog.py", SKIPPED_TEST.replace("END", end))
    green = hog_suite.run("--gpuperf", "test_hog.py", "-rs")
    assert green.ret == 0
    green.stdout.fnmatch_lines(["*hog *UNCHANGED"])
    hog_suite.edit("test_hog.py", *RED)
    result = hog_suite.run("--gpuperf", "test_hog.py")
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["hog  WORSE  on *"])


def test_a_skip_after_a_kernel_stays_a_skip(hog_suite):
    hog_suite.write("test_hog.py", SKIPPED_TEST.replace("END", CUT_SHORT[1]))
    result = hog_suite.run("--gpuperf", "test_hog.py", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * test_hog.py:*: too small"])


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


@pytest.fixture
def skips_before_its_launch(suite):
    """A test that launched on record, and now skips before it does."""
    suite.write("hog.cu", WIDE)
    suite.write("test_hog.py", LAUNCHED)
    suite.write("test_suite.py", "")
    assert suite.run("--update-baselines", "test_hog.py").ret == 0
    suite.edit("test_hog.py", "    gpuperf(", "    pytest.skip('no GPU of this size')\n    gpuperf(")
    assert suite.run("--gpuperf", "test_hog.py").ret == 0
    return suite


def test_occupancy_is_gated_under_the_launch_on_record_where_a_test_skips_before_its_own(skips_before_its_launch):
    suite = skips_before_its_launch
    suite.edit("test_hog.py", "VALUES=8", "VALUES=128")
    result = suite.run("--gpuperf", "test_hog.py")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["hog  WORSE  on *", "*occupancy 100 -> *"])


def test_an_update_keeps_the_launch_on_record_of_what_it_did_not_launch(skips_before_its_launch):
    suite = skips_before_its_launch
    suite.edit("test_hog.py", "VALUES=8", "VALUES=128")
    assert suite.run("--update-baselines", "test_hog.py").ret == 0
    suite.edit("test_hog.py", "    pytest.skip('no GPU of this size')\n", "")
    result = suite.run("--gpuperf", "test_hog.py")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*hog *UNCHANGED"])


def test_a_regression_is_shown_beside_a_failure_of_the_tests_own(hog_suite):
    hog_suite.write("test_hog.py", SKIPPED_TEST.replace("END", "pytest.fail('not so')"))
    hog_suite.edit("test_hog.py", *RED)
    result = hog_suite.run("--gpuperf", "test_hog.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Failed: not so", "hog  WORSE  on *"])


TEST_CASE = """
import unittest
import pytest

class TestHog(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def tools(self, cuda_kernel, gpuperf, gpu):
        self.cuda_kernel, self.gpuperf, self.gpu = cuda_kernel, gpuperf, gpu

    def test_hog(self):
        kernel = self.cuda_kernel("hog.cu", "hog", options=[])
        launch = kernel.launch(grid=1, block=32, args=(self.gpu.random(4096, seed=1), self.gpu.empty(32)))
        END
"""


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        ("self.skipTest('too small')", "skipped"),
        ("raise unittest.SkipTest('too small')", "skipped"),
        ("self.gpuperf(launch).time_ns", "static"),  # only: parseoutcomes() takes the word behind a number
        ("self.fail('not so')", "failed"),
    ],
)
def test_a_test_case_is_judged_however_it_ends(hog_suite, end, outcome):
    """unittest's runner keeps to itself what a test raised."""
    hog_suite.write("test_hog.py", TEST_CASE.replace("END", "self.gpuperf(launch)"))
    hog_suite.run("--update-baselines=new", "test_hog.py")
    hog_suite.write("test_hog.py", TEST_CASE.replace("END", end))
    green = hog_suite.run("--gpuperf", "test_hog.py")
    assert set(green.parseoutcomes()) == {outcome}
    hog_suite.edit("test_hog.py", *RED)
    red = hog_suite.run("--gpuperf", "test_hog.py")
    red.assert_outcomes(failed=1)
    red.stdout.fnmatch_lines(["*hog  WORSE  on *"])
    if outcome == "failed":
        red.stdout.fnmatch_lines(["*AssertionError: not so"])


def test_a_regression_is_not_hidden_by_the_skip_of_unittest(hog_suite):
    hog_suite.write("test_hog.py", SKIPPED_TEST.replace("END", "import unittest; raise unittest.SkipTest('too small')"))
    hog_suite.run("--gpuperf", "test_hog.py").assert_outcomes(skipped=1)
    hog_suite.edit("test_hog.py", *RED)
    hog_suite.run("--gpuperf", "test_hog.py").assert_outcomes(failed=1)


FIXTURE_TEST = """
import pytest

@pytest.fixture
def total(cuda_kernel, gpu):
    cuda_kernel("hog.cu", "hog", options=[])
    return gpu.random(4096, seed=1).sum()

def test_hog(total): pass
"""


def test_a_regression_that_a_fixture_ends_in_is_told_once_and_without_the_stop_before_it(hog_suite):
    hog_suite.write("test_hog.py", FIXTURE_TEST)
    hog_suite.edit("test_hog.py", *RED)
    result = hog_suite.run("--gpuperf", "test_hog.py")
    result.assert_outcomes(errors=1)
    text = result.stdout.str()
    assert "During handling" not in text
    assert text.count("spill stores 0 -> ") == len(re.findall(r"^hog  WORSE  on ", text, re.MULTILINE)) > 0
    assert SUMMARY_WORDS not in text


SKIPPING_FIXTURE = """
import unittest
import pytest


@pytest.fixture(scope="SCOPE")
def kernel(cuda_kernel):
    cuda_kernel("hog.cu", "hog", options=[])
    END


def test_skips(kernel): pass
"""


@pytest.mark.parametrize("scope", ["function", "module"])
@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        ("pytest.skip('too small')", "skipped"),
        ("raise unittest.SkipTest('too small')", "skipped"),
    ],
)
def test_a_regression_is_not_hidden_by_a_fixture_that_skips(hog_suite, monkeypatch, scope, end, outcome):
    hog_suite.write("test_skips.py", SKIPPING_FIXTURE.replace("SCOPE", scope).replace("END", ""))
    hog_suite.run("--update-baselines=new", "test_skips.py")
    hog_suite.edit("test_skips.py", "options=[])\n", f"options=[])\n    {end}\n")
    monkeypatch.setenv("CI", "true")
    green = hog_suite.run("--gpuperf", "test_skips.py")
    assert (green.ret, green.parseoutcomes()) == (0, {outcome: 1})
    green.stdout.fnmatch_lines(["*hog *UNCHANGED"])
    hog_suite.edit("test_skips.py", *RED)
    red = hog_suite.run("--gpuperf", "test_skips.py")
    assert red.ret == 1
    red.stdout.fnmatch_lines(["*hog*WORSE  on *"])


def test_a_test_that_skips_before_any_kernel_is_left_alone(hog_suite):
    skips = SKIPPING_FIXTURE.replace("SCOPE", "function").replace("    cuda_kernel(", "    END\n    cuda_kernel(", 1)
    hog_suite.write("test_skips.py", skips.replace("END", "pytest.skip('too small')"))
    result = hog_suite.run("--gpuperf", "test_skips.py", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * test_skips.py:*: too small"])


SEVERAL_TEST = """
def test_hog(cuda_kernel):
    cuda_kernel("hog.cu", "hog", options=[])
    cuda_kernel("hog.cu", "hog", options=["-DOTHER", "-maxrregcount=64"])
"""


def test_of_several_kernels_of_one_name_each_is_gated(hog_suite):
    hog_suite.write("test_hog.py", SEVERAL_TEST)
    hog_suite.run("--update-baselines", "test_hog.py")
    green = hog_suite.run("--gpuperf", "test_hog.py")
    green.assert_outcomes(passed=1)
    green.stdout.re_match_lines([r"  hog .* UNCHANGED", r"  hog \[-DOTHER -maxrregcount=64\] +64 .* UNCHANGED"])
    hog_suite.edit("test_hog.py", *RED)
    result = hog_suite.run("--gpuperf", "test_hog.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["hog [[]-maxrregcount=32]  WORSE  on *"])
    assert "hog [-DOTHER -maxrregcount=64]  WORSE" not in result.stdout.str()


def test_a_second_kernel_of_a_name_is_new_and_not_compared_with_the_first(hog_suite):
    hog_suite.write("test_hog.py", "def test_hog(cuda_kernel):\n    cuda_kernel('hog.cu', 'hog', options=[])\n")
    hog_suite.run("--update-baselines", "test_hog.py")
    hog_suite.edit(
        "test_hog.py", "    cuda", "    cuda_kernel('hog.cu', 'hog', options=['-maxrregcount=32'])\n    cuda"
    )
    result = hog_suite.run("--gpuperf", "test_hog.py")
    assert result.ret == 0
    result.stdout.re_match_lines([r"  hog \[-maxrregcount=32\] .* NEW", r"  hog .* UNCHANGED"])


CALLABLE_OF_THE_NAME = """
def test_hog(cuda_kernel, gpu, gpuperf):
    launch = cuda_kernel("hog.cu", "hog", options=[]).launch(1, 32, (gpu.random(4096, seed=1), gpu.empty(32)))
    def hog():
        launch()
    gpuperf(hog)
"""


def test_a_kernel_is_gated_beside_a_callable_of_its_name(hog_suite):
    hog_suite.write("test_hog.py", CALLABLE_OF_THE_NAME)
    hog_suite.run("--update-baselines", "test_hog.py")
    hog_suite.edit("test_hog.py", *RED)
    result = hog_suite.run("--gpuperf", "test_hog.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["hog [[]kernel]  WORSE  on *"])


BESIDE_A_MEASURED_ONE = """
def test_hog(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("hog.cu", "hog", options=["-DMEASURED", "-maxrregcount=64"])
    BEFORE
    gpuperf(kernel.launch(1, 32, (gpu.random(4096, seed=1), gpu.empty(32))), NAME)
    AFTER
"""
ANOTHER = 'cuda_kernel("hog.cu", "hog", options=[])'


@pytest.mark.parametrize("name", ["", "name='mine'"], ids=["its own name", "another name"])
@pytest.mark.parametrize(("before", "after"), [(ANOTHER, "pass"), ("pass", ANOTHER)], ids=["before", "after"])
def test_a_kernel_of_a_measured_one_s_name_is_gated_beside_it(hog_suite, before, after, name):
    text = BESIDE_A_MEASURED_ONE.replace("BEFORE", before).replace("AFTER", after).replace("NAME", name)
    hog_suite.write("test_hog.py", text)
    assert hog_suite.run("--update-baselines", "test_hog.py").ret == 0
    green = hog_suite.run("--gpuperf", "test_hog.py")
    assert green.ret == 0
    label = r"" if name else r" \[kernel\]"
    green.stdout.re_match_lines([rf"  hog{label} .* UNCHANGED"])
    hog_suite.edit("test_hog.py", *RED)
    result = hog_suite.run("--gpuperf", "test_hog.py")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["hog [[]-maxrregcount=32]  WORSE  on *"])


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


OTHER_HEADERS = """
TEXT = '#include "size.h"\\nextern "C" __global__ void twice(float* y) { y[threadIdx.x] *= SIZE; }'

def test_twice(cuda_kernel):
    cuda_kernel(TEXT, "twice", headers=["small"])
    cuda_kernel(TEXT, "twice", headers=["large"])
"""


def test_kernels_of_one_name_are_told_apart_by_their_headers(suite):
    for size, folder in enumerate(("small", "large"), start=2):
        (suite.path / folder).mkdir()
        (suite.path / folder / "size.h").write_text(f"#define SIZE {size}.0f\n")
    suite.write("test_hog.py", OTHER_HEADERS)
    result = suite.run("--gpuperf", "test_hog.py")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  twice \[headers=small\] .* NEW", r"  twice \[headers=large\] .* NEW"])


def test_kernels_of_one_name_are_told_apart_by_their_files(hog_suite):
    (hog_suite.path / "other.cu").write_text((hog_suite.path / "hog.cu").read_text().replace("0.25f", "0.125f"))
    other = SEVERAL_TEST.replace('"hog.cu", "hog", options=["-DOTHER", "-maxrregcount=64"]', '"other.cu", "hog"')
    hog_suite.write("test_hog.py", other)
    result = hog_suite.run("--gpuperf", "test_hog.py")
    assert result.ret == 0
    result.stdout.re_match_lines([r"  hog \[other.cu\] .* NEW", r"  hog \[hog.cu\] .* UNCHANGED"])


def test_a_measured_kernel_that_is_compiled_again_is_told_once(hog_suite):
    text = BESIDE_A_MEASURED_ONE.replace("BEFORE", "pass").replace("NAME", "")
    again = 'cuda_kernel("hog.cu", "hog", options=["-DMEASURED", "-maxrregcount=64"])'
    hog_suite.write("test_hog.py", text.replace("AFTER", again))
    assert hog_suite.run("--update-baselines", "test_hog.py").ret == 0
    green = hog_suite.run("--gpuperf", "test_hog.py")
    assert green.ret == 0
    assert "hog (" not in green.stdout.str()


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

"""Whatever a user gets wrong is told in a few words: what, where, and what to do.  No trip through the plugin."""

from __future__ import annotations

import re

from suite_under_test import LAUNCHING, MEASURING, Suite, assert_refused, run_bodies

KERNELS = {
    'cuda_kernel("broken.cu", "broken")': 'broken.cu:3: identifier "undefined_name" is undefined',
    'cuda_kernel("wrok.cu", "work")': "no such file; there are: work.cu, broken.cu. Paths are relative to",
    'cuda_kernel("kernel/no.cu", "work")': "holds no .cu file. ",
    'cuda_kernel("work.cu", "work", headers=["inc"])': "inc: no such folder or file, named by headers=",
    'cuda_kernel("binary.cu", "x")': "position 0: invalid start byte; save it as UTF-8",
    'cuda_kernel("a\\0.cu", "k")': "cannot be read: embedded null byte",
    'cuda_kernel("other.cu", "othr")': "other",
    'cuda_kernel("other.cu", "other", options=["--no-such-option"])': "--no-such-option",
    'cuda_kernel("other.cu", "other", options="-DX")': "it takes a list: options=['-DX']",
    'cuda_kernel("other.cu", "other", headers="include")': "headers='include' is not valid: it takes a list",
    'cuda_kernel("other.cu", None)': "BadArgument: cuda_kernel: name=None is not valid: it takes a string",
    'cuda_kernel(7, "other")': "cuda_kernel: path_or_source=7 is not valid: it takes a string or a path",
    'cuda_kernel("other.cu", "other", options={"-DX"})': "options={'-DX'} is not valid: it takes a list",
    'cuda_kernel("other.cu", "other", headers=[3])': "headers[0]=3 is not valid: it takes a string or a path",
    'cuda_kernel("other.cu", "other", name_expression=3)': "name_expression=3 is not valid: it takes a string",
    'cuda_kernel("other.cu", "other", arch=90)': "arch=90 is not valid: it takes a list",
    'cuda_kernel("other.cu", "other", arch=[None])': "arch[0]=None is not valid: it takes a string",
    'cuda_kernel("other.cu", "other", arch=[])': "arch=() names no architecture",
    'cuda_kernel("other.cu", "other", compiler="clang")': "compiler='clang' is none of nvrtc, nvcc",
    "gpuperf(3)": "gpuperf measures a launch or a callable, not int",
    "for _ in range(2): gpuperf(lambda: None, name='x')": "the workload name 'x' is used twice",
}


def test_kernel_that_cannot_be_had_says_why(suite):
    suite.write("broken.cu", 'extern "C" __global__ void broken(float* a)\n{\n    a[0] = undefined_name;\n}\n')
    (suite.path / "binary.cu").write_bytes(b"\xff\xfe\x00")
    assert_refused(suite, KERNELS)


LAUNCHES = {
    "kernel.launch(grid=1, block=32, args=(a, a))": "3 arguments",
    "kernel.launch(grid=1, block=32, args=(a, a, a))": "argument 3",
    "kernel.launch(grid=1, block=32, args=(a, a, (1, 2)))": "or a (structured) NumPy scalar",
    "kernel.launch(grid=0, block=32, args=(a, a, 1))": "grid",
    "typed = cuda_kernel('typed.cu', 'typed')\ntyped.launch(grid=1, block=1, args=(gpu.zeros(4, 'float64'), 1))":
        "float64",
}  # fmt: skip


def test_launch_that_does_not_fit_says_which_part(suite):
    suite.write("typed.cu", "__global__ void typed(float* a, int n) { a[0] = n; }")
    assert_refused(suite, LAUNCHES, before=LAUNCHING)


ARGUMENTS = {
    "bytes='many'": "bytes='many' is not valid: it takes a whole number above 0",
    "bytes=-5": "bytes=-5 is not valid",
    "bytes=np.bool_(True)": "is not valid: it takes a whole number above 0",
    "flops=float('nan')": "flops=nan is not valid",
    "flops=0": "flops=0 is not valid",
    "flops=1e300": "gpuperf: flops=1e+300 is not valid: it takes a whole number above 0 and below 2**63",
    "bytes=4096.5": "gpuperf: bytes=4096.5 is not valid: it takes a whole number above 0",
    "bytes=10**400": "is not valid: it takes a whole number above 0 and below 2**63",
    "name=5": "name=5 is not valid: it takes text of one line, printable",
    r"name='two\nlines'": r"name='two\nlines' is not valid",
    r"name='\ud800'": r"name='\ud800' is not valid",
    "check=True": "check=True is not valid: it takes a function, which gpuperf calls: check=lambda: ...",
    "check=lambda result: None": "check takes result: it may take result with inputs= or outputs=, inputs and seed",
    "check=lambda x: None": "check takes x: it may take result with inputs= or outputs=, inputs and seed with",
    "reset=a": "is not valid: it takes a function, which gpuperf calls: reset=lambda: ...",
    "tolerance='0.01'": "tolerance='0.01' is not valid: it takes 'tight', 'standard', 'loose', or a fraction up to 0.5",
    "tolerance=np.array([0.1, 0.2])": "tolerance=array([0.1, 0.2]) is not valid: it takes 'tight',",
    "min_delta_us=-1": "min_delta_us=-1 is not valid: it takes microseconds, up to 1000000",
    "cache=np.array(['cold', 'warm'])": "is not valid: it takes 'cold' or 'warm'",
    "cache='hot'": "cache='hot' is not valid: it takes 'cold' or 'warm'",
    "measure={'memory': np.array([0.1, 0.2])}": "measure={'memory': array([0.1, 0.2])} is not valid: it takes",
    "measure='memory'": "measure='memory' is not valid: it takes names",
    "accuracy=3": "accuracy=3 is not valid",
    "measure=('momory',)": "measure=('momory',) is not valid: it takes names, of 'memory'",
    "metrics=5": "metrics=5 is not valid: it takes names of metrics, such as",
    "metrics='dram__bytes.sum'": "metrics='dram__bytes.sum' is not valid: it takes names of metrics",
    "metrics={'a__b.sum': 'much'}": "metrics={'a__b.sum': 'much'} is not valid",
    "metrics={'a__b.sum': -2}": "is not valid",
    "metrics=[3]": "is not valid",
}
FIGURES = {
    "gpuperf(lambda: {}['absent'], name='absent')": "KeyError: 'absent'",
    "gpuperf(launch).bandwidth": "other has no bandwidth: call gpuperf(..., bytes=n)",
    "gpuperf(launch).flops": "other has no flops: call gpuperf(..., flops=n)",
    "gpuperf(launch).speedup": "other has no speedup: call gpuperf.compare(..., reference=...)",
    "gpuperf(launch).memory_bytes": "has no memory_bytes: call gpuperf(..., measure=('memory',))",
    "gpuperf(launch, name='x')\ngpuperf(lambda: launch(), name='call').registers":
        "call is a callable without a kernel of its own: it has no static evidence",
    "assert gpuperf(launch).time_ns < 1": " ns>.time_ns",
}  # fmt: skip


def test_what_gpuperf_does_not_take_is_named_with_what_it_does(gpu_suite):
    given = {f"gpuperf(launch, {argument})": words for argument, words in ARGUMENTS.items()}
    assert_refused(gpu_suite, given, before=MEASURING)


def test_figure_without_its_declaration_says_what_to_declare(gpu_suite):
    assert_refused(gpu_suite, FIGURES, "--gpuperf", before=MEASURING)


TAKEN = (
    "gpuperf(launch, bytes=2e9, flops=np.int64(2_000_000_000))",
    "assert abs(gpuperf(launch, bytes=np.int64(4096)).bandwidth * gpuperf(launch, name='x').time_ns - 4096e9) < 4096e8",
    "gpuperf(launch, flops=np.prod((512, 2)), tolerance=np.float64(0.02), metrics={'a__b.sum': np.float64(0.02)})",
    "gpuperf(kernel.launch(grid=2, block=256, args=(a, a, 512), shared_bytes=np.int64(1024)))",
    "gpuperf(launch, name=np.str_('doubling'))",
    "gpuperf(cuda_kernel('other.cu', np.str_('other'), name_expression=np.str_('other')).launch(2, 256, (a, a, 512)))",
    "gpuperf(cuda_kernel('other.cu', 'other', arch=np.array(['sm_90'])).launch(2, 256, (a, a, 512)))",
)


def test_numbers_and_text_of_another_library_are_taken_and_recorded(gpu_suite):
    result = run_bodies(gpu_suite, TAKEN, "--update-baselines", "--gpuperf-disturbed", before=MEASURING)
    result.assert_outcomes(passed=len(TAKEN))
    result.stdout.fnmatch_lines(["16 baselines written"])


def test_byte_order_mark_before_a_source_is_no_part_of_it(suite):
    (suite.path / "marked.cu").write_bytes(b"\xef\xbb\xbf" + (suite.path / "work.cu").read_bytes())
    suite.write(
        "test_it.py",
        'def test_it(cuda_kernel):\n    assert cuda_kernel("marked.cu", "work", options=["-DSTEPS=3"]).registers > 0\n',
    )
    suite.run("--gpuperf-arch=sm_90", "test_it.py").assert_outcomes(passed=1)


OWN_GPU = """
import pytest

@pytest.fixture
def gpu():
    return "mine"

def test_theirs(cuda_kernel, gpu):
    cuda_kernel("other.cu", "other").launch(1, 32, (gpu.zeros(32),))

def test_ours(gpu, gpuperf):
    assert gpuperf.gpu.zeros(32).shape == (32,)
"""


def test_fixture_gpu_of_the_project_is_told_from_ours(gpu_suite):
    gpu_suite.write("test_it.py", OWN_GPU)
    result = gpu_suite.run("test_it.py")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*'zeros': gpu is this project's own fixture; that of pytest-gpuperf is gpuperf.gpu"])


BROKEN_BASELINES = {
    "truncated": (lambda text: text[: len(text) // 2], "baselines/sm_90/test_suite.jsonl"),
    "no JSON": (lambda text: "hello", "baselines/sm_90/test_suite.jsonl"),
    "other types": (lambda text: text.replace('"registers":10', '"registers":"ten"'), "test_suite.jsonl"),
    "newer version": (lambda text: re.sub('"schema":[0-9]+', '"schema":99', text), "upgrade pytest-gpuperf"),
}


def test_baseline_that_cannot_be_read_names_file_and_remedy_and_is_kept(suite):
    suite.run("--update-baselines", "--gpuperf-arch=sm_90", "-k", "other")
    path = suite.path / "baselines/sm_90/test_suite.jsonl"
    whole = path.read_text()
    for broken, words in BROKEN_BASELINES.values():
        path.write_text(broken(whole))
        assert path.read_text() != whole
        result = suite.run("--gpuperf", "-k", "other")
        text = result.stdout.str()
        assert result.ret == 1
        assert words in text
        assert "pytest_gpuperf/" not in text
        assert suite.run("--update-baselines", "-k", "other").ret not in (0, 3)
        assert path.read_text() == broken(whole)
    suite.edit("test_suite.py", '"other")\n    a =', '"other")\n    assert kernel.name == "another"\n    a =')
    text = suite.run("--gpuperf", "-k", "other").stdout.str()
    assert "AssertionError: assert 'other' == 'another'" in text, "it hides nothing of why a test failed"
    assert "INTERNALERROR" not in text


# --- hostile words -------------------------------------------------------------------------------

HOSTILE = """
import pytest

SOURCE = '#error spoofed \\x1b[2J \\u202e ##vso[task.complete]x\\n__global__ void k() {}'

def test_source(cuda_kernel):
    cuda_kernel(SOURCE, name="k")

@pytest.fixture
def kernel(cuda_kernel):
    return cuda_kernel(SOURCE, name="k")

@pytest.fixture
def label(cuda_kernel):
    cuda_kernel("extern \\"C\\" __global__ void k() {}", name="\\n::error::spoofed \\x1b[2J")

def test_kernel(kernel): ...

def test_label(label): ...
"""


def test_no_line_of_a_run_is_a_command_to_the_ci_job(suite: Suite) -> None:
    """What a test, a kernel's source or a compiler says is text in the log of a run."""
    suite.write("test_hostile.py", HOSTILE)
    result = suite.run("--gpuperf", "--junitxml=junit.xml", "--tb=short", "test_hostile.py")
    result.assert_outcomes(errors=2, failed=1)
    shown = re.sub("^SOURCE = .*", "", result.stdout.str(), flags=re.MULTILINE)
    assert shown.count("#error spoofed \\x1b[2J") >= 2
    assert "\\x3a:error::spoofed" in shown
    assert not re.search(r"^\s*::[A-Za-z]|##\w*\[", shown, re.MULTILINE)
    assert not re.search("[\x1b\u202e]", shown)
    assert not re.search("[\x1b\u202e]|^\\s*::error", (suite.path / "junit.xml").read_text(), re.MULTILINE)

"""Whatever a user gets wrong is told in a few words: what, where, and what to do.  No trip through the plugin."""

from __future__ import annotations

import pytest

from pytest_gpuperf.compile.compile_errors import ToolchainMissing


def run_body(suite, body, *arguments, fixtures="cuda_kernel, gpu, gpuperf"):
    """Run one test with this body and return what it printed."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    suite.write("test_body.py", f"import numpy as np\n\ndef test_body({fixtures}):\n{lines}\n")
    result = suite.run("test_body.py", *arguments)
    text = result.stdout.str()
    assert result.ret == 1, text
    assert "pytest_gpuperf/" not in text, "the traceback must end in the test"
    return text


def test_a_compile_error_has_file_line_and_the_compilers_words(suite):
    suite.write("broken.cu", 'extern "C" __global__ void broken(float* a)\n{\n    a[0] = undefined_name;\n}\n')
    text = run_body(suite, 'cuda_kernel("broken.cu", "broken")')
    assert "broken.cu:3: " in text
    assert 'identifier "undefined_name" is undefined' in text


def test_a_missing_source_names_those_there_are(suite):
    text = run_body(suite, 'cuda_kernel("wrok.cu", "work")')
    assert "wrok.cu: no such file; there are: work.cu" in text
    assert "Paths are relative to the test file." in text


def test_a_source_that_is_no_text_says_so(suite):
    (suite.path / "binary.cu").write_bytes(b"\xff\xfe\x00")
    text = run_body(suite, 'cuda_kernel("binary.cu", "x")')
    assert "binary.cu: cannot be read" in text
    assert "Save it as UTF-8" in text


@pytest.mark.parametrize("call", ['cuda_kernel("a\\0.cu", "k")', 'cuda_kernel.from_cubin("a\\0.cubin", "k")'])
def test_a_path_that_no_file_can_have_says_so(suite, call):
    assert "cannot be read: embedded null byte" in run_body(suite, call)


def test_a_byte_order_mark_before_a_source_is_no_part_of_it(suite):
    (suite.path / "marked.cu").write_bytes(b"\xef\xbb\xbf" + (suite.path / "work.cu").read_bytes())
    suite.write(
        "test_it.py",
        'def test_it(cuda_kernel):\n    assert cuda_kernel("marked.cu", "work", options=["-DSTEPS=3"]).registers > 0\n',
    )
    suite.run("--gpuperf-arch=sm_90", "test_it.py").assert_outcomes(passed=1)


def test_an_unknown_kernel_lists_those_there_are(suite):
    text = run_body(suite, 'cuda_kernel("other.cu", "othr")')
    assert "othr" in text
    assert "other" in text.replace("othr", "")


@pytest.mark.parametrize(
    "text",
    [
        "def later():\n    yield",
        "async def later(): ...",
        "async def later():\n    yield",
        "class Later:\n    def __call__(self):\n        yield\nlater = Later()",
    ],
)
@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("later", "the workload"),
        ("print, check=later", "check="),
        ("print, reset=later", "reset="),
        ("print, accuracy=later", "accuracy="),
    ],
)
def test_a_function_whose_body_a_call_does_not_run_is_refused(suite, text, call, what):
    said = run_body(suite, f"{text}\ngpuperf({call})", fixtures="gpuperf")
    assert f"gpuperf: {what} is called, and nothing in it would run: it has a yield, or is async. Give a plain" in said


def test_options_given_as_one_string_are_refused(suite):
    text = run_body(suite, 'cuda_kernel("other.cu", "other", options="-DX")')
    assert "it takes a list: options=['-DX']" in text


@pytest.mark.parametrize("headers", ["'include'", "__import__('pathlib').Path('include')"])
def test_a_single_folder_of_headers_is_refused(suite, headers):
    text = run_body(suite, f'cuda_kernel("other.cu", "other", headers={headers})')
    assert "headers='include' is not valid: it takes a list: headers=['include']" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('"other.cu", None', "name=None is not valid: it takes a string"),
        ('"other.cu", b"other"', "name=b'other' is not valid: it takes a string"),
        ('7, "other"', "path_or_source=7 is not valid: it takes a string or a path"),
        ('"other.cu", "other", options=None', "options=None is not valid: it takes a list"),
        (
            '"other.cu", "other", options={"-DX": 1}',
            "options={'-DX': 1} is not valid: it takes a list",
        ),
        ('"other.cu", "other", options={"-DX"}', "options={'-DX'} is not valid: it takes a list"),
        ('"other.cu", "other", arch=frozenset(["sm_90"])', "arch=frozenset({'sm_90'}) is not valid: it takes"),
        (
            '"other.cu", "other", headers=[3]',
            "headers[0]=3 is not valid: it takes a string or a path",
        ),
        ('"other.cu", "other", name_expression=3', "name_expression=3 is not valid: it takes a string"),
        ('"other.cu", "other", arch=90', "arch=90 is not valid: it takes a list"),
        ('"other.cu", "other", arch=[None]', "arch[0]=None is not valid: it takes a string"),
    ],
)
def test_an_argument_of_another_kind_is_refused_with_what_it_takes(suite, arguments, words):
    assert f"BadArgument: cuda_kernel: {words}" in run_body(suite, f"cuda_kernel({arguments})")


def test_no_architecture_at_all_is_refused(suite):
    assert "arch=() names no architecture" in run_body(suite, 'cuda_kernel("other.cu", "other", arch=[])')


def test_an_unknown_compiler_option_is_named(suite):
    text = run_body(suite, 'cuda_kernel("other.cu", "other", options=["--no-such-option"])')
    assert "--no-such-option" in text


LAUNCH = """
kernel = cuda_kernel("other.cu", "other")
a = gpu.random(512, seed=1)
kernel.launch({})
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("grid=1, block=32, args=(a, a)", "3 arguments"),
        ("grid=1, block=32, args=(a, a, a)", "argument 3"),
        ("grid=1, block=32, args=(a, a, np.float64(1))", "argument 3"),
        ("grid=1, block=32, args=(a, a, 'x')", "argument 3"),
        ("grid=0, block=32, args=(a, a, 1)", "grid"),
        ("grid=(1, 70000), block=32, args=(a, a, 1)", "65535"),
        ("grid=1, block=2048, args=(a, a, 1)", "1024"),
        ("grid=1, block=32, args=(a, a, 1), shared_bytes=1 << 20", "shared memory"),
    ],
)
def test_a_launch_that_does_not_fit_says_which_part(suite, arguments, words):
    assert words in run_body(suite, LAUNCH.format(arguments))


def test_arrays_of_the_wrong_type_are_found_where_the_kernel_tells_its_types(suite):
    suite.write("typed.cu", "__global__ void typed(float* a, int n) { a[0] = n; }")
    text = run_body(suite, "kernel = cuda_kernel('typed.cu', 'typed')\n"
                           "kernel.launch(grid=1, block=1, args=(gpu.zeros(4, 'float64'), 1))")  # fmt: skip
    assert "float64" in text
    assert "float*" in text


def test_what_is_no_workload_is_refused(suite):
    assert "gpuperf measures a launch or a callable, not int" in run_body(suite, "gpuperf(3)")


MEASURE = """
kernel = cuda_kernel("other.cu", "other")
a = gpu.random(512, seed=1)
launch = kernel.launch(grid=2, block=256, args=(a, a, 512))
result = gpuperf(launch, {})
"""


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("bytes='many'", "bytes='many' is not valid: it takes a whole number above 0"),
        ("bytes=-5", "bytes=-5 is not valid"),
        ("bytes=True", "bytes=True is not valid"),
        ("bytes=np.bool_(True)", "is not valid: it takes a whole number above 0"),
        ("cache=np.array(['cold', 'warm'])", "is not valid: it takes 'cold' or 'warm'"),
        ("flops=float('nan')", "flops=nan is not valid"),
        ("flops=0", "flops=0 is not valid"),
        ("name=5", "name=5 is not valid: it takes text of one line, printable"),
        ("name=''", "name='' is not valid"),
        (r"name='two\nlines'", r"name='two\nlines' is not valid"),
        (r"name='\ud800'", r"name='\ud800' is not valid"),
        ("check=True", "check=True is not valid: it takes a function, which gpuperf calls: check=lambda: ..."),
        (
            "check=lambda result: None",
            "check takes result: it may take result with inputs= or outputs=, inputs and seed",
        ),
        ("check=lambda x: None", "check takes x: it may take result with inputs= or outputs=, inputs and seed with"),
        ("reset=a", "is not valid: it takes a function, which gpuperf calls: reset=lambda: ..."),
        ("tolerance='0.01'", "tolerance='0.01' is not valid: it takes a fraction up to 0.5"),
        ("tolerance=np.array([0.1, 0.2])", "tolerance=array([0.1, 0.2]) is not valid: it takes a fraction up to 0.5"),
        (
            "measure={'memory': np.array([0.1, 0.2])}",
            "measure={'memory': array([0.1, 0.2])} is not valid: it takes",
        ),
        ("cache='hot'", "cache='hot' is not valid: it takes 'cold' or 'warm'"),
        ("metrics=5", "metrics=5 is not valid: it takes names of metrics, such as"),
        ("metrics='dram__bytes.sum'", "metrics='dram__bytes.sum' is not valid: it takes names of metrics"),
    ],
)
def test_what_gpuperf_does_not_take_is_named_with_what_it_does(gpu_suite, argument, words):
    assert words in run_body(gpu_suite, MEASURE.format(argument), "--gpuperf")


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        ("bandwidth", "other has no bandwidth: ask for it, gpuperf(..., bytes=n)"),
        ("flops", "other has no flops: ask for it, gpuperf(..., flops=n)"),
    ],
)
def test_a_figure_without_its_declaration_says_what_to_declare(gpu_suite, figure, words):
    assert words in run_body(gpu_suite, f"{MEASURE.format('')}\nresult.{figure}", "--gpuperf")


def test_static_figures_of_a_callable_are_refused(gpu_suite):
    text = run_body(gpu_suite, f"{MEASURE.format('')}\ngpuperf(launch, name='x')\n"
                               "gpuperf(lambda: launch(), name='call').registers", "--gpuperf")  # fmt: skip
    assert "call is a callable without a kernel of its own: it has no static evidence" in text


def test_an_assertion_on_a_figure_shows_what_was_measured(gpu_suite):
    text = run_body(gpu_suite, f"{MEASURE.format('')}\nassert result.time_ns < 1", "--gpuperf")
    assert " ns>.time_ns" in text
    assert "<other: 2" in text


@pytest.mark.parametrize("amount", ["2e9", "np.int64(2_000_000_000)", "2_000_000_000.0"])
def test_amounts_are_numbers_of_any_kind(gpu_suite, amount):
    gpu_suite.edit("test_suite.py", "bytes=2 * a.nbytes", f"bytes={amount}, flops={amount}")
    gpu_suite.edit("test_suite.py", "import pytest", "import numpy as np\nimport pytest")
    gpu_suite.run("--gpuperf", "-k", "1024").assert_outcomes(passed=1)


def test_no_compiler_names_the_remedy(suite, monkeypatch):
    def missing(*_, **__):
        raise ToolchainMissing('NVRTC is missing: pip install "pytest-gpuperf[static]"')

    monkeypatch.setattr("pytest_gpuperf.compile.compiler.compile_for", missing)
    text = run_body(suite, 'cuda_kernel("other.cu", "other")')
    assert 'pip install "pytest-gpuperf[static]"' in text


BROKEN_BASELINES = {
    "truncated": lambda text: text[: len(text) // 2],
    "no JSON": lambda text: "hello",
    "other types": lambda text: text.replace('"registers":10', '"registers":"ten"'),
}


@pytest.mark.parametrize("how", BROKEN_BASELINES)
def test_a_baseline_that_cannot_be_read_names_file_and_remedy_and_is_kept(suite, how):
    suite.run("--update-baselines", "--gpuperf-arch=sm_90", "-k", "other")
    path = suite.path / "baselines/sm_90/test_suite.jsonl"
    path.write_text(BROKEN_BASELINES[how](path.read_text()))
    before = path.read_bytes()
    result = suite.run("--gpuperf", "-k", "other")
    assert result.ret == 1
    text = result.stdout.str()
    assert "baselines/sm_90/test_suite.jsonl" in text
    assert "pytest_gpuperf/" not in text
    again = suite.run("--update-baselines", "-k", "other")
    assert again.ret not in (0, 3)
    assert path.read_bytes() == before


def test_a_baseline_that_cannot_be_read_does_not_hide_why_the_test_failed(suite):
    suite.run("--update-baselines", "--gpuperf-arch=sm_90", "-k", "other")
    path = suite.path / "baselines/sm_90/test_suite.jsonl"
    path.write_text(path.read_text()[:100])
    suite.edit("test_suite.py", '"other")\n    a =', '"other")\n    assert kernel.name == "another"\n    a =')
    text = suite.run("--gpuperf", "-k", "other").stdout.str()
    assert "AssertionError: assert 'other' == 'another'" in text
    assert "INTERNALERROR" not in text


def test_a_baseline_of_a_newer_version_says_what_can_read_it(suite):
    suite.run("--update-baselines", "--gpuperf-arch=sm_90", "-k", "other")
    path = suite.path / "baselines/sm_90/test_suite.jsonl"
    path.write_text(path.read_text().replace('"schema":7', '"schema":99'))
    result = suite.run("--gpuperf", "-k", "other")
    assert result.ret == 1
    assert "99" in result.stdout.str()
    assert "upgrade pytest-gpuperf" in result.stdout.str()


def test_a_baseline_folder_that_is_a_file_is_told_and_loses_nothing(suite):
    (suite.path / "baselines").write_text("in the way")
    result = suite.run("--update-baselines", "--gpuperf-arch=sm_90", "-k", "other")
    assert result.ret != 0
    assert "baselines" in result.stdout.str()
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert (suite.path / "baselines").read_text() == "in the way"

"""Numbers and names that a test hands over as NumPy's, or as something else that looks right."""

from __future__ import annotations

import pytest

BODY = """
import numpy as np

def test_body(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("other.cu", "other")
    a = gpu.random(512, seed=2)
    b = gpu.empty_like(a)
    launch = kernel.launch(grid=2, block=256, args=(a, b, 512){launch})
    result = gpuperf(launch{call})
    {then}
"""


def run_body(suite, *arguments, call="", launch="", then="pass"):
    suite.write("test_body.py", BODY.format(call=call, launch=launch, then=then))
    return suite.run("test_body.py", "--gpuperf", *arguments)


@pytest.mark.parametrize(
    "call",
    [
        ", bytes=np.int64(4096)",
        ", flops=np.prod((512, 2))",
        ", flops=2e9",
        ", tolerance=np.float64(0.02)",
        ", metrics={'dram__bytes.sum': np.float64(0.02)}",
    ],
)
def test_numbers_are_taken_whatever_library_they_come_from(gpu_suite, call):
    result = run_body(gpu_suite, call=call)
    assert result.ret == 0, result.stdout.str()
    result.assert_outcomes(passed=1)


def test_whole_numbers_of_another_library_size_the_shared_memory(gpu_suite):
    assert run_body(gpu_suite, launch=", shared_bytes=np.int64(1024)").ret == 0


def test_a_tolerance_of_numpy_may_stand_in_the_marker(recorded):
    recorded.edit("test_suite.py", "def test_other", "@pytest.mark.gpuperf(tolerance=np.float64(0.02))\ndef test_other")
    recorded.edit("test_suite.py", "import pytest", "import numpy as np\nimport pytest")
    assert recorded.run("--gpuperf", "-k", "other").ret == 0


def test_declared_bytes_of_numpy_make_a_bandwidth(gpu_suite):
    then = "assert abs(result.bandwidth - 4096e9 / result.time_ns) < 1"
    assert run_body(gpu_suite, call=", bytes=np.int64(4096)", then=then).ret == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (", bytes=4096.5", "gpuperf: bytes=4096.5 is not valid: it takes a whole number above 0"),
        (", bytes=-1", "gpuperf: bytes=-1 is not valid: it takes a whole number above 0"),
        (", bytes=10**400", "is not valid: it takes a whole number above 0 and below 2**63"),
        (", flops=1e300", "gpuperf: flops=1e+300 is not valid: it takes a whole number above 0 and below 2**63"),
        (", flops='2e9'", "gpuperf: flops='2e9' is not valid: it takes a whole number above 0"),
        (", flops=float('inf')", "gpuperf: flops=inf is not valid: it takes a whole number above 0"),
        (", name=32", "gpuperf: name=32 is not valid: it takes text of one line"),
        (", tolerance='1 %'", "gpuperf: tolerance='1 %' is not valid: it takes a fraction up to 0.5"),
    ],
)
def test_what_is_no_number_or_name_is_refused_in_the_test(gpu_suite, call, words):
    result = run_body(gpu_suite, call=call)
    assert result.ret == 1
    text = result.stdout.str()
    assert words in text
    assert "pytest_gpuperf/" not in text, "the traceback must end in the test"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gpuperf(launch", "gpuperf(launch, name=np.str_('doubling')"),
        ('"other")', 'np.str_("other"))'),
        ('"other")', '"other", name_expression=np.str_("other"))'),
        ('"other")', '"other", arch=np.str_("sm_90"))'),
        ('"other")', '"other", arch=np.array(["sm_90"]))'),
    ],
)
def test_text_of_numpy_is_recorded_as_text(gpu_suite, old, new):
    gpu_suite.write("test_body.py", BODY.format(launch="", call="", then="pass").replace(old, new))
    result = gpu_suite.run("test_body.py", "--update-baselines", "--gpuperf-disturbed")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["2 baselines written"])

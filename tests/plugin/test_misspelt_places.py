"""Places that ``cuda_kernel`` is given and that are not there."""

from __future__ import annotations

import pytest

TEST = """
def test_header(cuda_kernel):
    cuda_kernel("uses.cu", "uses", headers=[{!r}])
"""
USES = '#include "factor.h"\nextern "C" __global__ void uses(float* a) { a[0] = FACTOR; }\n'


@pytest.fixture
def with_header(suite):
    (suite.path / "include").mkdir()
    suite.write("include/factor.h", "#define FACTOR 2.0f\n")
    suite.write("uses.cu", USES)
    return suite


@pytest.mark.parametrize("place", ["includes", "include/factors.h"])
def test_a_misspelt_place_of_headers_is_named(with_header, place):
    with_header.write("test_header.py", TEST.format(place))
    result = with_header.run("--gpuperf", "test_header.py")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [f"*MissingSource: {with_header.path / place}: headers= names it, and there is no such *"]
    )
    assert "cannot open source file" not in result.stdout.str()


@pytest.mark.parametrize("place", ["include", "include/factor.h"])
def test_a_folder_of_headers_and_a_single_header_are_found(with_header, place):
    with_header.write("test_header.py", TEST.format(place))
    assert with_header.run("--gpuperf", "test_header.py").ret == 0


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("work.cu", "{path}: no such file; the folder {path.parent} holds no .cu file. "),
        ("kernel/none.cu", "{path}: no such file; there is no folder {path.parent}. "),
        ("kernels/wrok.cu", "{path}: no such file; there are: work.cu. "),
        ("kernels", "{path}: it is a folder: name a file in it; there are: work.cu. "),
    ],
)
def test_a_misspelt_place_of_a_kernel_is_told_with_the_place_that_may_be_meant(suite, place, said):
    (suite.path / "below" / "kernels").mkdir(parents=True)
    (suite.path / "work.cu").rename(suite.path / "below" / "kernels" / "work.cu")
    suite.write("below/test_place.py", f"def test_place(cuda_kernel):\n    cuda_kernel({place!r}, 'work')\n")
    result = suite.run("--gpuperf", "below/test_place.py")
    assert result.ret == 1
    words = said.format(path=suite.path / "below" / place)
    assert f"MissingSource: {words}Paths are relative to the test file." in result.stdout.str()

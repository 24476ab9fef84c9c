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

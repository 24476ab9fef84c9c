"""Places that ``cuda_kernel`` is given and that are not there."""

from __future__ import annotations

from suite_under_test import assert_refused, run_bodies

USES = '#include "factor.h"\nextern "C" __global__ void uses(float* a) { a[0] = FACTOR; }\n'
WITH_HEADERS = "cuda_kernel('uses.cu', 'uses', headers=[{!r}])"


def test_places_of_headers_are_found_or_named(suite):
    (suite.path / "include").mkdir()
    suite.write("include/factor.h", "#define FACTOR 2.0f\n")
    suite.write("uses.cu", USES)
    run_bodies(suite, map(WITH_HEADERS.format, ["include", "include/factor.h"])).assert_outcomes(passed=2)
    words = "MissingSource: {}: headers= names it, and there is no such "
    places = ("includes", "include/factors.h")
    assert_refused(suite, {WITH_HEADERS.format(place): words.format(suite.path / place) for place in places})


def test_a_misspelt_place_of_a_kernel_is_told_with_the_files_that_are_there(suite):
    folder = suite.path / "kernels"
    folder.mkdir()
    (suite.path / "work.cu").rename(folder / "work.cu")
    (suite.path / "other.cu").unlink()
    said = {
        "work.cu": f"no such file; the folder {suite.path} holds no .cu file. ",
        "kernel/none.cu": f"no such file; the folder {suite.path / 'kernel'} holds no .cu file. ",
        "kernels/wrok.cu": "no such file; there are: work.cu. ",
    }
    assert_refused(suite, {
        f"cuda_kernel({place!r}, 'work')":
            f"MissingSource: {suite.path / place}: {words}Paths are relative to the test file."
        for place, words in said.items()
    })  # fmt: skip

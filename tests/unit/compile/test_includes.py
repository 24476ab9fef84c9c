"""Which headers a source may read: found by reading it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_gpuperf.compile.includes import Headers, headers_of, scan
from pytest_gpuperf.compile.toolkit import toolkit_folders


def written(folder: Path, **files: str) -> Path:
    """A folder with these headers: ``inner__one="..."`` is ``inner/one.h``."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.h"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def paths(found: Headers) -> set[Path]:
    return {path for _, _, path in found.found}


@pytest.mark.parametrize(
    "line",
    [
        "#include <one.h>",
        '  #  include\t"one.h"  // why',
        '#inc\\\nlude "one.h"',
        '/* of several\n lines */ #include "one.h"',
        "#ifdef X\n# import <one.h>\n#endif",
        "#define MY_HAS_INCLUDE(X) __has_include(X)\n#if MY_HAS_INCLUDE(<one.h>)",
        'const char* s = R"x(/* )" )x";\n#include "one.h"\n/* */',
        '/* not closed\n#include "one.h"',
    ],
)
def test_every_spelling_of_an_include_is_seen(line: str) -> None:
    assert [name for name, _ in scan(line.encode()).names] == ["one.h"]


def test_headers_of_headers_are_found_in_the_first_folder_that_has_them(tmp_path: Path) -> None:
    three = written(tmp_path / "a", one='#include "inner/two.h"', inner__two='#include "three.h"\n#include "one.h"',
                    inner__three="")  # fmt: skip
    found = headers_of(b'#include "one.h"\n', [three, written(tmp_path / "b", one="other")], before=["more.h"])
    assert {name for name, _, _ in found.found} == {"one.h", "inner/two.h", "three.h"}
    assert paths(found) == {three / "one.h", three / "inner/two.h", three / "inner/three.h"}
    assert found.complete
    by_option = headers_of(b"", [three], before=["one.h"])
    assert paths(by_option) == paths(found)
    absolute = headers_of(f'#include "{three}/one.h"'.encode(), [tmp_path / "none"])
    assert three / "one.h" in paths(absolute)


@pytest.mark.skipif(not toolkit_folders(), reason="no CUDA headers here: neither a toolkit nor nvidia-cuda-runtime")
def test_headers_of_the_toolkit_leave_it_complete_and_are_told_from_the_users(tmp_path: Path) -> None:
    folders = [written(tmp_path, mine=""), *toolkit_folders()]
    found = headers_of(b"#include <cooperative_groups.h>\n#include <mine.h>", folders)
    assert found.complete
    assert len(found.found) > 100
    assert [name for name, _ in found.outside(toolkit_folders())] == ["mine.h"]


def test_a_changed_header_changes_the_answer_even_at_the_same_size(tmp_path: Path) -> None:
    before = headers_of(b"#include <one.h>", [written(tmp_path, one="#define A 1")])
    written(tmp_path, one="#define A 2")
    when = (tmp_path / "one.h").stat().st_mtime - 3600
    os.utime(tmp_path / "one.h", (when, when))
    assert headers_of(b"#include <one.h>", [tmp_path]) != before


def test_two_dots_behind_a_linked_folder_lead_to_the_parent_of_what_is_linked(tmp_path: Path) -> None:
    """A header of the same name beside the link is not taken."""
    shared = written(tmp_path / "shared", ops__size='#include "../common.h"', common='#include "ops/size.h"')
    project = written(tmp_path / "project", common="")
    (project / "ops").symlink_to("../shared/ops")
    found = headers_of(b'#include "ops/size.h"', [project])
    assert paths(found) == {project / "ops/size.h", shared / "common.h", shared / "ops/size.h"}


def test_a_relative_folder_is_that_of_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, more__more="")
    monkeypatch.chdir(tmp_path)
    assert paths(headers_of(b'#include "more.h"', [Path("more")])) == {tmp_path / "more/more.h"}

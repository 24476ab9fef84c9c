"""Which headers a source may read: found by reading it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_gpuperf.compile.includes import Headers, headers_of, scan
from pytest_gpuperf.compile.toolkit import toolkit_folders


def names(found: Headers) -> set[str]:
    return {name for name, _, _ in found.found}


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
        '// do not /* comment out\n#include "one.h"\n/* */',
        '/* not closed\n#include "one.h"',
    ],
)
def test_every_spelling_of_an_include_is_seen(line: str) -> None:
    assert [name for name, _ in scan(line.encode()).names] == ["one.h"]


@pytest.mark.skipif(not toolkit_folders(), reason="no CUDA headers here: neither a toolkit nor nvidia-cuda-runtime")
def test_headers_of_the_toolkit_leave_it_complete() -> None:
    found = headers_of(b"#include <cooperative_groups.h>", toolkit_folders())
    assert found.complete
    assert len(found.found) > 100


def test_headers_of_headers_are_found(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "one.h").write_text('#include "inner/two.h"\n')
    (tmp_path / "inner" / "two.h").write_text('#include "three.h"\n#include "one.h"\n')
    (tmp_path / "inner" / "three.h").write_text("")
    found = headers_of(b'#include "one.h"\n', [tmp_path])
    assert names(found) == {"one.h", "inner/two.h", "three.h"}
    assert found.complete


def test_the_first_folder_wins(tmp_path: Path) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "one.h").write_text(folder)
    found = headers_of(b"#include <one.h>", [tmp_path / "first", tmp_path / "second"])
    assert [path for _, _, path in found.found] == [tmp_path / "first" / "one.h"]


def test_a_changed_header_changes_the_answer_even_at_the_same_size(tmp_path: Path) -> None:
    header = tmp_path / "one.h"
    header.write_text("#define A 1")
    before = headers_of(b"#include <one.h>", [tmp_path])
    header.write_text("#define A 2")
    when = header.stat().st_mtime - 3600
    os.utime(header, (when, when))
    assert headers_of(b"#include <one.h>", [tmp_path]) != before


def test_an_absolute_header_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.h").write_text("")
    assert len(headers_of(f'#include "{tmp_path}/one.h"'.encode(), [tmp_path / "none"]).found) == 1


def test_a_header_included_by_an_option_counts(tmp_path: Path) -> None:
    (tmp_path / "one.h").write_text("")
    assert names(headers_of(b"", [tmp_path], before=["one.h"])) == {"one.h"}


def test_headers_of_the_toolkit_are_told_from_the_users(tmp_path: Path) -> None:
    for folder in ("mine", "toolkit"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.h").write_text("")
    found = headers_of(b"#include <mine.h>\n#include <toolkit.h>", [tmp_path / "mine", tmp_path / "toolkit"])
    assert [name for name, _ in found.outside([tmp_path / "toolkit"])] == ["mine.h"]


def linked_project(folder: Path) -> Path:
    """A project with ``ops`` linked to ``../shared/ops``, where a header includes one of ``shared``."""
    (folder / "shared" / "ops").mkdir(parents=True)
    (folder / "shared" / "ops" / "size.h").write_text('#include "../common.h"\n')
    (folder / "shared" / "common.h").write_text('#define N 1\n#include "ops/size.h"\n')
    (folder / "project").mkdir()
    (folder / "project" / "ops").symlink_to("../shared/ops")
    return folder / "project"


def test_two_dots_behind_a_linked_folder_lead_to_the_parent_of_what_is_linked(tmp_path: Path) -> None:
    project = linked_project(tmp_path)
    found = headers_of(b'#include "ops/size.h"', [project])
    assert {path for _, _, path in found.found} == {
        project / "ops" / "size.h", tmp_path / "shared" / "common.h", tmp_path / "shared" / "ops" / "size.h"
    }  # fmt: skip
    (tmp_path / "shared" / "common.h").write_text("#define N 2\n")
    assert headers_of(b'#include "ops/size.h"', [project]) != found


def test_a_header_of_the_same_name_beside_the_link_is_not_taken(tmp_path: Path) -> None:
    project = linked_project(tmp_path)
    (project / "common.h").write_text("")
    paths = {path for _, _, path in headers_of(b'#include "ops/size.h"', [project]).found}
    assert project / "common.h" not in paths
    assert tmp_path / "shared" / "common.h" in paths


def test_a_relative_folder_is_that_of_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("own", "more"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.h").write_text("")
    monkeypatch.chdir(tmp_path)
    found = headers_of(b'#include "own.h"\n#include "more.h"', [tmp_path / "own", Path("more")])
    assert [path for _, _, path in found.found] == [tmp_path / "more/more.h", tmp_path / "own/own.h"]

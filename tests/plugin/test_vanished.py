"""What vanished is no pass: tests that are deleted, skipped or end early, files and targets that are gone."""

from __future__ import annotations

import re
import shutil

import pytest

from pytest_gpuperf.cli.command_line import main

EXIT_VANISHED = 13
ONE = "def test_other(cuda_kernel, gpu, gpuperf):"
OWN_KERNEL = """
def test_plain(cuda_kernel):
    cuda_kernel('extern "C" __global__ void own(int *p) { *p = 7; }', "own")
"""
"""A test of a kernel that is not on record."""
SKIP = "@pytest.mark.skip(reason='flaky')\n"


@pytest.fixture(params=["gpu", "no gpu"])
def under_ci(recorded, request, monkeypatch):
    """The suite with its baselines under CI, on a simulated GPU and on none."""
    monkeypatch.setenv("CI", "true")
    if request.param == "no gpu":
        recorded.write("conftest.py", "")
    return recorded


def without_other(suite):
    """Delete ``test_other``."""
    text = (suite.path / "test_suite.py").read_text()
    suite.write("test_suite.py", text[: text.index(ONE)].removesuffix(SKIP))


def said(result, status, *lines):
    assert result.ret == status, result.stdout.str()
    result.stdout.fnmatch_lines(lines)
    text = result.stdout.str()
    assert text.count("NOT-MEASURED on") + len(re.findall("there are no baselines of .*, NOT-MEASURED", text)) == len(
        lines
    )


def test_a_suite_that_comes_to_all_of_its_records_says_nothing(under_ci):
    said(under_ci.run("--gpuperf"), 0)


def test_a_deleted_test(under_ci):
    without_other(under_ci)
    said(
        under_ci.run("--gpuperf"), EXIT_VANISHED,
        "ERROR: 1 workload on record NOT-MEASURED on sm_90, simulated-gpu: its test is gone: "
        "test_suite.py::test_other. To do: restore the test, or the use of the fixture, or take its records away: *",
    )  # fmt: skip


def test_a_local_run_only_names_it(recorded):
    without_other(recorded)
    said(recorded.run("--gpuperf"), 0, "1 workload on record NOT-MEASURED on *: test_suite.py::test_other. To do: *")
    said(recorded.run("--gpuperf", "--gpuperf-open=fail"), EXIT_VANISHED, "ERROR: 1 workload on record *")


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
@pytest.mark.parametrize("change", ["os.environ['CI'] = 'false'", "os.environ.pop('CI', None)"])
def test_a_conftest_that_changes_the_environment_takes_no_run_out_of_ci(under_ci, change, workers):
    """It may do so for other tools' sake, and is a part of the change under test."""
    text = (under_ci.path / "conftest.py").read_text()
    under_ci.write("conftest.py", f"import os\n{change}\n{text}".replace("from __future__ import annotations\n", ""))
    under_ci.edit("test_suite.py", ONE, ONE.replace("test_other", "test_another"))
    result = under_ci.run("--gpuperf", *workers, subprocess=True)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED test_suite.py::test_another - Failed: doubling  NEW*"])


def test_open_warn_lets_it_pass(under_ci):
    without_other(under_ci)
    said(under_ci.run("--gpuperf", "--gpuperf-open=warn"), 0, "1 workload on record NOT-MEASURED on *")


def test_a_deleted_file(under_ci):
    (under_ci.path / "test_suite.py").unlink()
    under_ci.write("test_new.py", OWN_KERNEL)
    result = under_ci.run("--gpuperf", "--gpuperf-missing=warn")
    said(
        result, EXIT_VANISHED,
        "ERROR: 3 workloads on record NOT-MEASURED on sm_90, simulated-gpu: its test file is gone: test_suite.py "
        f"(rootdir {under_ci.path}). To do: restore the file, *",
    )  # fmt: skip


@pytest.mark.parametrize(
    "skip",
    [
        SKIP,
        "@pytest.mark.skipif(True, reason='flaky')\n",
        "@pytest.fixture\ndef stop():\n    pytest.skip('flaky')\n\n@pytest.mark.usefixtures('stop')\n",
    ],
    ids=["skip", "skipif", "in a fixture"],
)
def test_a_skipped_test(under_ci, skip):
    under_ci.edit("test_suite.py", ONE, f"{skip}{ONE}")
    said(
        under_ci.run("--gpuperf"), EXIT_VANISHED,
        "ERROR: 1 workload on record NOT-MEASURED on sm_90*: its test or its test file was skipped, *: "
        "test_suite.py::test_other (flaky). To do: take the skip away, *",
    )  # fmt: skip


@pytest.mark.parametrize("before", ["kernel", "workload"])
def test_a_test_that_skips_itself_in_its_call(under_ci, before):
    line = "    kernel = cuda_kernel('other.cu', 'other')\n" if before == "workload" else ""
    under_ci.edit("test_suite.py", f"{ONE}\n", f"{ONE}\n{line}    pytest.skip('flaky')\n")
    assert under_ci.run("--gpuperf").ret == EXIT_VANISHED


@pytest.mark.parametrize("head", ["pytest.skip('flaky', allow_module_level=True)", "pytest.importorskip('no_such')"])
def test_a_module_that_skips_itself(under_ci, head):
    under_ci.write("test_more.py", f"{(under_ci.path / 'test_suite.py').read_text()}")
    under_ci.edit("test_suite.py", "import pytest\n", f"import pytest\n{head}\n")
    result = under_ci.run("--gpuperf", "--gpuperf-missing=warn")
    said(
        result,
        EXIT_VANISHED,
        "ERROR: 3 workloads on record NOT-MEASURED on *was skipped, or failed*: test_suite.py::test_other (*",
    )


def test_a_skip_for_want_of_a_gpu_is_a_remark_without_one_and_red_with_one(under_ci):
    under_ci.edit("test_suite.py", ONE, f"@pytest.mark.skipif(True, reason='needs a GPU')\n{ONE}")
    result = under_ci.run("--gpuperf")
    if "SimulatedGpu" in (under_ci.path / "conftest.py").read_text():
        said(result, EXIT_VANISHED, "ERROR: 1 workload on record *(needs a GPU). To do: take the skip away*")
    else:
        said(result, 0, "1 workload on record *: its test needs a GPU and is skipped: * such a test needs no skip")


def test_an_expected_failure_before_its_workload(under_ci):
    under_ci.edit("test_suite.py", f"{ONE}\n", f"@pytest.mark.xfail(reason='old')\n{ONE}\n    assert False\n")
    said(
        under_ci.run("--gpuperf"),
        EXIT_VANISHED,
        "ERROR: 1 workload *failed as expected*test_suite.py::test_other (old)*",
    )


def test_a_test_that_no_longer_asks_for_a_kernel(under_ci):
    without_other(under_ci)
    under_ci.edit("test_suite.py", "import pytest\n", "import pytest\ndef test_other():\n    pass\n")
    said(under_ci.run("--gpuperf"), EXIT_VANISHED, "ERROR: 1 workload *passed and asked for no kernel and no *")


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "simulated-gpu"])
def test_a_removed_target(recorded, monkeypatch, target):
    recorded.run("--update-baselines=new", "--gpuperf-arch=sm_80,sm_90")
    monkeypatch.setenv("CI", "true")
    recorded.write("conftest.py", "")
    shutil.rmtree(recorded.path / "baselines" / target)
    said(
        recorded.run("--gpuperf"), EXIT_VANISHED,
        f"ERROR: there are no baselines of {target}, NOT-MEASURED: *manifest.json names what has no file. To do: "
        f"record them: pytest --update-baselines=new*{target}; or restore what was deleted (git checkout -- *{target})"
        ", or drop the target: gpuperf baselines rm NAME",
    )  # fmt: skip


def test_a_removed_target_is_recorded_with_the_flags_of_the_run(recorded):
    recorded.run("--update-baselines=new", "--gpuperf-arch=sm_80,sm_90")
    shutil.rmtree(recorded.path / "baselines" / "sm_80")
    result = recorded.run("--gpuperf", "--gpuperf-baselines=baselines")
    command = "pytest --update-baselines=new --gpuperf-baselines=baselines --gpuperf-arch=sm_80"
    result.stdout.fnmatch_lines([f"*there are no baselines of sm_80, *To do: record them: {command}; or *"])


def test_an_architecture_on_record_that_the_project_s_settings_leave_out_is_named(recorded, monkeypatch):
    recorded.run("--update-baselines=new", "--gpuperf-arch=sm_80,sm_90")
    monkeypatch.setenv("CI", "true")
    recorded.pytester.makeini("[pytest]\ngpuperf_arch = sm_90\n")
    recorded.write("conftest.py", "")
    result = recorded.run("--gpuperf")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["not gated: the machine code for sm_80, which is on record and --gpuperf-arch *"])


def test_a_manifest_that_cannot_be_read_is_named(under_ci):
    (under_ci.path / "baselines/manifest.json").write_text("<<<<<<< ours\n")
    result = under_ci.run("--gpuperf")
    assert result.ret == EXIT_VANISHED
    result.stdout.fnmatch_lines(["ERROR: what no test came to cannot be told: *manifest.json: this baseline cannot *"])


# --- what is no full run, and what is not for it to say ------------------------------------------


def test_a_folder_that_is_none_is_told_without_a_traceback(under_ci):
    folder, other = under_ci.path / "baselines", under_ci.path / "other"
    folder.rename(other)
    folder.write_text("in the way")
    result = under_ci.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"ERROR: what no test came to cannot be told: {folder}*"])


def test_a_missing_manifest_is_red_where_there_are_records(under_ci):
    """Without it a target whose folder is gone, too, would not be missed."""
    (under_ci.path / "baselines/manifest.json").unlink()
    result = under_ci.run("--gpuperf")
    assert result.ret == EXIT_VANISHED
    result.stdout.fnmatch_lines(["ERROR: what no test came to *manifest.json: *: it is missing, and it says which *"])
    result.stdout.fnmatch_lines(
        ["Restore it from version control (git checkout -- *), or let an update write it anew*"]
    )
    assert "or delete it" not in result.stdout.str()
    if "SimulatedGpu" in (under_ci.path / "conftest.py").read_text():
        under_ci.run("--update-baselines=new", "--gpuperf-allow-ci-update")
        assert under_ci.run("--gpuperf").ret == 0


def test_xdist(under_ci):
    said(under_ci.run("--gpuperf", "-n", "2", subprocess=True), 0)
    under_ci.edit("test_suite.py", ONE, SKIP + ONE)
    said(under_ci.run("--gpuperf", "-n", "2", subprocess=True), EXIT_VANISHED, "ERROR: 1 workload *(flaky)*")
    without_other(under_ci)
    said(under_ci.run("--gpuperf", "-n", "2", subprocess=True), EXIT_VANISHED, "ERROR: 1 workload *its test is gone*")
    said(under_ci.run("--gpuperf", "-n", "2", "-k", "1024", subprocess=True), 0, "1 workload *its test is gone*")


DIES_AT_ITS_END = """

@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput"):
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("opens", "status", "begin"), [("fail", EXIT_VANISHED, "ERROR: "), ("warn", 0, "")])
def test_workers_that_die_after_their_last_test_cannot_tell_what_vanished(recorded, opens, status, begin):
    recorded.write("conftest.py", (recorded.path / "conftest.py").read_text() + DIES_AT_ITS_END)
    one = ("-n", "1", "--max-worker-restart=0")
    result = recorded.run("--gpuperf", f"--gpuperf-open={opens}", *one, subprocess=True)
    assert result.ret == status, result.stdout.str()
    result.stdout.fnmatch_lines([f"{begin}what no test came to cannot be told: no worker of pytest-xdist told *"])


@pytest.mark.parametrize("narrow", [("-k", "work"), ("--deselect", "test_suite.py::test_other"), ("-m", "not slow")])
def test_a_run_that_deselects_says_nothing_of_what_it_left_out(under_ci, narrow):
    under_ci.write("pytest.ini", "[pytest]\nmarkers = slow: slow\n")
    under_ci.edit("test_suite.py", ONE, f"@pytest.mark.slow\n{ONE}")
    said(under_ci.run("--gpuperf", *narrow), 0)


LEFT_OUT = "1 workload on record NOT-MEASURED on *: its test was collected and then left out, by *: test_suite.py::*"


def test_a_conftest_that_removes_tests_without_a_word_deselects(under_ci):
    text = (under_ci.path / "conftest.py").read_text()
    more = "\ndef pytest_collection_modifyitems(items):\n    items[:] = [i for i in items if 'other' not in i.name]\n"
    under_ci.write("conftest.py", text + more)
    said(under_ci.run("--gpuperf"), 0, f"{LEFT_OUT}other. To do: see to -k, -m and --deselect in addopts, *")
    said(under_ci.run("--gpuperf", "-k", "work"), 0)


@pytest.mark.parametrize("addopts", ["-k work", "--deselect=test_suite.py::test_other", "-m 'not slow'"])
def test_what_the_project_s_own_flags_leave_out_is_a_remark(under_ci, addopts):
    """It may have a run of its own for them; and a change that adds the flag is seen."""
    under_ci.write("pytest.ini", f"[pytest]\nmarkers = slow: slow\naddopts = {addopts}\n")
    under_ci.edit("test_suite.py", ONE, f"@pytest.mark.slow\n{ONE}")
    said(under_ci.run("--gpuperf"), 0, f"{LEFT_OUT}other. *")
    said(under_ci.run("--gpuperf", "-n", "2", subprocess=True), 0, f"{LEFT_OUT}other. *")


@pytest.mark.parametrize("place", ["test_plain.py", "test_plain.py::test_plain"])
def test_what_lies_outside_of_paths_in_addopts_is_a_remark(under_ci, place):
    """As with testpaths: the command names no path, so the run answers for all that is on record."""
    under_ci.write("test_plain.py", OWN_KERNEL)
    under_ci.write("pytest.ini", f"[pytest]\naddopts = {place}\n")
    line = "3 workloads on record NOT-MEASURED on *: its test file lies outside of the folders that this run searched*"
    said(under_ci.run("--gpuperf", "--gpuperf-missing=warn"), 0, line)
    said(under_ci.run("--gpuperf", "--gpuperf-missing=warn", "test_plain.py"), 0)


def test_a_flag_of_the_projects_own_does_not_make_its_runs_partial(under_ci):
    without_other(under_ci)
    said(under_ci.run("--gpuperf", "-k", "work"), 0, "1 workload on record NOT-MEASURED *")
    under_ci.write("pytest.ini", "[pytest]\naddopts = -k work\n")
    said(under_ci.run("--gpuperf"), EXIT_VANISHED, "ERROR: 1 workload on record NOT-MEASURED *")


def test_last_failed_in_addopts_with_a_cache_that_came_along_is_no_full_run(under_ci):
    """A change may bring both; pytest does not tell which files it left out."""
    under_ci.write("test_plain.py", OWN_KERNEL)
    under_ci.write("pytest.ini", "[pytest]\naddopts = --lf\n")
    flags = "--gpuperf", "--gpuperf-missing=warn"
    assert under_ci.pytester.runpytest_subprocess(*flags).ret == 0, "nothing failed before, so all tests run"
    (under_ci.path / ".pytest_cache/v/cache/lastfailed").write_text('{"test_plain.py::test_plain": true}')
    result = under_ci.pytester.runpytest_subprocess(*flags)
    assert result.ret == EXIT_VANISHED
    result.stdout.fnmatch_lines(
        ["ERROR: --lf in addopts left out files of which no test failed before, and what did *"]
    )
    assert under_ci.pytester.runpytest_subprocess(*flags, "--gpuperf-open=warn").ret == 0


def test_paths_say_which_modules_a_run_is_about(under_ci):
    under_ci.write("test_plain.py", OWN_KERNEL)
    (under_ci.path / "test_suite.py").unlink()
    said(under_ci.run("--gpuperf", "--gpuperf-missing=warn", "test_plain.py"), 0)
    assert under_ci.run("--gpuperf", "--gpuperf-missing=warn", ".").ret == EXIT_VANISHED


def test_a_node_id_is_about_its_test_alone(under_ci):
    without_other(under_ci)
    said(under_ci.run("--gpuperf", "test_suite.py::test_work"), 0)
    assert under_ci.run("--gpuperf", "test_suite.py").ret == EXIT_VANISHED


@pytest.mark.parametrize(
    ("mark", "inside"),
    [("", "    pytest.skip('flaky')\n"), (SKIP, ""), ("@pytest.mark.xfail(run=False, reason='flaky')\n", "")],
    ids=["between kernel and time", "mark", "expected to fail"],
)
def test_a_test_by_its_node_id_answers_for_its_own_records(recorded, monkeypatch, mark, inside):
    monkeypatch.setenv("CI", "true")
    recorded.edit("test_suite.py", ONE, mark + ONE)
    recorded.edit("test_suite.py", "    gpuperf(kernel.launch(grid=2", f"{inside}    gpuperf(kernel.launch(grid=2")
    recorded.edit("other.cu", "* 2.0f", "* 2.0f + a[0]")
    result = recorded.run("--gpuperf", "test_suite.py::test_work[1024]", "test_suite.py::test_other")
    assert result.ret == EXIT_VANISHED
    result.stdout.fnmatch_lines(["ERROR: 1 workload on record NOT-MEASURED on *simulated-gpu*::test_other (*flaky). *"])
    said(recorded.run("--gpuperf", "test_suite.py::test_work[1024]"), 0)


def test_so_does_one_case_of_a_parametrised_test(recorded, monkeypatch):
    monkeypatch.setenv("CI", "true")
    recorded.edit("test_suite.py", "    result = gpuperf(", "    pytest.skip('today not')\n    result = gpuperf(")
    said(
        recorded.run("--gpuperf", "test_suite.py::test_work[1024]"), EXIT_VANISHED,
        "ERROR: 1 workload on record NOT-MEASURED on simulated-gpu: *: test_suite.py::test_work[[]1024] (today not). *",
    )  # fmt: skip


def test_a_module_by_its_name_and_a_root_by_a_link_say_it_too(recorded, monkeypatch):
    monkeypatch.setenv("CI", "true")
    recorded.write("conftest.py", "")
    recorded.write("pytest.ini", "[pytest]\npythonpath = .\n")
    without_other(recorded)
    link = recorded.path.parent / "link"
    link.symlink_to(recorded.path)
    assert recorded.run("--gpuperf", "--pyargs", "test_suite").ret == EXIT_VANISHED
    assert recorded.run("--gpuperf", str(link), f"--rootdir={recorded.path}").ret == EXIT_VANISHED


def test_a_run_that_was_cut_short_only_remarks(under_ci):
    without_other(under_ci)
    under_ci.edit("test_suite.py", "import pytest\n", "import pytest\ndef test_red():\n    assert False\n")
    result = under_ci.run("--gpuperf", "-x")
    assert result.ret == 1
    assert "ERROR: 1 workload on record" not in result.stdout.str()


def test_a_module_that_cannot_be_collected_has_not_vanished(under_ci):
    under_ci.write("test_plain.py", OWN_KERNEL)
    under_ci.edit("test_suite.py", "import pytest\n", "import no_such_module\n")
    result = under_ci.run("--gpuperf", "--continue-on-collection-errors")
    assert result.ret == 1
    assert "on record NOT-MEASURED" not in result.stdout.str()


def test_an_ignored_module_is_named_where_the_project_ignores_it(under_ci):
    under_ci.write("test_plain.py", OWN_KERNEL)
    arguments = ("--gpuperf", "--gpuperf-missing=warn")
    said(under_ci.run(*arguments, "--ignore=test_suite.py"), 0)
    under_ci.write("pytest.ini", "[pytest]\naddopts = --ignore=test_suite.py\n")
    said(under_ci.run(*arguments), EXIT_VANISHED, "ERROR: 3 workloads *is there and was not collected: test_suite.py *")


def test_a_module_outside_of_testpaths_is_a_remark(under_ci):
    (under_ci.path / "more").mkdir()
    under_ci.write("more/test_plain.py", "def test_p(cuda_kernel):\n    cuda_kernel('../other.cu', 'other')\n")
    under_ci.write("pytest.ini", "[pytest]\ntestpaths = more\n")
    result = under_ci.run("--gpuperf", "--gpuperf-missing=warn")
    said(result, 0, "3 workloads on record NOT-MEASURED on *outside of the folders*: test_suite.py (rootdir *")


def test_last_failed_leaves_files_out_without_a_word(recorded):
    recorded.write("test_plain.py", "def test_red():\n    assert False\n")
    cached = ("-p", "cacheprovider", "--gpuperf", "--gpuperf-open=fail")
    run = recorded.pytester.runpytest_inprocess
    run(*cached)
    result = run(*cached, "--lf")
    assert "on record NOT-MEASURED" not in result.stdout.str()


def test_an_update_names_what_it_leaves(recorded):
    without_other(recorded)
    said(recorded.run("--update-baselines", "--gpuperf-open=fail"), 0, "1 workload on record NOT-MEASURED on *")


# --- another root --------------------------------------------------------------------------------


def moved_below(suite):
    """The folder ``below`` with the tests and their kernels, moved there."""
    below = suite.path / "below"
    below.mkdir()
    for name in ("test_suite.py", "work.cu", "other.cu"):
        shutil.move(suite.path / name, below / name)
    return below


def test_a_run_in_another_root_names_the_folder_and_those_that_have_baselines(recorded, monkeypatch):
    monkeypatch.setenv("CI", "true")
    recorded.write("conftest.py", "")
    below = moved_below(recorded)
    (below / "pytest.ini").write_text("[pytest]\n")
    result = recorded.run("--gpuperf", "below", "-c", "below/pytest.ini")
    assert result.ret == 1
    result.stdout.fnmatch_lines([
        f"there are no baselines in {below / 'baselines'} (rootdir {below}); there are some in "
        f"{recorded.path / 'baselines'}. To do: *"
    ])  # fmt: skip


@pytest.mark.parametrize("chosen", [(), ("-k", "other"), ("-n", "2")], ids=["all", "-k", "-n 2"])
def test_a_run_below_the_root_of_its_records_is_red_and_compares_with_the_flag_that_it_names(suite, chosen):
    below = moved_below(suite)
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_90", "below").ret == 0
    suite.edit("below/other.cu", "* 2.0f", "/ 3.0")
    result = suite.run("--gpuperf", "below", "--rootdir=below", *chosen)
    assert result.ret == EXIT_VANISHED
    (told,) = [line for line in result.stdout.lines if f"there are no baselines in {below / 'baselines'}" in line]
    assert told == (
        f"ERROR: nothing was compared: there are no baselines in {below / 'baselines'} (rootdir {below}), and those "
        f"of below/test_suite.py are in {suite.path / 'baselines'}. To do: run it with --rootdir={suite.path}; if it "
        "is to have others: pytest --update-baselines=new --rootdir=below"
    )
    assert "and commit the files" not in result.stdout.str()
    result = suite.run("--gpuperf", "below", f"--rootdir={suite.path}", *chosen)
    assert result.ret == 1
    result.stdout.fnmatch_lines([
        "doubling  WORSE  on sm_90 (static)",
        f"next: *, and run pytest --gpuperf --rootdir={suite.path} --lf; accept what is intended: "
        f"pytest --update-baselines --rootdir={suite.path}",
    ])  # fmt: skip
    result = suite.run("--update-baselines=new", "below", "--rootdir=below")
    assert result.ret == 0
    assert (
        f"below/test_suite.py has baselines in {suite.path / 'baselines'} too. To do: keep one of the two folders; "
        f"that one is updated by pytest --update-baselines --rootdir={suite.path}"
    ) in result.stdout.lines
    assert suite.run("--gpuperf", "below", "--rootdir=below", *chosen).ret == 0


def test_a_configuration_in_another_folder_hides_no_records_and_is_kept_in_what_is_to_be_typed(suite):
    moved_below(suite)
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    (suite.path / "elsewhere").mkdir()
    suite.write("elsewhere/other.ini", "[pytest]\n")
    result = suite.run("--gpuperf", "-c", "elsewhere/other.ini", "below", "-k", "other")
    assert result.ret == EXIT_VANISHED
    result.stdout.fnmatch_lines([
        f"ERROR: nothing was compared: *, and those of below/test_suite.py are in {suite.path / 'baselines'}. To do: "
        f"run it with --rootdir={suite.path}; if it is to have others: pytest --update-baselines=new "
        "--config-file=elsewhere/other.ini"
    ])  # fmt: skip


def test_a_renamed_folder_of_baselines_is_found_and_compared_with_by_the_flag_that_is_named(suite):
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    shutil.move(suite.path / "baselines", suite.path / "my perf")
    suite.edit("other.cu", "* 2.0f", "/ 3.0")
    result = suite.run("--gpuperf")
    assert result.ret == EXIT_VANISHED
    result.stdout.fnmatch_lines([
        f"ERROR: nothing was compared: *, and those of test_suite.py are in {suite.path / 'my perf'}. To do: run it "
        "with '--gpuperf-baselines=my perf'; if it is to have others: pytest --update-baselines=new"
    ])  # fmt: skip
    result = suite.run("--gpuperf", "--gpuperf-baselines=my perf")
    assert result.ret == 1
    accept = "pytest --update-baselines '--gpuperf-baselines=my perf'"
    result.stdout.fnmatch_lines([
        f"If this change is intended: {accept}, and commit what it writes.",
        f"next: *; accept what is intended: {accept}",
    ])  # fmt: skip
    suite.write("test_new.py", (suite.path / "test_suite.py").read_text())
    result = suite.run("--gpuperf", "--gpuperf-baselines=my perf", "--gpuperf-missing=fail", "test_new.py")
    named = "pytest --update-baselines=new '--gpuperf-baselines=my perf'"
    result.stdout.fnmatch_lines([
        f"no baseline yet: record one with {named} and commit it",
        f"3 workloads have no baseline for sm_90: record them with {named} and commit the files",
    ])  # fmt: skip


def test_a_first_run_is_told_once_that_it_has_no_baseline(suite):
    lines = suite.run("--gpuperf").stdout.lines
    (new,) = [line for line in lines if "have no baseline for" in line]
    assert new.endswith(": record them with pytest --update-baselines=new and commit the files")
    folder = suite.path / "baselines"
    assert (
        f"there are no baselines in {folder} (rootdir {suite.path}): if there should be, --rootdir or "
        "--gpuperf-baselines names their folder" in lines
    )


# --- a test that returns early -------------------------------------------------------------------


def test_a_test_that_returns_before_its_first_kernel_is_red_itself(under_ci):
    under_ci.edit("test_suite.py", f"{ONE}\n", f"{ONE}\n    return\n")
    result = under_ci.run("--gpuperf")
    assert result.ret == 1
    result.assert_outcomes(failed=1, passed=result.parseoutcomes().get("passed", 0))
    result.stdout.fnmatch_lines([
        "doubling  NOT-MEASURED  on sm_90 (static)",
        "*has a baseline and was not reached: the test passed without it. Let it come to *",
    ])  # fmt: skip


def test_a_test_that_returns_before_its_measurement_is_red_where_there_is_a_gpu(recorded):
    recorded.edit("test_suite.py", "    gpuperf(kernel.launch(grid=2", "    return\n    gpuperf(kernel.launch(grid=2")
    assert recorded.run("--gpuperf").ret == 0
    result = recorded.run("--gpuperf", "--gpuperf-open=fail")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["doubling  NOT-MEASURED  on simulated-gpu (time)"])


# --- renames -------------------------------------------------------------------------------------


def moved(suite, monkeypatch, *names):
    monkeypatch.chdir(suite.path)
    assert main(["baselines", "mv", *names]) == 0


def test_a_renamed_test_is_recognised_and_its_record_follows(under_ci, monkeypatch):
    under_ci.edit("test_suite.py", "def test_work(", "def test_works(")
    result = under_ci.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines([
        "*was test_suite.py::test_work[[]1024[]] [[]work[]], the same machine code: run `gpuperf baselines mv "
        "test_suite.py::test_work test_suite.py::test_works` to take its record along",
        "ERROR: 2 workloads on record NOT-MEASURED on *: its work goes on under another name: *",
    ])  # fmt: skip
    moved(under_ci, monkeypatch, "test_suite.py::test_work", "test_suite.py::test_works")
    said(under_ci.run("--gpuperf"), 0)


def test_a_renamed_test_that_got_slower_says_by_how_much(recorded):
    recorded.edit("test_suite.py", "def test_work(", "def test_works(")
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=200")
    result = recorded.run("--gpuperf")
    result.stdout.re_match_lines([
        r"test_suite.py::test_works\[1024\] \[work\]: NEW, was test_suite.py::test_work\[1024\] \[work\], "
        r"6\d\.\d % slower than its record: run `gpuperf baselines mv "
    ])  # fmt: skip
    assert recorded.run("--gpuperf", "--gpuperf-open=fail").ret == 1


def test_a_renamed_file_is_one_command(under_ci, monkeypatch):
    shutil.move(under_ci.path / "test_suite.py", under_ci.path / "test_kernels.py")
    result = under_ci.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*run `gpuperf baselines mv test_suite.py test_kernels.py` to take its record along"])
    moved(under_ci, monkeypatch, "test_suite.py", "test_kernels.py")
    said(under_ci.run("--gpuperf"), 0)


def test_a_renamed_workload(recorded, monkeypatch):
    recorded.edit("test_suite.py", 'name="doubling"', 'name="twice"')
    monkeypatch.setenv("CI", "true")
    result = recorded.run("--gpuperf")
    assert result.ret == 1
    command = "gpuperf baselines mv 'test_suite.py::test_other [[]doubling[]]' 'test_suite.py::test_other [[]twice[]]'"
    result.stdout.fnmatch_lines([f"*was test_suite.py::test_other [[]doubling[]], *: run `{command}` to take its *"])
    assert "doubling  NOT-MEASURED" not in result.stdout.str()
    moved(recorded, monkeypatch, "test_suite.py::test_other [doubling]", "test_suite.py::test_other [twice]")
    said(recorded.run("--gpuperf"), 0)


def test_a_rename_is_red_although_new_workloads_may_pass(recorded):
    recorded.edit("test_suite.py", 'name="doubling"', 'name="twice"')
    assert recorded.run("--gpuperf", "--gpuperf-open=fail", "--gpuperf-missing=warn").ret == 1
    recorded.edit("test_suite.py", "def test_other(", "def test_others(")
    assert recorded.run("--gpuperf", "--gpuperf-open=fail", "--gpuperf-missing=warn").ret == EXIT_VANISHED


def test_workers_recognise_renames(under_ci):
    under_ci.edit("test_suite.py", "def test_other(", "def test_others(")
    result = under_ci.run("--gpuperf", "-n", "2", subprocess=True)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*was test_suite.py::test_other [[]doubling[]], *"])

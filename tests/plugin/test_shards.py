"""``--gpuperf-shard``: four shards that are merged say what one run says, and none of them hides anything."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from git_samples import commit, git

from pytest_gpuperf.cli.command_line import main
from pytest_gpuperf.report import files as report_files

SHARDS = 4
ONE_TEST = "def test_other(cuda_kernel, gpu, gpuperf):"
MORE = """
import pytest

@pytest.mark.parametrize("size", [256, 512, 768, 1280])
def test_more(cuda_kernel, gpu, gpuperf, size):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])
    a = gpu.random(size, seed=1)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=8, block=256, args=(a, b, size)))
"""
NO_GPU_TEST = "def test_plain():\n    assert True\n"


@pytest.fixture
def wide(recorded, monkeypatch):
    """A suite of two files and eight tests, seven of them on record, under CI."""
    recorded.write("test_more.py", MORE)
    recorded.write("test_plain.py", NO_GPU_TEST)
    done = recorded.run("--update-baselines=new", "--gpuperf-force-update", "test_more.py")
    assert done.ret == 0, done.stdout.str()
    monkeypatch.setenv("CI", "true")
    monkeypatch.chdir(recorded.path)
    return recorded


def report_of(path):
    return json.loads(path.read_text())


def verdicts(report):
    """By workload and target, each verdict."""
    return sorted(
        (str(one["key"]), one["target"], one["kind"], one["verdict"])
        for test in report["tests"]
        for work in test.get("workloads", ())
        for one in work["judgements"]
    )


def shards(suite, *arguments, of=SHARDS):
    files = []
    for index in range(1, of + 1):
        name = f"shard-{index}.json"
        suite.run("--gpuperf", f"--gpuperf-shard={index}/{of}", f"--gpuperf-report={name}", *arguments)
        files.append(name)
    return files


def vanished(report):
    """Of problems, which workloads vanished from which targets, and why."""
    return sorted(re.sub(r" \(rootdir .*?\)", "", line) for line in report["problems"] if "NOT-MEASURED" in line)


def merged_like_one_run(suite, capsys, *arguments):
    """The merged report and exit status, which are those of a single run; returns both."""
    one = suite.run("--gpuperf", "--gpuperf-report=one.json", *arguments)
    files = shards(suite, *arguments)
    capsys.readouterr()
    status = main(["merge", *files, "--json", "whole.json"])
    told = capsys.readouterr()
    assert status == one.ret, told.out + told.err + one.stdout.str()
    whole, single = report_of(suite.path / "whole.json"), report_of(suite.path / "one.json")
    assert whole["exit_status"] == status
    assert "shard" not in whole
    assert verdicts(whole) == verdicts(single)
    assert whole["verdicts"] == single["verdicts"]
    assert vanished(whole) == vanished(single)
    return status, whole, told.out


def test_green_shards_are_a_green_run_and_run_each_test_once(wide, capsys):
    status, whole, told = merged_like_one_run(wide, capsys)
    assert status == 0
    assert len(whole["tests"]) == 7
    parts = [report_of(wide.path / f"shard-{index}.json") for index in range(1, SHARDS + 1)]
    assert [part["shard"] for part in parts] == [[index, SHARDS] for index in range(1, SHARDS + 1)]
    assert [part["exit_status"] for part in parts] == [0] * SHARDS
    assert sum(part["part"]["tests_run"] for part in parts) == 8
    assert told.splitlines()[-1] == "4 shards: 7 UNCHANGED (exit status 0)"


def test_one_slower(wide, capsys):
    wide.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=200")
    status, whole, told = merged_like_one_run(wide, capsys, "--gpuperf-trust-cubins")
    assert status == 1
    assert whole["verdicts"]["SLOWER"] == 2
    assert "FAILED test_suite.py::test_work[1024]" in told


def test_one_error(wide, capsys):
    wide.edit("test_suite.py", ONE_TEST, f"{ONE_TEST}\n    raise ValueError('broken')")
    status, _, told = merged_like_one_run(wide, capsys)
    assert status == 1
    assert "FAILED test_suite.py::test_other - ValueError: broken" in told


@pytest.mark.parametrize("what", ["deleted", "renamed", "skipped", "file gone", "file skipped"])
def test_one_vanished(wide, capsys, what):
    if what == "deleted":
        text = (wide.path / "test_suite.py").read_text()
        wide.write("test_suite.py", text[: text.index(ONE_TEST)])
    elif what == "renamed":
        wide.edit("test_suite.py", "def test_other(", "def test_another(")
    elif what == "skipped":
        wide.edit("test_suite.py", ONE_TEST, f"@pytest.mark.skip(reason='needs a GPU')\n{ONE_TEST}")
    elif what == "file gone":
        (wide.path / "test_more.py").unlink()
    else:
        wide.edit("test_more.py", "import pytest\n", "import pytest\npytest.skip('off', allow_module_level=True)\n")
    status, whole, _ = merged_like_one_run(wide, capsys, "--gpuperf-missing=warn", "--gpuperf-open=fail")
    count = 4 if "file" in what else 1
    assert f"{count} workload{'s' * (count > 1)} on record NOT-MEASURED" in "".join(vanished(whole))
    assert status == 13


def test_each_vanished_record_is_told_by_one_shard(wide):
    (wide.path / "test_more.py").unlink()
    parts = [report_of(wide.path / file)["part"] for file in shards(wide)]
    records = [json.dumps(record) for part in parts for record, *_ in part["missed"].get("candidates", ())]
    assert len(records) == len(set(records)) == 8  # of four tests, for two targets


FIXTURE = """
import pytest

@pytest.fixture(scope="module")
def kernel(cuda_kernel):
    return cuda_kernel("other.cu", "other")

def test_one(kernel, gpu, gpuperf):
    a = gpu.random(512, seed=2)
    gpuperf(kernel.launch(grid=2, block=256, args=(a, gpu.empty_like(a), 512)))

def test_two(kernel):
    pass
"""


def test_a_fixture_that_one_shard_judged_is_not_missed_because_another_skips_its_test(recorded, capsys, monkeypatch):
    recorded.write("test_fixture.py", FIXTURE)
    assert recorded.run("--update-baselines=new", "--gpuperf-force-update", "test_fixture.py").ret == 0
    recorded.edit("test_fixture.py", "def test_two", "@pytest.mark.skip(reason='later')\ndef test_two")
    monkeypatch.setenv("CI", "true")
    monkeypatch.chdir(recorded.path)
    files = shards(recorded, "test_fixture.py", of=2)
    missed = [report_of(recorded.path / file)["part"]["missed"] for file in files]
    assert "fixture kernel" in json.dumps(missed)
    assert recorded.run("--gpuperf", "test_fixture.py").ret == 0
    assert main(["merge", *files]) == 0, capsys.readouterr().out
    recorded.edit("test_fixture.py", "def test_one", "@pytest.mark.skip(reason='later')\ndef test_one")
    assert main(["merge", *shards(recorded, "test_fixture.py", of=2)]) == 10  # no test ran
    assert "test_fixture.py::fixture kernel (later)" in capsys.readouterr().out


def test_tests_of_other_shards_are_deselected_in_the_usual_way(wide):
    wide.run("--gpuperf", "--gpuperf-shard=1/4").stdout.fnmatch_lines(
        ["*collected 8 items / 6 deselected / 2 selected*"]
    )


def test_more_shards_than_tests(wide, capsys):
    files = shards(wide, "test_suite.py", of=5)
    assert [report_of(wide.path / file)["exit_status"] for file in files] == [0] * 5
    assert main(["merge", *files]) == 0
    assert wide.run("--gpuperf", "--gpuperf-shard=5/5", "test_suite.py").ret == 0


def test_a_run_without_any_test_is_no_success(wide, capsys):
    files = shards(wide, "-k", "nothing", of=2)
    assert [report_of(wide.path / file)["exit_status"] for file in files] == [10, 10]
    assert main(["merge", *files]) == 10


def test_shards_that_measure_nothing_together_are_no_success(wide, capsys):
    files = shards(wide, "test_plain.py", of=2)
    assert main(["merge", *files]) == 10
    assert "ERROR: nothing was measured" in capsys.readouterr().out


def test_workers_of_a_shard_run_its_tests_alone(wide, capsys):
    files = shards(wide, of=2)
    alone = [report_of(wide.path / file) for file in files]
    for index, report in enumerate(alone, 1):
        name = f"workers-{index}.json"
        arguments = ("-n", "2", "-p", "no:randomly", "--gpuperf", f"--gpuperf-shard={index}/2")
        result = wide.run(*arguments, f"--gpuperf-report={name}", subprocess=True)
        assert result.ret == 0, result.stdout.str()
        spread = report_of(wide.path / name)
        assert spread["part"]["plan"] == report["part"]["plan"]
        assert verdicts(spread) == verdicts(report)
    assert main(["merge", "shard-1.json", "workers-2.json"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gpuperf", "--gpuperf-shard=0/4"], "--gpuperf-shard: '0/4' is not valid: it accepts I/N, such as 2/4"),
        (["--gpuperf", "--gpuperf-shard=5/4"], "'5/4' is not valid"),
        (["--gpuperf", "--gpuperf-shard=2"], "'2' is not valid"),
        (["--update-baselines", "--gpuperf-shard=1/4"], "--gpuperf-shard and --update-baselines exclude each other"),
        (["--gpuperf-shard=1/4"], "--gpuperf-shard: only a gated run has shards: add --gpuperf"),
        (["--gpuperf", "--gpuperf-shard=1/4", "--sw"], "--gpuperf-shard and --sw exclude each other"),
        (["--gpuperf", "--gpuperf-shard=1/4", "--lf"], "--gpuperf-shard and --lf exclude each other"),
    ],
)
def test_what_is_refused(gpu_suite, arguments, words):
    result = gpu_suite.pytester.runpytest_inprocess(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{words.replace('[', '[[]')}*"])


def test_a_run_that_was_stopped_is_not_merged(wide, capsys):
    wide.edit("test_more.py", "    kernel = cuda", "    assert size < 0\n    kernel = cuda")
    files = shards(wide, "-x", of=2)
    assert main(["merge", *files]) == 2
    assert "did not come to its end" in capsys.readouterr().err


@pytest.mark.parametrize("status", [256, -256])
def test_a_status_that_the_system_takes_for_a_success_is_not_merged(wide, capsys, status):
    files = shards(wide, of=2)
    report = wide.path / files[0]
    report.write_text(re.sub(r'"exit_status": *\d+', f'"exit_status": {status}', report.read_text()))
    assert main(["merge", *files]) == 2
    assert f"{files[0]} is of no run: none ends with the status {status}" in capsys.readouterr().err


def test_a_shard_that_is_killed_leaves_no_report_of_an_earlier_run(wide, capsys):
    files = shards(wide, of=2)
    wide.edit("test_suite.py", ONE_TEST, f"{ONE_TEST}\n    __import__('os')._exit(9)")
    reports = [wide.run("--gpuperf", f"--gpuperf-shard={index}/2", f"--gpuperf-report={file}", subprocess=True).ret
               for index, file in enumerate(files, 1)]  # fmt: skip
    assert sorted(reports) == [0, 9]
    killed = files[reports.index(9)]
    assert not (wide.path / killed).exists()
    assert main(["merge", *(file for file in files if file != killed)]) == 2
    assert "is missing: did its job end early?" in capsys.readouterr().err


def test_a_report_of_an_earlier_run_that_cannot_be_removed_is_told_at_once(wide, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    (wide.path / "shard-1.json").touch()
    monkeypatch.setattr(report_files.Path, "unlink", refuse)
    result = wide.run("--gpuperf", "--gpuperf-shard=1/2", "--gpuperf-report=shard-1.json")
    monkeypatch.undo()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--gpuperf-report: the report *shard-1.json could not be written (Permission denied): make its folder *"]
    )


def test_shards_of_one_commit_that_were_edited_in_between_are_not_merged(wide, capsys):
    commit(wide.path, "Baselines")
    files = shards(wide, of=2)
    assert main(["merge", *files]) == 0
    wide.edit("test_more.py", "size)))", "size)))  # unknown to the other")
    again = shards(wide, of=2)
    assert main(["merge", *again]) == 0
    edited = (wide.path / files[1]).read_bytes()
    wide.edit("test_more.py", "unknown", "again unknown")
    shards(wide, of=2)
    (wide.path / files[1]).write_bytes(edited)
    assert main(["merge", *files]) == 2
    assert "are of different changes of tracked files" in capsys.readouterr().err


def test_shards_whose_own_reports_are_committed_are_merged(wide, capsys):
    files = shards(wide, of=2)
    commit(wide.path, "With what runs wrote")
    for file in files:  # as in checkouts of their own
        index = int(re.findall(r"\d", file)[0])
        wide.run("--gpuperf", f"--gpuperf-shard={index}/2", f"--gpuperf-report={file}")
        (wide.path / f"kept-{index}").write_bytes((wide.path / file).read_bytes())
        git(wide.path, "checkout", "-q", ".")
    assert main(["merge", "kept-1", "kept-2"]) == 0, capsys.readouterr().err


def test_another_selection_is_not_merged(wide, capsys):
    files = shards(wide, of=2)
    wide.run("--gpuperf", "--gpuperf-shard=2/2", "--gpuperf-report=shard-2.json", "-k", "not plain")
    assert main(["merge", *files]) == 2
    assert "are of different s" in capsys.readouterr().err


def test_a_report_is_what_its_schema_says(wide):
    from pytest_gpuperf.report.document import RunReport

    (file,) = shards(wide, of=1)
    content = (wide.path / file).read_bytes()
    assert msgspec.json.encode(msgspec.json.decode(content, type=RunReport)) == msgspec.json.encode(
        msgspec.json.decode(content)
    )

"""The ``gpuperf`` command: arguments in, exit status out; and the folder of baselines that it works on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from warm_python import COLD

from pytest_gpuperf.cli import command_line, doctor_command
from pytest_gpuperf.cli.baseline_folder import folder_of
from pytest_gpuperf.cli.doctor_command import ProbeResult
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model import __version__


@pytest.mark.parametrize(
    ("arguments", "status"), [(["--version"], 0), ([], 2), (["no-such-command"], 2), (["doctor", "--no-such-flag"], 2)]
)
def test_version_and_wrong_usage_end_as_they_do_everywhere(arguments, status, capsys):
    with pytest.raises(SystemExit) as stop:
        command_line.main(arguments)
    said = capsys.readouterr()
    assert stop.value.code == status
    assert said.out == (f"gpuperf {__version__}\n" if status == 0 else "")
    assert ("usage: gpuperf" in said.err) == (status == 2)


@pytest.mark.parametrize(
    ("area", "status", "says"),
    [("time", 0, "Can be measured here: static yes, time no"), ("static", 1, "-> install it")],
)
def test_doctor_is_content_without_a_gpu_and_not_without_a_compiler(monkeypatch, capsys, area, status, says):
    found = [
        ProbeResult("static", "NVRTC", "ok", "1"),
        ProbeResult(area, "it", "missing", "", "install it", required=True),
    ]
    monkeypatch.setattr(doctor_command, "PROBES", [lambda: found])
    assert command_line.main(["doctor"]) == status
    assert says in capsys.readouterr().out


PROGRAM = [sys.executable, "-c", "import sys; from pytest_gpuperf.cli import main; sys.exit(main())"]


def test_output_that_nobody_reads_on_ends_without_a_traceback():
    """As of ``gpuperf examples | head``: ``BrokenPipeError`` is an ``OSError``, and no problem of a command."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*PROGRAM, "examples"], stdout=pipe, stderr=pipe, text=True) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (command_line.EXIT_PIPE_CLOSED, "")


@pytest.mark.parametrize("encoding", ["ascii", "ascii:surrogateescape"])
def test_output_where_the_encoding_lacks_a_character_has_its_number(tmp_path, encoding):
    (tmp_path / "bäselines").mkdir()
    given = {**os.environ, COLD: "1", "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": encoding}
    command = [*PROGRAM, "baselines", "--baselines", "bäselines"]
    done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"b\\xe4selines has no records yet: pytest --update-baselines writes them\n"


def test_the_nearest_folder_is_found_from_below_and_one_that_is_given_comes_first(tmp_path: Path) -> None:
    deep = tmp_path / "lib" / "tests"
    deep.mkdir(parents=True)
    with pytest.raises(GpuperfError, match=r"no folder baselines in .* or above: name that .* with --baselines DIR"):
        folder_of(None, deep)
    (tmp_path / "baselines").mkdir()
    assert folder_of(None, deep) == tmp_path / "baselines"
    (tmp_path / "lib" / "baselines").mkdir()
    assert folder_of(None, deep) == tmp_path / "lib" / "baselines"
    assert folder_of(deep, deep) == deep
    with pytest.raises(GpuperfError, match=r"there is no folder .*gone: name that of the baselines"):
        folder_of(deep / "gone", deep)

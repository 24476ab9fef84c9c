"""``gpuperf history``: what commits have on record, where it took a step, and the forms that it has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from git_samples import commit
from record_samples import static_of, time_of

from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.command_line import main
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.time_record import Session

KEY = Key(module="tests/test_scale.py", test="test_scale[=1+1]", workload="scale")
QUIET = Key(module="tests/test_quiet.py", test="test_quiet", workload="<b>quiet</b>")
SESSION = Session(
    id="s1", date="2026-11-01T10:00:00Z", gpu="NVIDIA H200", uuid="GPU-1", driver="580",
    toolchain="nvrtc 13.0.88", timer="cupti", tick_ns=32.0, overhead_ns=0.0,
)  # fmt: skip
COMMITS = 30
PLANTED = 17


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """30 commits that each record a time anew, with a scatter of 0.3 %; one is 3 % slower and takes two registers."""
    root = tmp_path_factory.mktemp("history")
    draw = np.random.default_rng(5)
    names = []
    for number in range(COMMITS):
        after = number >= PLANTED
        times = {
            ("nvidia-h200", key): time_of(50_000 * float(np.exp(draw.normal(0, 0.003))) * slower, sessions=(SESSION,))
            for key, slower in ((KEY, 1.03 if after else 1.0), (QUIET, 1.0))
        }
        static = {("sm_90", "nvrtc 13.0.88", KEY): static_of(registers=42 if after else 40)}
        BaselineStore(root / "baselines").write(Update(static=static, time=times))
        names.append(commit(root, f"state {number}"))
    return root, names


def test_a_planted_step_is_found_at_its_commit(history, monkeypatch, capsys):
    root, names = history
    monkeypatch.chdir(root)
    assert main(["history"]) == 0
    out = capsys.readouterr().out.splitlines()
    (time,) = [place for place, line in enumerate(out) if line.startswith(f"{KEY} time on nvidia-h200: ")]
    assert f"{COMMITS} commits  " in out[time]
    assert out[time + 1].startswith(f"    +2.7 % at {names[PLANTED][:12]} (2")
    assert out[time + 1].endswith(f", state {PLANTED})")
    (registers,) = [place for place, line in enumerate(out) if " registers on sm_90, nvrtc 13.0.88: 40 -> 42" in line]
    assert "2 commits" in out[registers]  # a record that stays is no new point
    assert f"+5.0 % at {names[PLANTED][:12]}" in out[registers + 1]
    assert sum(" at " in line for line in out) == 2  # and nothing of the quiet one


def test_a_history_is_drawn(history, tmp_path, monkeypatch, capsys):
    root, names = history
    monkeypatch.chdir(root)
    file = tmp_path / "h.html"
    assert main(["history", "tests", "--output", str(file)]) == 0
    page = file.read_text()
    assert page.count('<div class="plot"') == 3
    assert f"at {names[PLANTED][:12]}" in page
    assert "<b>quiet" not in page
    assert "https://" not in page.replace("https://github.com/leeoniya/uPlot", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no_such_test.py"], "nothing on record of no_such_test.py"),
        (["--output", "no/h.html"], "there is no folder no"),
        (["--baselines", "nowhere"], "there is no folder nowhere"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_says_why(history, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(history[0])
    assert main(["history", *arguments]) == 1
    assert says in capsys.readouterr().err

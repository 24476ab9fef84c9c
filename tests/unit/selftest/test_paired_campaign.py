"""The campaign of paired verdicts: what it tries, its processes on a simulated GPU, and promises that go red."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_gpuperf.selftest import refine

ROOT = Path(__file__).parents[3]
Line = dict[str, Any]
DURATIONS = {"loop 2.5 us": 2500.0, "loop 10 us": 1e4, "loop 20 us": 2.1e4, "loop 100 us": 1e5, "loop 1 ms": 1e6,
             "copy 16 MB": 1e4, "copy 64 MB": 3.5e4, "copy 256 MB": 1.3e5, "scatter": 1e5, "softmax": 3e4}  # fmt: skip
UNBOUNDED = "3600"
"""Seconds, as many as it may take: blocks and repeats end it, on a slow machine too."""


@pytest.fixture(scope="module")
def campaign() -> Any:
    """The package beside the script."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(ROOT / "benchmarks"))
    import campaign.cells
    import campaign.child
    import campaign.conduct
    import campaign.merge
    import campaign.plan
    import paired_campaign

    yield {"script": paired_campaign, **{name: getattr(campaign, name) for name in
                                         ("cells", "child", "conduct", "merge", "plan")}}  # fmt: skip
    patch.undo()


@pytest.fixture
def small(campaign: Any, simulated_children: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two kernels, few blocks; in this process only, for children read the modules anew."""
    cells = campaign["cells"]
    wanted = tuple(one for one in cells.WANTED if one.name in ("loop 10 us", "copy 16 MB"))
    for module in ("cells", "plan"):
        monkeypatch.setattr(campaign[module], "WANTED", wanted)
    monkeypatch.setattr(refine, "LOOKING", dataclasses.replace(refine.LOOKING, blocks_max=30))
    monkeypatch.setattr(campaign["child"], "NEVER", dataclasses.replace(campaign["child"].NEVER, blocks_max=40))
    monkeypatch.setattr(cells, "RECORDED", ("loop 10 us",))
    kept = [cells.Cell("loop 10 us", 1.0), cells.Cell("loop 10 us", 0.4), cells.Cell("copy 16 MB", 1.0)]
    monkeypatch.setattr(cells, "effects", lambda timer: kept)
    return campaign


def run_script(campaign: Any, *arguments: str) -> int:
    return int(campaign["script"].main(list(arguments)))


def test_calibrate_measure_confirm_merge(small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """All of it, with each child run in this process, one after the other."""
    started: list[str] = []

    def in_this_process(task: Any, gpu: str) -> int:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpu)
        started.append(f"{task.process.rpartition('-')[0] if task.only_confirm is False else 'confirm'} {gpu}")
        small["child"].run(task)
        return 0

    monkeypatch.setattr(small["conduct"], "start_child", in_this_process)
    monkeypatch.setattr(small["conduct"], "ThreadPoolExecutor", OneThread)
    calls = itertools.count(0x07C4F1)
    monkeypatch.setattr(small["conduct"], "time", SimpleNamespace(time=lambda: next(calls), monotonic=time.monotonic))
    monkeypatch.setattr(small["plan"], "secrets", SimpleNamespace(randbits=lambda bits: next(calls)))
    common = ["--dir", str(tmp_path), "--device", "simulated_machine:open_device"]
    assert run_script(small, "calibrate", *common, "--seconds", UNBOUNDED) == 0
    for part in ("aa", "effects", "blocks"):
        more = ("--gpus", "1,2", "--processes", "2", "--seconds", UNBOUNDED)
        assert run_script(small, "measure", part, *common, *more) == 0
    assert started[:6] == ["aa-cupti-0 1", "aa-cupti-2 1", "confirm 1", "aa-cupti-1 2", "aa-cupti-3 2", "confirm 2"]
    output, replays = tmp_path / "results" / "paired.md", tmp_path / "replays"
    assert run_script(small, "merge", str(tmp_path), "--output", str(output), "--replays", str(replays)) == 0
    text = output.read_text(encoding="utf-8")
    assert capsys.readouterr().out == text + "\n"
    assert "8 verdicts in 4 processes on 2 GPUs: 0 SLOWER" in text
    assert re.search(r"\| loop 10 us \| 10\.[4-6]\d* \| 1\.01", text), "its length is measured, so its digits vary"
    assert "4 (of 4 tried)" in text
    assert "GPU-" not in text, "no UUID leaves the machine"
    (recorded,) = replays.iterdir()
    document = json.loads(recorded.read_text(encoding="utf-8"))
    assert [one["percent"] for one in document["sequences"]] == [0.0, 1.0, 2.0]
    for one in document["sequences"]:
        assert len(one["r"]) == len(one["orders"]) == 40
    assert sum(document["sequences"][2]["r"]) * document["unit"] / 40 == pytest.approx(0.0198, abs=0.001)


class OneThread:
    """A pool that does its work at once."""

    def __init__(self, max_workers: int) -> None: ...

    def __enter__(self) -> OneThread:
        return self

    def __exit__(self, *problem: object) -> None: ...

    def submit(self, work: Any, *arguments: Any) -> Any:
        value = work(*arguments)
        return type("Done", (), {"result": lambda self: value})()


def test_a_child_process_of_its_own(campaign: Any, simulated_children: str, tmp_path: Path,
                                    capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """A plan of the full set of kernels, written by hand; the child is a real process."""
    import msgspec
    from pytest_gpuperf.selftest.kernels import capacity_of
    from pytest_gpuperf.selftest.known_slowdowns import Subject

    plan = [Subject(name=one.name, family=one.family.name, count=2000, capacity=capacity_of(2000),
                    duration_ns=DURATIONS[one.name], counts={}, known={})
            for one in campaign["cells"].WANTED]  # fmt: skip
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode(plan))
    common = ["--dir", str(tmp_path), "--device", "simulated_machine:open_device", "--gpus", "1", "--processes", "1"]
    assert run_script(campaign, "measure", "aa", *common, "--seconds", UNBOUNDED) == 0
    assert "10 verdicts" in capsys.readouterr().err


def test_a_child_that_fails_ends_its_chain(campaign: Any, simulated_children: str, tmp_path: Path,
                                           capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    common = ["--dir", str(tmp_path), "--device", "simulated_machine:no_such", "--gpus", "1", "--processes", "3"]
    assert run_script(campaign, "measure", "aa", *common, "--seconds", "60") == 1
    err = capsys.readouterr().err
    assert err.count(" failed:") == 1
    assert "no_such" in err


def test_without_cupti_only_kernels_of_20_us_and_longer_are_tried(campaign: Any) -> None:
    cells = campaign["cells"]
    for part in ("aa", "effects"):
        names = {cell.subject for cell in cells.cells_of(part, DURATIONS, "graph")}
        assert min(DURATIONS[name] for name in names) >= 20_000
        assert {"loop 20 us", "loop 100 us", "loop 1 ms", "copy 64 MB", "copy 256 MB"} <= names
    assert {cell.subject for cell in cells.cells_of("aa", DURATIONS, "cupti")} == set(DURATIONS)


def test_kernels_and_cells_can_be_chosen_and_a_wrong_name_is_refused(campaign: Any) -> None:
    cells_of = campaign["cells"].cells_of
    chosen = cells_of("blocks", DURATIONS, "cupti", ["softmax@1", "loop 1 ms"])
    assert [(cell.subject, cell.percent) for cell in chosen] == [
        ("loop 1 ms", 0.0), ("loop 1 ms", 1.0), ("loop 1 ms", 2.0), ("softmax", 1.0),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="blocks has no softmx; it has copy 16 MB, copy 16 MB@0"):
        cells_of("blocks", DURATIONS, "cupti", ["softmx"])


def test_a_replay_keeps_the_slowdowns_that_were_not_recorded_again(campaign: Any, tmp_path: Path) -> None:
    def recorded(percent: float, seed: int) -> list[Line]:
        r = [percent / 100] * 30
        line = {"kind": "verdict", "part": "blocks", "subject": "softmax", "timer": "cupti", "process": "p",
                "percent": percent, "known": 1 + percent / 100, "size": 6, "seed": seed, "discarded": 0,
                "orders": "A" * 30, "r": r, "delta": 0.005}  # fmt: skip
        return [{"kind": "process", "process": "p", "model": "NVIDIA H200"}, line]

    write = campaign["merge"].write_replays
    for lines in (recorded(0.0, 1), recorded(1.0, 2), recorded(0.0, 3)):
        write(lines, {"softmax": 55_000.0}, tmp_path)
    document = json.loads((tmp_path / "softmax-cupti.json").read_text(encoding="utf-8"))
    assert [(one["percent"], one["seed"]) for one in document["sequences"]] == [(0.0, 3), (1.0, 2)]


def a_line(number: int = 0, **changes: Any) -> Line:
    return {
        "kind": "verdict", "id": f"p/{number}", "process": "p", "part": "effects", "timer": "cupti", "gpu": "abc",
        "of": "", "subject": "loop 10 us", "percent": 1.0, "delta": 0.005, "known": 1.01, "decision": "slower",
        "blocks": 23, "taken": 23, "discarded": 0, "interval": [1.005, 1.015], "mean_r": 0.00995, "sd_r": 0.001,
        "seconds": 0.1, **changes,
    }  # fmt: skip


def broken(campaign: Any, lines: list[Line], timer: str = "cupti") -> list[str]:
    merge = campaign["merge"]
    return list(merge.promises(merge.gathered(lines), timer, DURATIONS))


def many(count: int = 100, **changes: Any) -> list[Line]:
    return [a_line(number, **changes) for number in range(count)]


def test_kept_promises_are_not_called_broken(campaign: Any) -> None:
    same = many(percent=0.0, known=1.0, decision="same", interval=[0.999, 1.001])
    assert broken(campaign, many()) == broken(campaign, same) == []


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([*many(97), *[a_line(n, decision="inconclusive") for n in range(97, 100)]], "97 of 100 SLOWER, wanted 98%"),
        ([*many(99, percent=2.0), a_line(99, percent=2.0, decision="same")], "99 of 100 SLOWER, wanted 100%"),
        (many(1, percent=0.4, known=1.004, interval=None), "1 of 1 SLOWER, wanted none"),
        (many(1, percent=0.0, known=1.0, decision="faster", interval=None), "SLOWER or FASTER in a first process"),
        (many(100, percent=0.5, delta=0.0025, known=1.005, decision="same"), "0 of 100 SLOWER, wanted 98%"),
        (many(100, interval=[1.02, 1.03]), "intervals hold the true ratio in less than 95"),
    ],
)
def test_each_promise_goes_red(campaign: Any, lines: list[Line], words: str) -> None:
    found = broken(campaign, lines)
    assert any(words in text for text in found), found


def test_a_slower_that_a_second_process_does_not_see_is_not_red(campaign: Any) -> None:
    small = {"percent": 0.4, "known": 1.004, "interval": None}
    lines = [a_line(1, **small), a_line(2, of="p/1", **{**small, "decision": "same"})]
    assert broken(campaign, lines) == []
    lines[1]["decision"] = "slower"
    assert len(broken(campaign, lines)) == 1


def test_short_kernels_are_not_promised_without_cupti(campaign: Any) -> None:
    assert broken(campaign, many(100, decision="same"), "graph") == []
    assert len(broken(campaign, many(100, decision="same"))) == 1


def test_the_truth_of_a_copy_is_what_its_own_gpu_showed(campaign: Any) -> None:
    cells, merge = campaign["cells"], campaign["merge"]
    lines = [
        a_line(gpu="abc", subject="copy 16 MB", mean_r=0.01),
        a_line(gpu="def", subject="copy 16 MB", mean_r=0.02, taken=10),
        a_line(gpu="def", subject="copy 16 MB", mean_r=0.05, taken=30, discarded=10),
    ]
    found = merge.truths(cells.Cell("copy 16 MB", 1.0), lines)
    assert found == {"abc": pytest.approx(1.01005, rel=1e-4), "def": pytest.approx(1.0408, rel=1e-4)}
    assert merge.truths(cells.Cell("loop 10 us", 1.0), many(1)) == {"abc": 1.01}


def test_a_copy_is_held_to_the_promise_where_it_is_as_much_slower_as_its_name_says(campaign: Any) -> None:
    merge = campaign["merge"]
    enough = many(60, gpu="abc", subject="copy 16 MB", mean_r=0.01)
    short = [a_line(n, gpu="def", subject="copy 16 MB", mean_r=0.0095, decision="same") for n in range(60, 120)]
    assert broken(campaign, [*enough, *short]) == []
    text, _ = merge.report([*enough, *short], DURATIONS)
    assert "* copy 16 MB on GPU def: +0.955%, 0 of 60 SLOWER" in text
    assert "| 1.00955 to 1.01005 | 120 |" in text
    missed = [a_line(n, gpu="abc", subject="copy 16 MB", mean_r=0.01, decision="same") for n in range(120, 125)]
    assert broken(campaign, [*enough, *short, *missed]) == ["copy 16 MB +1 % (0.50%): 60 of 65 SLOWER, wanted 98%"]


def test_a_line_that_was_cut_short_is_left_out(
    campaign: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "aa-cupti-0-1.jsonl"
    file.write_text(json.dumps(a_line()) + '\n{"kind": "ver', encoding="utf-8")
    assert campaign["merge"].read(file) == [a_line()]
    assert "cut short" in capsys.readouterr().err

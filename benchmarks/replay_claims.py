"""Run the example suite's claims without a GPU, on what was recorded on an H200, and keep the outcomes.

    python benchmarks/replay_claims.py --to example_suite/outcomes/nvidia-h200.json

Times come from the baselines, counters from ``tests/replays/counters``, static figures from compilation.  A claim that
needs data on a GPU is put on record as not measured.  A run on a GPU (``--claims-to``) gives all of them.  The script
names the claims that are not measured, and fails if the run was red.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent
SUITE = ROOT / "example_suite"
ARCH = "sm_90"
NEEDS_DATA = "only a run on a GPU has data to look at"
sys.path[:0] = [str(HERE), str(SUITE)]

import outcomes  # noqa: E402
import recorded_run  # noqa: E402
from claims import load_claims  # noqa: E402

from pytest_gpuperf.baselines.store import BaselineStore  # noqa: E402
from pytest_gpuperf.model.time_record import TimeRecord, mean_time_ns  # noqa: E402


class Replay(NamedTuple):
    exit_status: int
    printed: str
    found: outcomes.Outcomes | None
    """None where pytest ended before it wrote any."""


def replay(folder: Path, *tests: str, counters: Path = recorded_run.FILE, options: Sequence[str] = ()) -> Replay:
    """Run tests of the example suite, all by default, on what was recorded.

    It is a copy of the suite that is run, and gated too: then the kernels on record of a source are compiled together,
    and ``.gpuperf`` of this repository stays as it is.
    """
    file = folder / "outcomes.json"
    shutil.copytree(SUITE, folder / SUITE.name, ignore=shutil.ignore_patterns("__pycache__"))
    path = os.pathsep.join([str(ROOT), str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""}
    command = [
        sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "recorded_run", "-q",
        f"--config-file={ROOT / 'pyproject.toml'}", f"--rootdir={folder}",
        "--gpuperf", f"--gpuperf-baselines={ROOT / 'baselines'}", f"--gpuperf-arch={ARCH}",
        f"{recorded_run.OPTION}={counters}", f"--claims-to={file}", *options, *(tests or [SUITE.name]),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return Replay(done.returncode, done.stdout + done.stderr, outcomes.read(file) if file.exists() else None)


def completed(found: outcomes.Outcomes) -> outcomes.Outcomes:
    """With recorded times and counters beside the workloads, and a line for every claim that was not reached."""
    recording, store = recorded_run.read(recorded_run.FILE), BaselineStore(ROOT / "baselines")
    records: list[TimeRecord] = []
    workloads: list[Mapping[str, Any]] = []
    for figures in found.workloads:
        test, name = f"{figures['module']}::{figures['test']}", figures["workload"]
        counters = recording.counters.get(test, {}).get(name)
        more: dict[str, Any] = {"counters": counters} if counters else {}
        if (record := recorded_run.time_of(store, recording.gpu, test, name)) is not None:
            records.append(record)
            more |= {"time_ns": mean_time_ns(record.rounds)}
            more |= {unit: value for unit in ("bytes", "flops") if (value := getattr(record, unit)) is not None}
        more |= _static(store, test, name)
        workloads.append({**figures, "gpu": recording.gpu, **more})
    return outcomes.Outcomes(_run(found.run, records), _all(found.claims), workloads)


def _static(store: BaselineStore, test: str, workload: str) -> Mapping[str, float]:
    """Registers and occupancy on record; nothing of a function that launches several kernels."""
    key = recorded_run.key_of(test, workload)
    for toolchain in store.compilers(ARCH, key):
        record = store.static(ARCH, key, toolchain)
        if record is not None and record.occupancy is not None:
            return {"registers": record.profile.registers, "occupancy": record.occupancy.fraction}
    return {}


def _all(claims: Mapping[str, outcomes.Outcome]) -> Mapping[str, outcomes.Outcome]:
    return {
        claim.id: claims.get(claim.id)
        or {"id": claim.id, "verdict": claim.verdict(None).value, "measured": None, "missing": NEEDS_DATA}
        for claim in load_claims().values()
    }


def _run(run: outcomes.Run, records: Iterable[TimeRecord]) -> outcomes.Run:
    """As the baselines' sessions were; what several of them name differently is all named."""
    sessions = {session for record in records for session in record.sessions}

    def words(name: str) -> str:
        return ", ".join(sorted({str(getattr(session, name)) for session in sessions}))

    dates = sorted(session.date[:10] for session in sessions)
    peaks = outcomes.read(outcomes.COMMITTED).run.peaks if outcomes.COMMITTED.exists() else {}
    return dataclasses.replace(
        run, gpu=words("gpu"), driver=words("driver"), toolchain=words("toolchain"),
        date=" to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else run.date, peaks=peaks, source="replay",
    )  # fmt: skip


def tests_of_claims() -> Mapping[str, str]:
    """The test that names a claim, as ``test_matmul.py::test_small_products``; by id."""
    found: dict[str, str] = {}
    for file in sorted(SUITE.glob("test_*.py")):
        named: dict[str, set[str]] = {}
        """Words of each function, and of each constant."""
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            words = {
                str(one.value) if isinstance(one, ast.Constant) else one.id
                for one in ast.walk(node)
                if isinstance(one, ast.Name) or (isinstance(one, ast.Constant) and isinstance(one.value, str))
            }
            if isinstance(node, ast.FunctionDef):
                named[node.name] = words
            elif isinstance(node, ast.Assign):
                named |= {target.id: words for target in node.targets if isinstance(target, ast.Name)}
        for name in named:
            if name.startswith("test_"):
                words = _reached(name, named)
                found |= {word: f"{file.name}::{name}" for word in words if word in load_claims()}
    return found


def _reached(name: str, named: Mapping[str, set[str]]) -> set[str]:
    """Words of a function and of what it names in the same file."""
    seen, ahead = set[str](), [name]
    while ahead:
        one = ahead.pop()
        if one not in seen:
            seen.add(one)
            ahead += [word for word in named[one] if word in named]
    return set[str]().union(*(named[one] for one in seen))


def with_counters(run: outcomes.Outcomes, replayed: outcomes.Outcomes) -> outcomes.Outcomes:
    """What a run without counters measured, and from the recording what only counters tell."""
    known = {(one["module"], one["test"], one["workload"]): one.get("counters") for one in replayed.workloads}
    workloads = []
    for one in run.workloads:
        counters = known.get((one["module"], one["test"], one["workload"]))
        workloads.append({**one, "counters": counters} if counters and "counters" not in one else one)
    claims = {name: _either(outcome, replayed.claims[name]) for name, outcome in run.claims.items()}
    return outcomes.Outcomes(dataclasses.replace(run.run, source="run, counters replayed"), claims, workloads)


def _either(measured: outcomes.Outcome, recorded: outcomes.Outcome) -> outcomes.Outcome:
    """The run's outcome, with the recorded figures of reasons that it lacks; the recorded one if it has none."""
    if measured["measured"] is None:
        return recorded if recorded["measured"] is not None else measured
    reasons = measured.get("because")
    if not reasons or None not in reasons or len(recorded.get("because", ())) != len(reasons):
        return measured
    filled = [there if here is None else here for here, there in zip(reasons, recorded["because"], strict=True)]
    return {**measured, "because": filled}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the claims without a GPU, on what an H200 recorded.")
    parser.add_argument("--to", type=Path, required=True, metavar="JSON", help="the outcomes file to write")
    parser.add_argument("--run", type=Path, metavar="JSON", help="what --claims-to wrote on a GPU, without counters: "
                        "these are filled in")  # fmt: skip
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        done = replay(Path(folder))
    if done.found is None:
        print(done.printed, file=sys.stderr)
        return 1
    found = completed(done.found)
    if chosen.run is not None:
        found = with_counters(outcomes.read(chosen.run), found)
    chosen.to.parent.mkdir(exist_ok=True)
    chosen.to.write_text(outcomes.text_of(found), encoding="utf-8")
    missing = [name for name, outcome in found.claims.items() if outcome.get("missing")]
    print(f"{len(found.claims) - len(missing)} claims replayed; only a GPU has {len(missing)}: {' '.join(missing)}")
    if done.exit_status:
        print(done.printed, file=sys.stderr)
    return done.exit_status


if __name__ == "__main__":
    sys.exit(main())

"""From nothing to a green gate: a fresh environment, an empty repository, ``gpuperf init`` and the commands it names.

    python benchmarks/first_minutes.py

Builds the wheel, installs it with the extra ``static`` into a new environment, and runs what a newcomer would.  Exits
with 1 if a step fails, takes more than two minutes in all, or the wheel or the base install are larger than they may.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_SECONDS = 120.0
MOST_BYTES = 1_500_000
MOST_PACKAGES = 8
"""That the base install adds to pytest and what that needs."""
PYTEST = {"iniconfig", "packaging", "pip", "pluggy", "Pygments", "pygments", "pytest", "setuptools"}


def run(command: Sequence[str], folder: Path, statuses: Sequence[int] = (0,)) -> str:
    """Its output.  Raises ``SystemExit`` for another exit status."""
    begun = time.monotonic()
    done = subprocess.run(list(command), cwd=folder, capture_output=True, text=True, check=False)
    shown = " ".join([Path(command[0]).name, *command[1:]])
    print(f"{time.monotonic() - begun:5.1f} s  {shown}")
    if done.returncode not in statuses:
        raise SystemExit(f"status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def environment(folder: Path, what: str) -> Path:
    """A new one with this installed; its folder of programs."""
    run([sys.executable, "-m", "venv", str(folder)], folder.parent)
    run([str(folder / "bin" / "python"), "-m", "pip", "install", "-q", what], folder.parent)
    return folder / "bin"


def main() -> int:
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)], folder)
        (wheel,) = folder.glob("*.whl")
        base = environment(folder / "base", str(wheel))
        listed = run([str(base / "python"), "-m", "pip", "list", "--format=freeze"], folder).splitlines()
        packages = sorted({line.partition("==")[0] for line in listed} - PYTEST)
        begun = time.monotonic()
        programs = environment(folder / "static", f"{wheel}[static]")
        project = folder / "project"
        project.mkdir()
        for command in (["git", "init", "-q", "."], [str(programs / "gpuperf"), "init"],
                        [str(programs / "pytest"), "--update-baselines"]):  # fmt: skip
            run(command, project)
        green = run([str(programs / "pytest"), "--gpuperf"], project)
        kernel = project / "kernels" / "axpy.cu"
        kernel.write_text(kernel.read_text().replace("y[i] += a * x[i];", "{ float t[64]; for (int k = 0; k < 64; ++k) "
                          "t[k] = x[i] * k; t[(int)a & 63] = a; y[i] += t[(int)x[i] & 63]; }"))  # fmt: skip
        red = run([str(programs / "pytest"), "--gpuperf"], project, statuses=(1,))
        seconds = time.monotonic() - begun
        size = wheel.stat().st_size
    took = f"{seconds:.0f} s from a new environment to green and to red"
    added = f"the base install adds {len(packages)} packages to pytest, at most {MOST_PACKAGES}"
    for what, holds in (
        (f"{took}, at most {MOST_SECONDS:.0f}", seconds <= MOST_SECONDS),
        ("green: 1 workload: 1 UNCHANGED", "1 workload: 1 UNCHANGED" in green),
        ("red, with its cause", "1 WORSE" in red and "cause: stack" in red),
        (f"the wheel has {size} bytes, at most {MOST_BYTES}", size <= MOST_BYTES),
        (f"{added}: {' '.join(packages)}", len(packages) <= MOST_PACKAGES),
    ):
        print(f"{'ok  ' if holds else 'FAIL'} {what}")
        if not holds:
            problems.append(what)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())

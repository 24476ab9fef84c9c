"""A team on two versions of NVRTC: what each member's gate says of nothing, of an accepted change and of a regression.

    python benchmarks/team_toolchains.py [--output docs/results/team_toolchains.md]

Makes two virtual environments with this project and one NVRTC each, and a suite of one kernel whose baselines both have
recorded.  Exit status 1 if a cell of the table is not what the team is promised.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
VERSIONS = ("13.0.88", "13.2.86")
ARCHS = "--gpuperf-arch=sm_80,sm_90,sm_120"
KERNEL = """
extern "C" __global__ void chain(const float* a, float* b) {
    float kept[64];
#pragma unroll
    for (int k = 0; k < 64; ++k) kept[k] = a[threadIdx.x + 32 * k];
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 64; ++k) sum = sum * 0.5f + kept[k];
#pragma unroll
    for (int k = 63; k >= 0; --k) sum = sum * 0.25f + kept[k];
    b[threadIdx.x] = sum;
}
"""
TEST = """
def test_chain(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("chain.cu", "chain", options=[])
    a, b = gpu.random(4096, seed=1), gpu.empty(32)
    gpuperf(kernel.launch(grid=1, block=32, args=(a, b)))
"""
VERDICT = re.compile(r"\b(UNCHANGED|SAME|BETTER|WORSE|NEW|NOT-COMPARABLE|ACCEPTED-ELSEWHERE)\b")
GREEN, RED = 0, 1


class Cell(NamedTuple):
    """What one member's gate says."""

    status: int
    verdict: str

    def __str__(self) -> str:
        return f"{self.verdict}, exit {self.status}"


def pytest_of(python: Path, suite: Path, *flags: str, ci: bool = True) -> Cell:
    environ = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTHONPATH")}
    environ |= {"CI": "true"} if ci else {}
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", *flags]
    done = subprocess.run(command, cwd=suite, env=environ, capture_output=True, text=True, check=False)
    row = next((line for line in done.stdout.splitlines() if line.startswith("  chain ")), "")
    found = VERDICT.search(row)
    return Cell(done.returncode, found[0] if found else "?")


def spilling(suite: Path) -> None:
    """A change that spills, which somebody accepts."""
    _edit(suite / "test_chain.py", "options=[]", 'options=["-maxrregcount=40"]')


def worse(suite: Path) -> None:
    """A regression: more spills."""
    text = (suite / "test_chain.py").read_text(encoding="utf-8")
    flags = 'options=["-maxrregcount=32"]'
    (suite / "test_chain.py").write_text(re.sub(r"options=\[.*?\]", flags, text), encoding="utf-8")


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path.name} has no {old}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def made(folder: Path) -> dict[str, Path]:
    """Python of an environment for each version."""
    found = {}
    for version in VERSIONS:
        home = folder / version
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        python = home / "bin" / "python"
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", f"{ROOT}[static]", f"nvidia-cuda-nvrtc=={version}"], check=True
        )
        found[version] = python
    return found


def suite_in(folder: Path) -> Path:
    folder.mkdir()
    (folder / "pytest.ini").write_text("", encoding="utf-8")
    (folder / "chain.cu").write_text(KERNEL, encoding="utf-8")
    (folder / "test_chain.py").write_text(TEST, encoding="utf-8")
    return folder


def table(folder: Path, pythons: dict[str, Path]) -> list[tuple[str, list[Cell], list[int]]]:
    """A row for each state of the code: the cells of 13.0, of 13.2, and of 13.2 without records; and their promise."""
    first, second = (pythons[version] for version in VERSIONS)

    def gated(suite: Path) -> list[Cell]:
        bare = Path(shutil.copytree(suite, suite.with_name(f"{suite.name}-bare")))
        code = (
            "import sys; from pathlib import Path; from pytest_gpuperf.baselines.store import BaselineStore; "
            "from pytest_gpuperf.baselines.edits import remove\n"
            "remove(BaselineStore(Path('baselines')), sys.argv[1])\n"
        )
        subprocess.run([str(second), "-c", code, f"nvrtc {VERSIONS[1]}"], cwd=bare, check=True)
        places = ((first, suite), (second, suite), (second, bare))
        return [pytest_of(python, place, "--gpuperf") for python, place in places]

    steps: list[tuple[str, Callable[[Path], None] | None, bool, list[int]]] = [
        ("nothing has changed", None, False, [GREEN, GREEN, GREEN]),
        ("13.0 has accepted a change", spilling, True, [GREEN, GREEN, GREEN]),
        ("and then nobody has accepted another", worse, False, [RED, RED, RED]),
    ]
    suite = suite_in(folder / "suite")
    for python in (first, second):
        ended = pytest_of(python, suite, "--update-baselines", ARCHS, ci=False)
        assert ended.status == GREEN, ended
    rows = []
    for number, (name, edit, accepted, promise) in enumerate(steps):
        if edit is not None:
            edit(suite)
        if accepted:
            assert pytest_of(first, suite, "--update-baselines", ci=False).status == GREEN
        rows.append((name, gated(Path(shutil.copytree(suite, folder / f"suite{number}"))), promise))
    return rows


def page(rows: list[tuple[str, list[Cell], list[int]]]) -> str:
    head = "| the code | gate by NVRTC 13.0 | by 13.2 | by 13.2, which has no records yet |\n|---|---|---|---|\n"
    body = "".join(f"| {name} | {' | '.join(map(str, cells))} |\n" for name, cells, _ in rows)
    return (
        "# A team on two compilers\n\nMade by `python benchmarks/team_toolchains.py`: two virtual environments, one "
        "with "
        f"NVRTC {VERSIONS[0]} and one with {VERSIONS[1]}, no GPU, `CI=true pytest --gpuperf` for sm_80, sm_90 and "
        f"sm_120. Both are declared in `manifest.json`.\n\n{head}{body}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the page there, too")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rows = table(Path(name), made(Path(name)))
    text = page(rows)
    sys.stdout.write(text)
    if parsed.output is not None:
        parsed.output.write_text(text, encoding="utf-8")
    return int(any([cell.status for cell in cells] != promise for _, cells, promise in rows))


if __name__ == "__main__":
    sys.exit(main())

"""``gpuperf bisect`` on a GPU, in a repository made for it.

    python benchmarks/history_on_gpu.py

Makes 16 commits that all change the machine code, the eleventh by 2 % more work, and looks for it.  Exits with 1 if the
culprit is another one.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

CULPRIT = 11
KERNEL = """\
extern "C" __global__ void work(const float* a, float* b) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i];
    for (int k = 0; k < %d; ++k) x = x * %ff + a[i];
    b[i] = x;
}
"""
TEST = """\
def test_work(cuda_kernel, gpu, gpuperf):
    a = gpu.random(1 << 20, seed=1)
    b = gpu.empty_like(a)
    gpuperf(cuda_kernel("work.cu", "work").launch(grid=4096, block=256, args=(a, b)))
"""


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, message: str, steps: int, factor: float = 0.25) -> str:
    (folder / "work.cu").write_text(KERNEL % (steps, factor), encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path) -> str:
    """The first commit."""
    git(folder, "init", "-q", "-b", "main")
    (folder / "test_work.py").write_text(TEST, encoding="utf-8")
    (folder / ".gitignore").write_text("__pycache__\n.gpuperf\n", encoding="utf-8")
    return commit(folder, "State 0", 1000)


def bisect(folder: Path) -> int:
    first = repository(folder)
    states = [
        commit(folder, f"State {state}", 1020 if state >= CULPRIT else 1000, 0.25 + state / 100)
        for state in range(1, 17)
    ]
    command = "import sys; from pytest_gpuperf.cli.command_line import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", command, "bisect", "--good", first, "test_work.py"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(done.stdout + done.stderr)
    found = re.search(r"^(\w+) .* made it slower", done.stdout, re.MULTILINE)
    return int(not (found and states[CULPRIT - 1].startswith(found[1])))


def main(arguments: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        return bisect(Path(name))


if __name__ == "__main__":
    sys.exit(main())

"""A small suite of real kernels for plugin tests, with a simulated GPU or with none."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import shutil
import sys
from pathlib import Path

import pytest
from suite_under_test import FILES, HERE, READER, RECORD, SIMULATED, Suite, baselines_of

import pytest_gpuperf

# In-process runs restore sys.modules afterwards, and NumPy and the CUDA bindings cannot be imported twice: import
# all there is before the first of them.
for _name in ("numpy", "scipy.special", "scipy.stats", "cuda.bindings.nvrtc", "pynvml", "cupy"):
    if importlib.util.find_spec(_name.partition(".")[0]):  # CuPy is not installed where there is no GPU
        importlib.import_module(_name)
for _module in pkgutil.walk_packages(pytest_gpuperf.__path__, "pytest_gpuperf."):
    if not _module.name.endswith("__main__"):
        importlib.import_module(_module.name)


@pytest.fixture(scope="session")
def recording(shared_folder: Path) -> Path:
    """Baselines of the suite on the simulated GPU, recorded once."""
    return baselines_of(shared_folder / "recording", FILES, *RECORD)


@pytest.fixture
def recorded(gpu_suite: Suite, recording: Path) -> Suite:
    """On a simulated GPU, with baselines."""
    shutil.copytree(recording, gpu_suite.path / "baselines")
    return gpu_suite


@pytest.fixture(scope="session")
def stand_in_ncu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program ``ncu`` that behaves like the real one."""
    folder = tmp_path_factory.mktemp("ncu")
    text = (HERE / "stand_in_ncu.py").read_text(encoding="utf-8")
    program = folder / "ncu"
    program.write_text(text.replace("#!/usr/bin/env python3", f"#!{sys.executable}", 1), encoding="utf-8")
    program.chmod(0o755)
    return folder


@pytest.fixture
def ncu_suite(recorded: Suite, stand_in_ncu: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """On a simulated GPU, with baselines of times, and with the stand-in for ncu on PATH."""
    recorded.write("conftest.py", SIMULATED + READER)
    monkeypatch.setenv("PATH", f"{stand_in_ncu}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN_NCU_CALLS", str(recorded.path / "calls.jsonl"))
    return recorded


@pytest.fixture(scope="session")
def counting(recording: Path, stand_in_ncu: Path, shared_folder: Path) -> Path:
    """Baselines of the suite on the simulated GPU with counters, recorded once."""
    return baselines_of(
        shared_folder / "counting", {**FILES, "conftest.py": SIMULATED + READER},
        "--update-baselines=new", "--gpuperf-ncu", before=recording,
        PATH=f"{stand_in_ncu}{os.pathsep}{os.environ['PATH']}",
    )  # fmt: skip


@pytest.fixture
def counted(ncu_suite: Suite, counting: Path) -> Suite:
    """The same, with counters on record."""
    shutil.copytree(counting, ncu_suite.path / "baselines", dirs_exist_ok=True)
    return ncu_suite


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """On a machine without a GPU."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # no power cut here; tests/unit/baselines has those
    return Suite(pytester)


@pytest.fixture
def slower(recorded: Suite) -> Suite:
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    return recorded


@pytest.fixture
def gpu_suite(suite: Suite) -> Suite:
    """On a simulated GPU."""
    suite.write("conftest.py", SIMULATED)
    return suite

"""Probes for what static evidence needs: a compiler and a disassembler, as wheels or from a CUDA toolkit."""

from __future__ import annotations

import re
from typing import Any

from pytest_gpuperf.doctor.findings import Finding
from pytest_gpuperf.doctor.machine import Machine, ProgramError

STATIC_ADVICE = "pip install 'pytest-gpuperf[static]'"
NVRTC_DISTRIBUTIONS = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
NVDISASM_FOLDERS = ("/usr/local/cuda*/bin",)


def probe_compiler(machine: Machine) -> list[Finding]:
    """cuda-core, and the NVRTC library behind it: asked for its version, so that it is known to load."""
    core = machine.version("cuda-core")
    if core is None:
        return [_missing("cuda-core", "not installed"), *_nvrtc(machine)]
    return [Finding("static", "cuda-core", "ok", core), *_nvrtc(machine)]


def _nvrtc(machine: Machine) -> list[Finding]:
    try:
        nvrtc: Any = machine.load("cuda.bindings.nvrtc")
        _, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, OSError, RuntimeError) as problem:  # RuntimeError: cuda-bindings found no library to load
        return [_missing("NVRTC", f"does not load: {_first_line(problem)}")]
    exact = next(filter(None, map(machine.version, NVRTC_DISTRIBUTIONS)), None)
    if exact is None:
        return [Finding("static", "NVRTC", "ok", f"{major}.{minor}, from a CUDA toolkit")]
    if not exact.startswith(f"{major}.{minor}."):
        detail = f"{major}.{minor} was loaded although the wheel {exact} is installed"
        return [Finding("static", "NVRTC", "warn", detail, "take the other one off LD_LIBRARY_PATH")]
    return [Finding("static", "NVRTC", "ok", exact)]


def probe_disassembler(machine: Machine) -> list[Finding]:
    path = machine.wheel_program("nvidia-cuda-nvdisasm", "nvdisasm") or machine.find("nvdisasm", NVDISASM_FOLDERS)
    if path is None:
        return [_missing("nvdisasm", "not installed, and no CUDA toolkit has it")]
    try:
        words = machine.run(path, "--version")
    except ProgramError as problem:
        return [_missing("nvdisasm", f"{path} does not run: {problem}")]
    version = re.search(r"V([0-9.]+)", words)
    return [Finding("static", "nvdisasm", "ok", f"{version[1] if version else 'unknown version'} at {path}")]


def _missing(name: str, detail: str) -> Finding:
    return Finding("static", name, "missing", detail, STATIC_ADVICE, required=True)


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]

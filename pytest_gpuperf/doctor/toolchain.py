"""Probes for static evidence: the compiler and the disassembler that the gate itself would use, and the two at work."""

from __future__ import annotations

from typing import Any

from pytest_gpuperf.doctor.findings import ProbeResult
from pytest_gpuperf.doctor.machine import HostMachine

COMPILE = "pytest_gpuperf.compile"
PROBE_ARCH = "sm_90"
PROBE_SOURCE = 'extern "C" __global__ void probe(float *x) { x[threadIdx.x] *= 2.0f; }'


def probe_compiler(machine: HostMachine) -> list[ProbeResult]:
    """NVRTC, asked for its exact version by compiling something."""
    try:
        compiler: Any = machine.load(COMPILE)
        toolchain = compiler.toolchain()
    except ImportError as problem:
        return [_broken("NVRTC", problem)]
    except compiler.CompileProblem as problem:
        return [_missing("NVRTC", problem)]
    return [ProbeResult("static", "NVRTC", "ok", toolchain.removeprefix("nvrtc "))]


def probe_disassembler(machine: HostMachine) -> list[ProbeResult]:
    try:
        compiler: Any = machine.load(COMPILE)
        found = compiler.disassembler()
    except ImportError as problem:
        return [_broken("nvdisasm", problem)]
    except compiler.CompileProblem as problem:
        return [_missing("nvdisasm", problem)]
    return [ProbeResult("static", "nvdisasm", "ok", f"{found.version} at {found.path}")]


def probe_static_evidence(machine: HostMachine) -> list[ProbeResult]:
    """Compiles a kernel and reads its machine code, so that both tools are seen at work."""
    name = "test kernel"
    try:
        compiler: Any = machine.load(COMPILE)
        binary = compiler.compile_kernel(compiler.KernelSource(text=PROBE_SOURCE, name="probe"), PROBE_ARCH)
    except ImportError as problem:
        return [_broken(name, problem)]
    except compiler.CompileProblem as problem:
        return [_missing(name, problem)]
    profile = binary.profile
    detail = f"compiled for {PROBE_ARCH}: {profile.registers} registers, {profile.instructions} instructions"
    return [ProbeResult("static", name, "ok", detail)]


def _broken(name: str, problem: ImportError) -> ProbeResult:
    advice = "pip install --force-reinstall 'pytest-gpuperf[static]'"
    return ProbeResult(
        "static", name, "missing", f"the plugin itself does not import: {problem}", advice, required=True
    )


def _missing(name: str, problem: Exception) -> ProbeResult:
    """The message of ``compile`` names the remedy itself; the extra is the one that always works."""
    detail = (str(problem).strip() or type(problem).__name__).splitlines()[0]
    return ProbeResult("static", name, "missing", detail, "pip install 'pytest-gpuperf[static]'", required=True)

"""Probes for static evidence: the compiler and the disassembler that the gate itself would use, and the two at work."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pytest_gpuperf.doctor.findings import ProbeResult
from pytest_gpuperf.doctor.machine import HostMachine

REMEDY = re.compile(r"\.? (?:Reinstall|Install(?: it)?): ")
"""Begins what a message of the compiler's says to do."""
COMPILE = "pytest_gpuperf.doctor.compiler_parts"
PROBE_ARCH = "sm_90"
PROBE_SOURCE = 'extern "C" __global__ void probe(float *x) { x[threadIdx.x] *= 2.0f; }'


def probe_compiler(machine: HostMachine) -> list[ProbeResult]:
    """NVRTC, asked for its exact version by compiling something."""
    return _asked("NVRTC", machine, lambda compiler: compiler.toolchain().removeprefix("nvrtc "))


def probe_disassembler(machine: HostMachine) -> list[ProbeResult]:
    return _asked("nvdisasm", machine, lambda compiler: _place_of(compiler.disassembler()))


def probe_container_reader(machine: HostMachine) -> list[ProbeResult]:
    """cuobjdump, which takes libraries and fat binaries apart: for ``gpuperf audit`` and ``from_cubin`` alone."""
    return _asked("cuobjdump", machine, lambda compiler: _place_of(compiler.container_reader()), required=False)


def _place_of(tool: Any) -> str:
    return f"{tool.version} at {tool.path}"


def probe_static_evidence(machine: HostMachine) -> list[ProbeResult]:
    """Compiles a kernel and reads its machine code, so that both tools are seen at work."""

    def describe(compiler: Any) -> str:
        source = compiler.KernelSource(text=PROBE_SOURCE, name="probe")
        profile = compiler.compile_kernel(source, PROBE_ARCH).profile
        return f"compiled for {PROBE_ARCH}: {profile.registers} registers, {profile.instructions} instructions"

    return _asked("test kernel", machine, describe)


def _asked(
    name: str, machine: HostMachine, describe: Callable[[Any], str], *, required: bool = True
) -> list[ProbeResult]:
    """What ``describe`` tells of the compiler, or why it cannot tell anything."""
    try:
        compiler: Any = machine.load(COMPILE)
        return [ProbeResult("static", name, "ok", describe(compiler))]
    except ImportError as problem:
        detail = f"the plugin itself does not import: {problem}"
        advice = "pip install --force-reinstall 'pytest-gpuperf[static]'"
    except compiler.CompileProblem as problem:  # whose message may name its remedy; the extra is one that always works
        words = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        detail, _, remedy = REMEDY.sub("\0", words, count=1).partition("\0")
        advice = remedy or "pip install 'pytest-gpuperf[static]'"
    return [ProbeResult("static", name, "missing", detail, advice, required=required)]

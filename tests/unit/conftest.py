"""What nvdisasm is run for."""

from __future__ import annotations

import pytest

from pytest_gpuperf.compile.machine_code import sass


@pytest.fixture
def disassembled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Architectures that nvdisasm runs for."""
    real, archs = sass.run_nvdisasm, []

    def run_nvdisasm(arch: str, code: bytes) -> str:
        archs.append(arch)
        return real(arch, code)

    monkeypatch.setattr(sass, "run_nvdisasm", run_nvdisasm)
    return archs

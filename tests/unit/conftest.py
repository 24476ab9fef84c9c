"""What nvdisasm is run for."""

from __future__ import annotations

import pytest

from pytest_gpuperf.compile.machine_code import sass, stored_code


@pytest.fixture
def disassembled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Architectures that nvdisasm runs for; of stored code nothing is known from before."""
    stored_code._read.cache_clear()
    real, archs = sass.run_nvdisasm, []

    def run_nvdisasm(arch: str, code: bytes) -> str:
        archs.append(arch)
        return real(arch, code)

    monkeypatch.setattr(sass, "run_nvdisasm", run_nvdisasm)
    return archs

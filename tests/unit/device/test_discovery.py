"""Finding the GPU: every way in which there may be none has its reason and its remedy."""

from __future__ import annotations

import os
import types
from pathlib import Path
from typing import Any

import pytest
from device_samples import PROPERTIES, FakeCupy, FakeError
from nvml_samples import FakeNvml

from pytest_gpuperf.device import discovery
from pytest_gpuperf.device.device_errors import NoDevice
from pytest_gpuperf.device.discovery import (
    VARIABLE,
    Nvml,
    bind_worker,
    is_missing_device,
    nominal_facts,
    open_device,
    strangers,
    visible_devices,
)
from pytest_gpuperf.model.architectures import ARCHITECTURES
from pytest_gpuperf.model.device_facts import DeviceState

RAW_UUID = bytes.fromhex("8a56a4bc00112233445566778899aabb")
UUID = "GPU-8a56a4bc-0011-2233-4455-66778899aabb"


DRIVER = types.SimpleNamespace(cuDeviceGetUuid_v2=lambda device: (0, types.SimpleNamespace(bytes=RAW_UUID)))


class Machine:
    """What ``open_device`` finds when it looks around."""

    def __init__(
        self, cupy: Any = None, nvml: Any = None, driver: Any = None, environ: Any = None, library: Any = None
    ) -> None:
        self.modules = {"cupy": cupy or FakeCupy(), "pynvml": nvml or FakeNvml(UUID),
                        "cuda.bindings.driver": driver or DRIVER}  # fmt: skip
        self.environ = {} if environ is None else environ
        self.library = library
        self.visible_at_start: list[str | None] = []

    def load_module(self, name: str) -> Any:
        module = self.modules[name]
        if isinstance(module, Exception):
            raise module
        return module

    def load_library(self, name: str) -> Any:
        if self.library is not None:
            raise self.library
        return types.SimpleNamespace(cuInit=lambda flags: self.visible_at_start.append(self.environ.get(VARIABLE)))

    def open(self, worker: int | None = None) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(discovery.os, "environ", self.environ)
            patch.setattr(discovery.importlib, "import_module", self.load_module)
            patch.setattr(discovery.ctypes, "CDLL", self.load_library)
            return open_device(worker)


def test_the_gpu_is_opened_with_its_facts() -> None:
    device = Machine().open()
    facts = device.facts
    assert (facts.name, facts.slug, facts.arch, facts.uuid) == ("NVIDIA H200", "nvidia-h200", "sm_90", UUID)
    assert (facts.sm_count, facts.l2_bytes, facts.shared_bytes_per_block_optin) == (132, 60 << 20, 227 << 10)
    assert facts.driver == "580.95.05"
    assert facts.max_grid == (2**31 - 1, 65535, 65535)


WITHOUT: dict[str, tuple[dict[str, Any], str]] = {
    "hidden": (
        {"environ": {VARIABLE: "-1"}, "cupy": AssertionError("loaded")},
        "CUDA_VISIBLE_DEVICES='-1' hides every GPU; unset",
    ),
    "no driver": (
        {"library": OSError("libcuda.so.1: cannot open"), "cupy": AssertionError("loaded")},
        r"no NVIDIA driver \(libcuda.so.1.*--gpus all",
    ),
    "no CuPy": (
        {"cupy": ImportError("No module named 'it'")},
        r"CuPy or cuda-bindings cannot be imported \(No module named 'it'\); .*pytest-gpuperf\[cuda13\]",
    ),
    "no binding": ({"driver": ImportError("No module named 'it'")}, "CuPy or cuda-bindings cannot be imported"),
    "old driver": (
        {"cupy": FakeCupy(FakeError("cudaErrorInsufficientDriver: too old"))},
        r"supports CUDA 12.4, and CuPy needs CUDA 13.2; .*\[cuda12\]",
    ),
    "no GPU": ({"cupy": FakeCupy(FakeError("cudaErrorNoDevice: none"))}, r"CUDA does not start \(cudaErrorNoDevice"),
    "old GPU": (
        {"cupy": FakeCupy(properties={**PROPERTIES, "major": 7, "minor": 0})},
        "NVIDIA H200 cannot be used: .*sm_70",
    ),
}


@pytest.mark.parametrize("case", WITHOUT)
def test_why_there_is_no_gpu_and_what_to_do(case: str) -> None:
    machine, words = WITHOUT[case]
    with pytest.raises(NoDevice, match=words):
        Machine(**machine).open()


def test_a_worker_is_bound_before_cuda_is_asked() -> None:
    cupy = FakeCupy()
    machine = Machine(cupy=cupy, environ={VARIABLE: "GPU-a,GPU-b"}, nvml=FakeNvml(UUID.replace("GPU-", "MIG-")))
    facts = machine.open(worker=3).facts
    assert machine.visible_at_start == ["GPU-b"], "the driver reads it when it starts"
    assert ("device", 0) in cupy.log
    assert facts.uuid.startswith("MIG-8a56a4bc"), "a slice is known as such"


@pytest.mark.parametrize(("problem", "missing"), [
    (RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime"), True),
    (AssertionError("Torch not compiled with CUDA enabled"), True),
    (RuntimeError("0 active drivers ([]). There should only be one."), True),
    (ImportError("libcuda.so.1: cannot open shared object file"), True),
    (ModuleNotFoundError("No module named 'cupyx'", name="cupyx"), True),
    (AssertionError("1 of 4 elements differ"), False),
    (ModuleNotFoundError("No module named 'cupy_helpers'", name="cupyx_own"), False),
    (RuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered"), False),
    (KeyboardInterrupt(), False),
])  # fmt: skip
def test_errors_of_users_code_that_say_that_there_is_no_gpu(problem: BaseException, missing: bool) -> None:
    assert is_missing_device(problem) is missing


# --- the GPU of a worker -------------------------------------------------------------------------

UUIDS = ("GPU-8a56a4bc", "MIG-3f0c", "GPU-11")


@pytest.mark.parametrize(
    ("value", "entries"),
    [("0", ["0"]), (" 2 , 0 ", ["2", "0"]), (",".join(UUIDS), list(UUIDS)), ("", []), ("-1", []),
     ("0,-1,2", ["0"]), ("1,,2", ["1"]), ("NoDevFiles", []), ("0,zero,1", ["0"])],
)  # fmt: skip
def test_the_list_is_read_as_the_driver_reads_it(value: str, entries: list[str]) -> None:
    assert visible_devices({VARIABLE: value}) == entries
    assert visible_devices({}) is None, "no variable is not an empty one"


@pytest.mark.parametrize(
    ("value", "worker", "entry", "index"),
    [("4,6", 0, "4", 0), ("4,6", 1, "6", 1), ("4,6", 2, "4", 0), (",".join(UUIDS), 1, "MIG-3f0c", 1), ("7", 5, "7", 0),
     (None, 4, "MIG-3f0c", 1)],
)  # fmt: skip
def test_worker_is_bound_to_an_entry_of_the_list(value: str | None, worker: int, entry: str, index: int) -> None:
    """Never to a bare index of our own; without the variable by a UUID of NVML's."""
    environ = {} if value is None else {VARIABLE: value}
    assert bind_worker(environ, worker, lambda: UUIDS if value is None else ()) == index
    assert environ == {VARIABLE: entry}


# --- NVML ----------------------------------------------------------------------------------------


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """init(1) - shell(10) - controller(20) - workers(30, 31), children (40, 41); another job of the shell(50)."""
    for pid, parent, group in (
        (1, 0, 1), (10, 1, 10), (20, 10, 20), (30, 20, 20), (31, 20, 20), (40, 30, 40), (41, 31, 41), (50, 10, 50),
    ):  # fmt: skip
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a (very) odd name) S {parent} {group} 1 0")
    return tmp_path


def test_the_state_is_what_nvml_says() -> None:
    known = FakeNvml("GPU-11", pids=[1, os.getpid(), 999_999_999], DeviceGetCurrentClocksEventReasons=0x65)
    reasons = ("power cap", "software thermal slowdown", "hardware thermal slowdown")
    assert Nvml(known, "11").state() == DeviceState(sm_clock_mhz=1980, throttle_reasons=reasons)
    for silent in (FakeNvml("GPU-11", Init=FakeNvml.NVMLError("not supported")), FakeNvml("GPU-another")):
        assert Nvml(silent, "11").state() == DeviceState()


@pytest.mark.parametrize("own", [20, 30, 40])
def test_processes_of_this_run_are_no_strangers(own: int, proc: Path) -> None:
    """Be it the controller, a worker, or a child with a group of its own, which has no cousins."""
    cousins = () if own == 40 else (31, 41)
    assert strangers([10, 20, 30, *cousins, 40, 50, 50, 99], own=own, proc=proc) == (50,)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_nominal_facts_are_of_their_architecture(arch: str) -> None:
    facts, limits = nominal_facts(arch), ARCHITECTURES[arch]
    assert (facts.arch, facts.max_threads_per_sm) == (arch, limits.threads_per_sm)

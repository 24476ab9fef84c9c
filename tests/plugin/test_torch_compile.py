"""Functions of ``torch.compile``, kernel by kernel: a stand-in for PyTorch leaves files as it does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from suite_under_test import HERE, KERNEL, RECORD, SIMULATED, Suite, assert_refused, run_bodies, with_baselines

SAMPLES = HERE.parent / "unit" / "device"

TORCH = f"""
import os
import sys
import types
from pathlib import Path
sys.path.insert(0, {str(SAMPLES)!r})
from handed_samples import NARROW, SOFTMAX, WIDE, chosen, compiled_to, program

WINNER, KERNELS = WIDE, [WIDE, NARROW, SOFTMAX]
SEEN = []


class Compiled:
    in_memory = False

    def __call__(self, array, times=1):
        array *= times
        SEEN.append("called")
        if Compiled.in_memory:
            return array
        Compiled.in_memory = True
        folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        assert os.environ["TRITON_CACHE_DIR"] == str(folder / "triton")
        places = {{stem: compiled_to(folder, stem) for stem in KERNELS}}
        if WINNER in places:
            chosen(folder, places[WINNER], XBLOCK=1024 if WINNER == WIDE else 256)
        program(folder, "add", "softmax")
        return array


def reset():
    Compiled.in_memory = False


torch = types.ModuleType("torch")
torch.compiler = types.SimpleNamespace(reset=reset)
sys.modules["torch"] = torch
"""
TEST = """
import pytest
from stand_in import Compiled


@pytest.mark.parametrize("times", [1, 2])
def test_it(cuda_kernel, gpu, times):
    x = gpu.full(64, 3.0)
    kernels = cuda_kernel.from_torch(Compiled(), x, times=times)
    assert kernels.keys() == {"add", "softmax"}
    assert kernels["softmax"].dynamic_shared_bytes == 16
    assert x[0] == 3 * times
"""

FILES = {"work.cu": KERNEL, "stand_in.py": TORCH, "test_suite.py": TEST, "conftest.py": SIMULATED}
WINNER = "WINNER, KERNELS = WIDE, [WIDE, NARROW, SOFTMAX]"


@pytest.fixture
def compiled(suite: Suite, shared_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """On a simulated GPU, with a baseline of a function of two kernels, one of them chosen of two."""
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "where-it-was")
    return with_baselines(suite, shared_folder / "torch", FILES, *RECORD)


def test_every_kernel_is_gated_by_its_name(compiled: Suite) -> None:
    result = compiled.run("--gpuperf", "--gpuperf-open=fail")
    result.assert_outcomes(passed=2)
    result.stdout.re_match_lines([r"  add .* UNCHANGED", r"  softmax .* UNCHANGED"])
    recorded = (compiled.path / "baselines" / "sm_90" / "test_suite.jsonl").read_text()
    assert '"triton 3.6.0"' in recorded
    assert recorded.count('"config":"XBLOCK=1024, num_warps=2, num_stages=1"') == 2
    assert '"block":[128,1,1],"dynamic_shared_bytes":16' in recorded  # the softmax, with its shared memory
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "where-it-was"
    assert "TRITON_CACHE_DIR" not in os.environ


def test_kernel_that_is_worse_fails_by_its_name(compiled: Suite) -> None:
    compiled.edit("stand_in.py", "[WIDE, NARROW, SOFTMAX]", "['add-one-warp-3.6.0', SOFTMAX]")  # with no choice told
    result = compiled.run("--gpuperf")
    result.assert_outcomes(failed=2)
    result.stdout.re_match_lines([r"add  WORSE  on sm_90 \(static\)", r" +occupancy 100 -> 31\.2 %"])


WATCHED = """
import contextlib
import stand_in


class Watched(SimulatedGpu):
    @contextlib.contextmanager
    def lock(self):
        stand_in.SEEN.append("held")
        yield

    def synchronize(self):
        stand_in.SEEN.append("waited")
        super().synchronize()
"""


def test_gpu_is_held_while_pytorch_tunes_and_waited_for(compiled: Suite) -> None:
    conftest = SIMULATED.replace("\ndef work", f"{WATCHED}\ndef work").replace("return Sim", "return Watched() or Sim")
    compiled.write("conftest.py", conftest)
    body = "from stand_in import SEEN, Compiled\ncuda_kernel.from_torch(Compiled(), np.full(64, 3.0, 'float32'))\n"
    run_bodies(compiled, [f"{body}assert SEEN == ['held', 'called', 'waited']"], "--gpuperf").assert_outcomes(passed=1)


TAKES = "from_torch takes the result of torch.compile(...) and the arguments of its call"


def test_what_compiles_no_kernel_is_refused(compiled: Suite) -> None:
    compiled.edit("stand_in.py", WINNER, WINNER.replace("[WIDE, NARROW, SOFTMAX]", "[]"))
    refused = {
        "cuda_kernel.from_torch(None)": TAKES, "cuda_kernel.from_torch([])": TAKES,
        "cuda_kernel.from_torch(stand_in.Compiled(), gpu.full(64, 3.0))":
            "from_torch: the call compiled no Triton kernel",
    }  # fmt: skip
    assert_refused(compiled, refused, before="import stand_in\n")


def test_without_a_gpu_the_test_ends_there(compiled: Suite) -> None:
    compiled.write("conftest.py", "")
    compiled.edit(
        "test_suite.py", "    x = gpu", "    cuda_kernel('work.cu', 'work', options=['-DSTEPS=1'])\n    x = gpu"
    )
    result = compiled.run("--gpuperf")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["  work *NEW", "*2 static only*"])

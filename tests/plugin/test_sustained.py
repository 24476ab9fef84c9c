"""``@pytest.mark.gpuperf(sustained=True)``: what is slower only when it runs on is red in sustained slots alone."""

from __future__ import annotations

from evidence_tree import read_evidence

from pytest_gpuperf.timing import blocks
from pytest_gpuperf.timing.compare import compare
from pytest_gpuperf.workload import gate

POWERED = """
def pytest_configure(config):
    if confirms(config):
        from pytest_gpuperf.timing import blocks
        from pytest_gpuperf.timing.compare import compare
        from pytest_gpuperf.workload import gate

        blocks.BURST_S = 0.004
        gate.compare = lambda gpu, *given, **more: compare(gpu, *given, clock=lambda: gpu.elapsed_ns * 1e-9, **more)

class Powered(SimulatedGpu):
    \"\"\"Code that is not the baseline's takes 3 % longer once it has run for 250 launches in a row.\"\"\"

    last, streak = "", 0

    def release_unused(self):
        self.streak = 0  # each test begins on a GPU that has rested

    def load(self, binary):
        kernel, code = super().load(binary), binary.profile.code_hash

        def launch(*given):
            before = self.elapsed_ns
            kernel(*given)
            self.last, self.streak = code, self.streak + 1 if code == self.last else 1
            if code != "BASELINE" and self.streak > 250:
                self.elapsed_ns += 0.03 * (self.elapsed_ns - before)

        return launch
"""


def test_sustained_slots_see_what_a_kernel_costs_by_running_on(recorded, monkeypatch):
    """Slots of six hundred samples by the simulated GPU's clock: a busy machine's own holds fewer."""
    monkeypatch.setattr(blocks, "BURST_S", 0.004)

    def by_gpu_clock(gpu, *given, **more):
        return compare(gpu, *given, clock=lambda: gpu.elapsed_ns * 1e-9, **more)

    monkeypatch.setattr(gate, "compare", by_gpu_clock)
    content = read_evidence(recorded.path / "baselines/simulated-gpu/test_suite.jsonl")
    baseline = content["tests"]["test_work[1024]"]["work"]["identity"]["code"]
    recorded.edit("conftest.py", "\ndef work(", f"{POWERED.replace('BASELINE', baseline)}\ndef work(")
    recorded.edit("conftest.py", "return SimulatedGpu(", "return Powered(")
    recorded.change_code()
    recorded.run("--gpuperf", "-k", "1024").stdout.re_match_lines([r"  work .*SAME"])
    recorded.edit("test_suite.py", "@pytest.mark.param", "@pytest.mark.gpuperf(sustained=True)\n@pytest.mark.param")
    result = recorded.run("--gpuperf", "-k", "1024")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"work  SLOWER  on simulated-gpu \(time\)  x1\.0[23]\d ", r" +in sustained slots"])

"""Code that did not change and is slower than its record: excused by evidence alone, else UNEXPLAINED."""

from __future__ import annotations

import pytest

ONE = ("-k", "1024")
UNEXPLAINED = [
    r".*work  UNEXPLAINED  on simulated-gpu \(time\)  x1\.(49|50|51)\d .*identity",
    r" +the machine code and its launch are those of the baseline, and it takes \+(49|50)\.\d % time: nothing says "
    r"that the machine did it \(canary kernels: copy [+-]0\.\d %, fma [+-]0\.\d %\), so look at what is no code: .*",
    r".*its rounds were taken twice, the second time on other addresses: x(1.00|0.99)\d of the first",
]


def slow(suite, settings):
    suite.edit("conftest.py", "SimulatedGpu(", f"SimulatedGpu({settings}, ")


def test_slower_by_half_with_canaries_at_rest_is_unexplained_and_fails_where_open_fails(recorded):
    """Its inputs, constants or what it reads through pointers changed, none of which is in the identity."""
    slow(recorded, "slow={'work': 1.5}")
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines(UNEXPLAINED)
    result = recorded.run("--gpuperf", "--gpuperf-open=fail", *ONE)
    result.assert_outcomes(failed=1)
    assert result.ret == 1


def test_equal_pairs_that_are_slower_than_the_record_are_no_excuse_either(recorded):
    """Code that was edited too, and is no slower than the baseline's on today's inputs."""
    recorded.change_code()
    slow(recorded, "slow={'work': 1.5}")
    result = recorded.run("--gpuperf", "--gpuperf-open=fail", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"work  UNEXPLAINED  .*paired.*",
            r" +\+(49|50)\.\d % against the record and proven to be less than 1 % slower.* when paired: nothing says",
        ]
    )


def test_a_machine_that_became_slower_meanwhile_is_seen_by_canaries_of_that_moment(recorded):
    """The canaries are timed when the process begins; then the GPU gets slower by half."""
    recorded.edit("conftest.py", "def work(", LATER + "\n\ndef work(")
    recorded.edit("conftest.py", "SimulatedGpu(", "Later(")
    result = recorded.run("--gpuperf", "--gpuperf-open=fail", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r".*work  ENV-SHIFT", r".*canary kernels moved, too: copy \+(49|50).*"])


LATER = """
class Later(SimulatedGpu):
    def load(self, binary):
        if binary.name == 'work':
            self._factor *= 1.5
        return super().load(binary)
"""


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("slowdown=1.5", "canary kernels moved, too: copy +*"),
        ("slow={'work': 1.5}, uuid='GPU-2'", "another GPU of the same model"),
    ],
)
def test_evidence_that_the_machine_did_it_excuses(recorded, settings, words):
    slow(recorded, settings)
    result = recorded.run("--gpuperf", "--gpuperf-open=fail", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*work  ENV-SHIFT *", f"*{words}*"])


def test_a_machine_with_another_power_limit_excuses(recorded):
    slow(recorded, "slow={'work': 1.5}")
    path = recorded.path / "baselines" / "simulated-gpu" / "test_suite.json"
    path.write_text(path.read_text().replace('"power_limit_w": 700', '"power_limit_w": 600'))
    result = recorded.run("--gpuperf", "--gpuperf-open=fail", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*work  ENV-SHIFT *", "*power limit 600 W -> 700 W*"])


MANY = """
import pytest

@pytest.mark.parametrize("size", range(1000, 1008))
def test_work(cuda_kernel, gpu, gpuperf, size):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])
    a = gpu.random(size, seed=1)
    gpuperf(kernel.launch(grid=8, block=256, args=(a, gpu.empty_like(a), size)))
"""


def test_a_workload_that_moved_as_most_others_did_before_it_is_excused(gpu_suite):
    gpu_suite.write("test_suite.py", MANY)
    gpu_suite.run("--update-baselines", "--gpuperf-rounds=8", "--gpuperf-processes=2", "--gpuperf-force-update")
    slow(gpu_suite, "slow={'work': 1.5}")
    result = gpu_suite.run("--gpuperf", "-v")
    result.stdout.re_match_lines([r"  work .* UNEXPLAINED$"] * 5 + [r"  work .* ENV-SHIFT$"] * 3)
    result.stdout.fnmatch_lines(["*(5 other unchanged workloads moved by +* %, median)*"])


def test_an_unchanged_suite_on_a_machine_at_rest_has_none_in_twenty_runs(recorded, monkeypatch):
    slow(recorded, "process_sd=0.003")
    for seed in range(100, 120):
        monkeypatch.setenv("SIMULATED_GPU_SEED", str(seed))
        result = recorded.run("--gpuperf", "--gpuperf-open=fail")
        result.assert_outcomes(passed=3)
        assert "UNEXPLAINED" not in result.stdout.str()

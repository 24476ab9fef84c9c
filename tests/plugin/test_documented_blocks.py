"""Every block of code on the README and in the documentation passes, by a rule for its language.

A block that no rule covers fails, and so does a rule's entry that no block needs any more.  Messages in the README and
in the manual are what the command prints.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import documented_commands
import pytest
import yaml
from documented_commands import WrongCommand, tomllib
from documented_scenes import SCENES, Scene, files
from markdown_pages import PAGES, ROOT, Block, blocks
from suite_under_test import Suite

from pytest_gpuperf.advise.causes import BY_KEY
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.model.verdict import Verdict

STEPS = Path(__file__).with_name("test_tutorial.py").read_text(encoding="utf-8")
RUN_STEP_BY_STEP = {
    "README.md", "docs/tutorial/first-regression.md", "docs/tutorial/two-branches.md", "docs/how-to/migrating.md",
}  # fmt: skip
"""Pages whose Python blocks, and the outputs beside them, ``test_tutorial.py`` runs."""
FOLDERS = {ROOT, *(ROOT / "docs" / kind for kind in ("tutorial", "how-to", "explanation", "reference"))}
BLOCKS = [block for page in PAGES if page.parent in FOLDERS for block in blocks(page)]
PYTHON = [block for block in BLOCKS if block.language == "python" and block.page not in RUN_STEP_BY_STEP]
PROBLEMS = (AssertionError, WrongCommand, pytest.UsageError, ValueError, pytest.fail.Exception)

NOT_RUN = {
    ("docs/how-to/other-compilers.md", "Kernels of Triton"): "Triton's warmup asks a driver; tests/gpu runs it",
    ("docs/how-to/writing-tests.md", "Kernels of CuPy and Numba"): "needs CuPy and Numba; tests/gpu runs such",
    ("docs/how-to/other-compilers.md", "Kernels that Triton tunes"): "tests/gpu runs its like",
    ("docs/how-to/callables.md", "Gate what a callable launches"): "tests/gpu runs its like",
    ("docs/how-to/other-compilers.md", "Kernels of the CuTe DSL"): "it needs the CuTe DSL; tests/gpu runs it",
    ("docs/how-to/other-compilers.md", "Kernels of TileLang"): "it needs TileLang",
    ("docs/how-to/other-compilers.md", "Kernels of cuTile"): "it needs cuTile; tests/gpu runs its cubins",
}
"""Python blocks that are compiled and not run, by page and heading."""
SHOWN = {
    ("docs/how-to/audit.md", "bitsandbytes/libbitsandbytes"): "two public wheels",
    ("docs/explanation/baselines.md", "baselines/"): "a tree of files",
    ("docs/explanation/baselines.md", "# .gitattributes"): "a file of git's",
    ("docs/explanation/statistics.md", "E = mean over c"): "a formula",
    ("docs/explanation/why-slower.md", "test_x.py::test_transpose"): "a line of a run",
    ("docs/explanation/why-slower.md", "roof: at 91 %"): "a line of an H200",
    ("docs/how-to/bisect.md", "tests/test_scan.py::"): "thirty commits of times",
    ("docs/how-to/counters.md", "counters "): "a table of a GPU",
    ("docs/how-to/reports.md", "test_work.py::test_scale"): "a line of a run",
}
"""Blocks of text that nothing can run, by page and first words."""
MESSAGE = re.compile(r"\S.*  (WORSE|SLOWER)  on [\w-]+ \((static|time)\)")


def place_of(block: Block) -> tuple[str, str]:
    return (block.page, block.section)


def run_as_tests(texts: list[tuple[Scene, str]], suite: Suite) -> pytest.RunResult:
    """Run each block as a test of its own on a simulated GPU; all with the arguments of the first."""
    for number, (scene, text) in enumerate(texts):
        for name, content in files(scene, text, f"test_block_{number}.py").items():
            (suite.path / name).parent.mkdir(exist_ok=True)
            suite.write(name, content)
    tests = [f"test_block_{number}.py" for number in range(len(texts))]
    return suite.run("--gpuperf", "-rA", *texts[0][0].arguments, *tests)


def python(block: Block, suite: Suite) -> None:
    """Compiles; and its page is run by a test that reads it, or it is run as a test below."""
    if block.page in RUN_STEP_BY_STEP:
        assert Path(block.page).name in STEPS
    else:
        compile(block.text, block.place, "exec")
        known = place_of(block) in SCENES.keys() | NOT_RUN.keys()
        assert known, f"{block.place}: add a scene to documented_scenes.py, or a test that runs the page"


def cuda(block: Block, suite: Suite) -> None:
    """Is whole, and NVRTC compiles each of its kernels."""
    kernels = re.findall(r"__global__ void (\w+)", block.text)
    assert kernels
    suite.write("block.cu", block.text)
    calls = "".join(f"    assert cuda_kernel('block.cu', {name!r}).registers > 0\n" for name in kernels)
    suite.write("test_block.py", f"def test_block(cuda_kernel):\n{calls}")
    suite.run("--gpuperf-arch=sm_90", "test_block.py").assert_outcomes(passed=1)


def bash(block: Block, suite: Suite) -> None:
    """Every command, or on a console every line behind a prompt, is one that its program's own parser takes."""
    prompted = re.findall(r"^\$ (.+)$", block.text, re.MULTILINE)
    lines = "\n".join(prompted) if block.language == "console" else block.text
    assert documented_commands.check(lines, suite.pytester) > 0


def toml(block: Block, suite: Suite) -> None:
    """pytest takes it as its configuration, and the plugin every setting."""
    assert tomllib.loads(block.text)
    suite.write("pyproject.toml", block.text)
    assert suite.run("--gpuperf", "--strict-config", "--collect-only").ret == 0


def yaml_of_ci(block: Block, suite: Suite) -> None:
    """Parses, and every command in it is one that its program's parser takes; so is every input of the action."""
    scripts, inputs = [], []
    waiting = [yaml.safe_load(block.text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            scripts += [node[key] for key in ("run",) if key in node]
            scripts += [line for key in ("script", "after_script", "args") for line in node.get(key, [])]
            inputs += list(node["with"]) if "pytest-gpuperf@" in node.get("uses", "") else []
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert set(inputs) <= set(action["inputs"])
    assert scripts or inputs
    for script in scripts:
        documented_commands.check(script, suite.pytester)


def xml(block: Block, suite: Suite) -> None:
    """Parses; its properties are the plugin's, and their values verdicts or statuses."""
    properties = [item.attrib for item in ElementTree.fromstring(block.text).iter("property")]
    assert properties
    assert all(item["name"].startswith("gpuperf.") for item in properties)
    assert {item["value"] for item in properties} <= {"static only", *(verdict.value for verdict in Verdict)}


def text(block: Block, suite: Suite) -> None:
    """A message names causes as the code has them; other output is printed by the page's own test, or only shown."""
    if MESSAGE.match(block.text):
        said = re.sub(r"\s+", " ", block.text)
        for cause in re.findall(r"cause: ([^(:]+?) \(", said):
            assert f": {BY_KEY[cause].says} " in said
            assert f"-> {BY_KEY[cause].remedy} " in said
        assert MESSAGE.match(block.text)[1] in Verdict.__members__  # type: ignore[index]
    elif block.page in RUN_STEP_BY_STEP:
        assert f', "{block.text[:10]}' in STEPS
    else:
        shown = [words for page, words in SHOWN if page == block.page and block.text.startswith(words)]
        assert shown, f"{block.place}: no rule covers this text; label it as a language, or list it in SHOWN"


RULES: dict[str, Callable[[Block, Suite], None]] = {
    "python": python, "cuda": cuda, "bash": bash, "console": bash, "toml": toml, "yaml": yaml_of_ci, "xml": xml,
    "text": text,
}  # fmt: skip


@pytest.mark.parametrize("language", RULES)
def test_blocks_pass(suite: Suite, language: str) -> None:
    for block in BLOCKS:
        if block.language == language:
            try:
                RULES[language](block, suite)
            except PROBLEMS as problem:
                raise AssertionError(f"{block.place}: {problem}") from problem


@pytest.mark.parametrize("arguments", sorted({scene.arguments for scene in SCENES.values()}))
def test_python_blocks_pass_as_tests(suite: Suite, arguments: tuple[str, ...]) -> None:
    scenes = [(SCENES[place_of(block)], block.text) for block in PYTHON if place_of(block) in SCENES]
    result = run_as_tests([one for one in scenes if one[0].arguments == arguments], suite)
    outcomes = result.parseoutcomes()
    assert result.ret == 0, result.stdout.str()
    assert outcomes["passed"] >= len([one for one in scenes if one[0].arguments == arguments])
    assert outcomes.keys() <= {"passed", "deselected", "warnings"}


def test_every_language_has_a_rule_and_every_entry_of_a_rule_is_needed() -> None:
    assert {block.language for block in BLOCKS} <= RULES.keys()
    assert (SCENES.keys() | NOT_RUN.keys()) - {place_of(block) for block in PYTHON} == set()
    texts = [block for block in BLOCKS if block.language == "text"]
    lost = [entry for entry in SHOWN if not any(b.page == entry[0] and b.text.startswith(entry[1]) for b in texts)]
    assert lost == []


# --- messages ------------------------------------------------------------------------------------

ARCH = "sm_90"
MANUAL = "docs/explanation/why-slower.md"
ACCEPT = "If this change is intended"
EXAMPLES = {
    "at most 128 registers": "occupancy_registers", "template": "sample7_template_branch",
    "FloatLiteral": "math_cost_ladder",
}  # fmt: skip
"""Family of the workload that a message is about."""


def messages(page: str) -> dict[str, str]:
    """Messages of a page by workload, from the verdict to the words on how to accept the change."""
    text = (ROOT / page).read_text(encoding="utf-8")
    said = re.findall(rf"^(\S[^\n]*)  WORSE  on {ARCH} \(static\)\n(.*?)^{ACCEPT}", text, re.DOTALL | re.MULTILINE)
    return {name: f"{name}  WORSE  on {ARCH} (static)\n{body}{ACCEPT}" for name, body in said}


def test_messages_are_printed_as_they_stand(tmp_path: Path) -> None:
    """By the gate, without a GPU, of the naive siblings of all of these workloads, compiled here and now."""
    text = (ROOT / "baselines" / ARCH / "example_suite" / "test_math_cost_ladder.jsonl").read_text(encoding="utf-8")
    if toolchain() not in re.findall(r'"(nvrtc [0-9.]+)"', text):
        pytest.skip(f"the committed baselines are not of {toolchain()}")
    for name in ("example_suite", f"baselines/{ARCH}", "baselines/cubins"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    chosen = [f"{family}:{name}" for name, family in EXAMPLES.items()]
    run = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "siblings.py", *chosen, f"--gpuperf-arch={ARCH}"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert run.returncode == 1, run.stdout + run.stderr
    documented = messages("README.md") | messages(MANUAL)
    assert documented.keys() == EXAMPLES.keys()
    for page in ("README.md", MANUAL):
        assert [message for message in messages(page).values() if message not in run.stdout] == [], run.stdout

"""Every block of code on the README and in the documentation passes, by a rule for its language.

A block that no rule covers fails, and so does a rule's entry that no block needs any more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import documented_commands
import pytest
import yaml
from documented_commands import WrongCommand, tomllib
from documented_scenes import SCENES, files
from markdown_pages import PAGES, ROOT, Block, blocks
from suite_under_test import Suite

from pytest_gpuperf.advise.causes import BY_KEY
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.session.end_of_run import EXIT_NOTHING_MEASURED

FOLDERS = {ROOT, *(ROOT / "docs" / kind for kind in ("tutorial", "how-to", "explanation", "reference"))}
BLOCKS = [block for page in PAGES if page.parent in FOLDERS for block in blocks(page)]

RUN_BY = {
    "README.md": "test_readme_example.py",
    "docs/tutorial/first-regression.md": "test_tutorial.py",
    "docs/tutorial/two-branches.md": "test_tutorial_branches.py",
    "docs/how-to/migrating.md": "test_migrating.py",
}
"""Pages whose Python blocks, and the outputs beside them, are run step by step by a test of their own."""
NOT_RUN = {
    ("docs/how-to/other-compilers.md", "Kernels of Triton"): "Triton's warmup asks a driver; tests/gpu runs it",
    ("docs/how-to/writing-tests.md", "Kernels of CuPy and Numba"): "needs CuPy and Numba; tests/gpu runs such",
    ("docs/how-to/other-compilers.md", "Kernels that Triton tunes"): "tests/gpu runs its like",
    ("docs/how-to/other-compilers.md", "Functions of torch.compile"): "tests/gpu runs its like",
    ("docs/how-to/other-compilers.md", "Kernels of the CuTe DSL"): "it needs the CuTe DSL; tests/gpu runs it",
    ("docs/how-to/other-compilers.md", "Kernels of cuTile"): "it needs cuTile; tests/gpu runs its cubins",
}
"""Python blocks that are compiled and not run, by page and heading."""
SHOWN = {
    ("docs/how-to/audit.md", "bitsandbytes/libbitsandbytes"): "two public wheels",
    ("docs/explanation/baselines.md", "baselines/"): "a tree of files",
    ("docs/explanation/baselines.md", "# .gitattributes"): "a file of git's",
    ("docs/explanation/statistics.md", "E = mean over c"): "a formula",
    ("docs/explanation/why-slower.md", "test_x.py::test_transpose"): "a line of a run",
    ("docs/how-to/bisect.md", "tests/test_scan.py::"): "thirty commits of times",
    ("docs/how-to/reports.md", "test_work.py::test_scale"): "a line of a run",
}
"""Blocks of text that nothing can run, by page and first words."""
USES = r"(?<![.\w])(cuda_kernel|gpuperf)\("
"""A test without any of these is one of which a gated run says that nothing was measured."""
MESSAGE = re.compile(r"\S.*  (WORSE|SLOWER)  on [\w-]+ \((static|time)\)")


def python(block: Block, suite: Suite) -> None:
    """Compiles, and runs as a test on a simulated GPU; or its page is run by a test that reads it."""
    place = (block.page, block.section)
    if block.page in RUN_BY:
        text = (Path(__file__).parent / RUN_BY[block.page]).read_text(encoding="utf-8")
        assert Path(block.page).name in text
        assert "python" in text
    elif place in NOT_RUN:
        compile(block.text, block.place, "exec")
    else:
        assert place in SCENES, f"{block.place}: add a scene to documented_scenes.py, or a test that runs the page"
        for name, text in files(SCENES[place], block.text).items():
            (suite.path / name).parent.mkdir(exist_ok=True)
            suite.write(name, text)
        result = suite.run("--gpuperf", *SCENES[place].arguments, "test_block.py")
        result.assert_outcomes(passed=1)
        assert result.ret == (0 if re.search(USES, SCENES[place].before + block.text) else EXIT_NOTHING_MEASURED)


def cuda(block: Block, suite: Suite) -> None:
    """Is whole, and NVRTC compiles each of its kernels."""
    kernels = re.findall(r"__global__ void (\w+)", block.text)
    assert kernels
    suite.write("block.cu", block.text)
    calls = "".join(f"    assert cuda_kernel('block.cu', {name!r}).registers > 0\n" for name in kernels)
    suite.write("test_block.py", f"def test_block(cuda_kernel):\n{calls}")
    suite.run("--gpuperf-arch=sm_90", "test_block.py").assert_outcomes(passed=1)


def bash(block: Block, suite: Suite) -> None:
    """Every command is one that its program's own parser takes."""
    assert documented_commands.check(block.text, suite.pytester) > 0


def console(block: Block, suite: Suite) -> None:
    """The same of the lines behind a prompt; what the README prints ``test_documented_messages.py`` prints too."""
    prompted = re.findall(r"^\$ (.+)$", block.text, re.MULTILINE)
    assert documented_commands.check("\n".join(prompted), suite.pytester) > 0


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
    elif block.page in RUN_BY:
        test = (Path(__file__).parent / RUN_BY[block.page]).read_text(encoding="utf-8")
        assert f'shown("{block.text[:10]}' in test
    else:
        shown = [words for page, words in SHOWN if page == block.page and block.text.startswith(words)]
        assert shown, f"{block.place}: no rule covers this text; label it as a language, or list it in SHOWN"


RULES: dict[str, Callable[[Block, Suite], None]] = {
    "python": python, "cuda": cuda, "bash": bash, "console": console, "toml": toml, "yaml": yaml_of_ci, "xml": xml,
    "text": text,
}  # fmt: skip


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_block_passes(block: Block, suite: Suite) -> None:
    assert block.language in RULES, f"{block.place}: no rule covers {block.language or 'a block without a language'}"
    RULES[block.language](block, suite)


def test_every_entry_of_a_rule_is_needed() -> None:
    places = {(block.page, block.section) for block in BLOCKS if block.language == "python"}
    assert (SCENES.keys() | NOT_RUN.keys()) - places == set()
    texts = [block for block in BLOCKS if block.language == "text"]
    lost = [entry for entry in SHOWN if not any(b.page == entry[0] and b.text.startswith(entry[1]) for b in texts)]
    assert lost == []


@pytest.mark.parametrize(
    ("language", "wrong"),
    [
        ("bash", "pytest --gpuperf --gpuperf-speed=7"), ("bash", "pytest --gpuperf --gpuperf-budget=many"),
        ("bash", "gpuperf explain --loud x"), ("bash", "pip install 'pytest-gpuperf[fast]'"), ("bash", "make tea"),
        ("bash", "frobnicate"), ("console", "$ gpuperf nonsense"), ("toml", "[tool.pytest.ini_options]\ngpuperf_x = 1"),
        ("yaml", "- run: pytest --gpuperf-speed"), ("cuda", "__global__ void f() { x = 1; }"),
        ("text", "something said"), ("xml", '<a><property name="gpuperf.x" value="FINE"/></a>'),
        ("python", "import pytest"),
    ],
)  # fmt: skip
def test_a_wrong_block_is_noticed(suite: Suite, language: str, wrong: str) -> None:
    problems = (AssertionError, WrongCommand, pytest.UsageError, ValueError, pytest.fail.Exception)
    with pytest.raises(problems):
        RULES[language](Block("docs/new.md", 1, language, wrong, "New"), suite)


@pytest.mark.parametrize(
    ("heading", "right", "wrong"),
    [
        ("Writing tests", "0.7 * gpu", "7 * gpu"), ("Writing tests", "swapaxes(1, 2)", "swapaxes(0, 1)"),
        ("Compile a kernel and launch it", "shared_bytes=0", "shared=0"),
        ("Make data and compare results", "x @ w", "x @ w + 1"), ("Make data and compare results", "sm_count", "sms"),
        ("Measure a workload", "(y, x))", "(y, x + 1))"), ("Measure a workload", "x.set(", "x.put_back("),
        ("Assert on what was measured", "<= 32", "<= 2"), ("Assert on what was measured", '"tensor"', '"tensors"'),
        ("Set what holds for one test", 'cache="warm"', 'cache="tepid"'),
    ],
)  # fmt: skip
def test_a_python_block_that_does_not_hold_is_noticed(suite: Suite, heading: str, right: str, wrong: str) -> None:
    page = "docs/how-to/writing-tests.md"
    (block,) = [b for b in BLOCKS if (b.page, b.section, b.language) == (page, heading, "python")]
    assert right in block.text
    with pytest.raises((AssertionError, ValueError, pytest.fail.Exception)):
        python(block._replace(text=block.text.replace(right, wrong)), suite)

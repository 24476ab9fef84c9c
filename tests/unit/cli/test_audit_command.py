"""``gpuperf audit``: what it says of wheels and libraries, which kernel is which, and what keeps it from an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fat_binaries import MADE_BY_NVCC, cubin_of, fat_binary, wheel
from record_samples import static_of

from pytest_gpuperf.cli import audit_command
from pytest_gpuperf.cli.audit_command import AuditedPairs, compared
from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.compile.machine_code import binary
from pytest_gpuperf.compile.machine_code.audited import AuditedKernel

TEXT = """
extern "C" __global__ void copy(float* a) { a[threadIdx.x] = a[threadIdx.x + 1]; }
template<int SIZE> __global__ void keep(float* a, int n)
{
    float own[SIZE];
    for (int i = 0; i < SIZE; ++i) own[i] = a[i * n];
    a[threadIdx.x] = own[n % SIZE] FACTOR;
}
template __global__ void keep<4>(float*, int);
template __global__ void keep<NEW>(float*, int);
"""
LIBRARY = "p/_C.cpython-312-x86_64-linux-gnu.so"
ARCHS = ("sm_80", "sm_90")


def built(text: str = TEXT, *options: str, archs: tuple[str, ...] = ARCHS) -> bytes:
    """A fat binary of the text."""
    usual = [one for one in ("-DFACTOR=", "-DNEW=5") if not any(option.startswith(one[:5]) for option in options)]
    return fat_binary((arch, cubin_of(text, "copy", arch, *options, *usual)) for arch in archs)


LARGE = TEXT.replace("for (int", '_Pragma("unroll 1") for (int')
"""Its arrays are indexed, and lie in local memory."""

Audit = Callable[..., Any]


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Audit) -> Audit:
    """Status, and all that is printed."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: ((found := command("audit", *arguments))[0], "".join(found[1:]))


def release(folder: str, members: Mapping[str, bytes] | bytes, version: str = "1.0") -> Path:
    Path(folder).mkdir(exist_ok=True)
    members = {LIBRARY: members} if isinstance(members, bytes) else members
    return wheel(Path(folder, f"p-{version}-cp312-cp312-linux_x86_64.whl"), members)


def unwrapped(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_a_kernel_that_grows_a_stack_frame_fails_by_name_with_its_figures(audit: Audit) -> None:
    old, new = release("a", built()), release("b", built(LARGE), "1.1")
    status, said = audit(new, "--against", old)
    assert status == 1
    words = unwrapped(said)
    assert words.startswith("p/_C.so keep<5> WORSE on sm_80, sm_90: ")
    assert re.search(r"WORSE on sm_80, sm_90: stack frame 0 -> 24 bytes, instructions: local_load 0 -> \d+", words)
    assert words.endswith("4 WORSE, 2 UNCHANGED ")
    status, page = audit(new, "--against", old, "--markdown")
    assert status == 1
    assert "| kernel | verdict | target | change |" in page
    assert re.search(r"<code>keep&lt;5&gt;</code> \| WORSE \| sm\\_80, sm\\_90 \| stack frame 0 -&gt; 24 bytes", page)
    Path("old.so").write_bytes(built())
    Path("new.so").write_bytes(built(LARGE))
    status, said = audit("new.so", "--against", "old.so")
    assert (status, said.startswith("new.so\n")) == (1, True)


@pytest.mark.parametrize(("old", "new", "status", "words"), [
    ([TEXT], [TEXT], 0, "6 UNCHANGED"), ([LARGE], [TEXT], 0, "BETTER on sm_80, sm_90: stack frame 24 -> 0 bytes"),
    ([TEXT], [TEXT, "-DFACTOR=*2.0f"], 0, "4 SAME, 2 UNCHANGED"),
    ([TEXT], [TEXT, "-DFACTOR=*2.1"], 1, "instructions: fp64 0 ->"),
], ids=["the same", "better", "other code with equal figures", "a double that appears"])  # fmt: skip
def test_two_builds_are_compared(audit: Audit, old: list[str], new: list[str], status: int, words: str) -> None:
    found, said = audit(release("b", built(*new)), "--against", release("a", built(*old)))
    assert (found, words in unwrapped(said)) == (status, True)


def test_without_a_disassembler_the_figures_of_the_sections_gate(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise ToolchainMissing("no nvdisasm")

    old, new, double = release("a", built()), release("b", built(LARGE)), release("c", built(TEXT, "-DFACTOR=*2.1"))
    words = "4 changed kernels compared by registers, stack, memory and size alone"
    with monkeypatch.context() as patch:  # nor where there is no time for it
        patch.setattr(audit_command, "MOST_BYTES", 100)
        status, said = audit(double, "--against", old)
        assert (status, words in unwrapped(said)) == (0, True)
    monkeypatch.setattr(binary, "disassemble", missing)
    status, said = audit(new, "--against", old)
    assert (status, words in unwrapped(said)) == (1, True)
    assert "WORSE on sm_80, sm_90: stack frame 0 -> 24 bytes" in unwrapped(said)


def test_kernels_that_came_went_and_were_renamed_are_named(audit: Audit) -> None:
    text = TEXT.replace(" copy(", " moved(")
    new = fat_binary((arch, cubin_of(text, "moved", arch, "-DNEW=6", "-DFACTOR=")) for arch in ARCHS)
    status, said = audit(release("b", new), "--against", release("a", built()))
    assert status == 0
    assert said.splitlines() == [
        "1 kernel renamed, with equal code: copy -> moved",
        "2 kernels new: keep<6> (p/_C.so, sm_80), keep<6> (p/_C.so, sm_90)",
        "2 kernels removed: keep<5> (p/_C.so, sm_80), keep<5> (p/_C.so, sm_90)",
        "2 UNCHANGED",
    ]
    old = release("a", {"p/a.so": built(archs=("sm_80", "sm_90"))})
    new = release("b", {"p/a.so": built(archs=("sm_90",)), "p/c.so": built(archs=("sm_90",))})
    status, said = audit(new, "--against", old)
    assert status == 0
    assert "3 kernels new: copy (p/c.so, sm_90), " in said
    assert "3 kernels removed: copy (p/a.so, sm_80), " in said
    assert said.endswith("\n3 UNCHANGED\n")


# --- what keeps it from an answer ----------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "words"), [
    (["gone.whl", "--against", "k.fatbin"], "gone.whl: cannot be read: No such file"),
    (["empty.so", "--against", "k.fatbin"], "empty.so: it has no GPU machine code"),
    (["text.so", "--against", "k.fatbin"], "gpuperf audit: text.so: it has no GPU machine code"),
    (["sm_90.cubin", "--against", "sm_80.cubin"], "nothing was compared: no kernel is on both sides"),
])  # fmt: skip
def test_what_is_wrong_is_said_with_exit_status_2(audit: Audit, arguments: list[str], words: str) -> None:
    Path("empty.so").touch()
    Path("text.so").write_text("text")
    for arch in ARCHS:
        Path(f"{arch}.cubin").write_bytes(cubin_of(TEXT, "copy", arch, "-DNEW=5", "-DFACTOR="))
    Path("k.fatbin").write_bytes((MADE_BY_NVCC / "work.fatbin").read_bytes())
    status, said = audit(*arguments)
    assert status == 2
    assert words in said


def test_unreadable_wheel_never_passes(audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    members = {"p/a.so": built(), "p/b.so": built()[:500]}
    old, new = release("a", members), release("b", members)
    status, said = audit(new, "--against", old)
    assert status == 2
    assert re.match(r"6 UNCHANGED\np/b\.so: cuobjdump \S+ cannot read it: Invalid fatbin header\n", said)
    assert said.endswith("2 files cannot be read and judged: --skip PATTERN leaves files out\n")
    assert audit(new, "--against", old, "--skip", "p/b.so") == (0, "6 UNCHANGED\n")
    assert list(place.iterdir()) == []  # nothing is left behind


LAMBDA = "_ZN1fUlvE{}_E"
"""Of those with numbers ``kernel_key`` has one key."""


def build(words: str, arch: str = "sm_90") -> list[AuditedKernel]:
    """Kernels such as ``a=1 #3=2``: names, of lambdas the numbers, each with what stands for its code."""
    kernels = []
    for word in words.split():
        name, _, code = word.partition("=")
        symbol = LAMBDA.format(name[1:]) if name.startswith("#") else name
        kernels.append(AuditedKernel("k.so", arch, static_of(kernel=symbol, code=code)))
    return kernels


def told(found: AuditedPairs) -> dict[str, str]:
    """Each list of the comparison as words."""

    def name(kernel: AuditedKernel) -> str:
        number = kernel.record.kernel.removeprefix("_ZN1fUlvE").removesuffix("_E")
        return f"#{number}" if number.isdigit() else kernel.record.kernel

    lists = {
        "kept": sorted(f"{name(one.old)}-{name(one.new)}" for one in found.pairs),
        "renamed": [f"{name(old)}-{name(new)}" for old, new in found.renamed],
        "removed": list(map(name, found.removed)),
        "new": list(map(name, found.new)),
    }
    return {what: " ".join(names) for what, names in lists.items() if names}


@pytest.mark.parametrize(("old", "new", "expected"), [
    pytest.param("a=1 b=2", "a=9 b=2", {"kept": "a-a b-b"}, id="of one name"),
    pytest.param("#1=A #2=B", "#1=X #2=A #3=B", {"kept": "#1-#2 #2-#3", "new": "#1"}, id="a lambda before others"),
    pytest.param("#2=B #10=C", "#3=X #12=Y", {"kept": "#10-#12 #2-#3"}, id="all lambdas changed"),
    pytest.param("#1=A #2=B", "#2=X", {"kept": "#2-#2", "removed": "#1"}, id="a symbol that stays"),
    pytest.param(
        "old=1 gone=2", "now=1 new=3", {"renamed": "old-now", "removed": "gone", "new": "new"}, id="equal code"
    ),
    pytest.param("a=1 a=2", "a=2 a=3", {"kept": "a-a a-a"}, id="several of one name"),
])  # fmt: skip
def test_kernels_are_known_again(old: str, new: str, expected: dict[str, str]) -> None:
    assert told(compared(build(old), build(new))) == expected

"""``gpuperf init`` and ``gpuperf examples``: what they write, and what they leave alone."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_gpuperf.cli import init_command
from pytest_gpuperf.cli.command_line import main
from pytest_gpuperf.compile.compile_errors import ToolchainMissing

SCALE = "__global__ void scale(float* x, int n) {}\n"


def gate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--gpuperf-arch=sm_90", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_an_empty_repository_gets_a_test_that_gates(tmp_path, capsys):
    assert main(["init", str(tmp_path)]) == 0
    assert "pytest --update-baselines" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        ".gitattributes", "axpy.cu", "gpuperf-constraints.txt", "gpuperf.yml", "pytest.ini", "test_axpy.py",
    ]  # fmt: skip
    workflow = (tmp_path / ".github/workflows/gpuperf.yml").read_text()
    assert "permissions: {contents: read}\n" in workflow
    assert "actions/checkout@v4\n        with: {fetch-depth: 0, persist-credentials: false}\n" in workflow
    assert gate(tmp_path, "--update-baselines").returncode == 0
    assert "1 workload: 1 UNCHANGED" in gate(tmp_path, "--gpuperf").stdout


def test_the_next_commands_depend_on_where_the_repository_is(tmp_path, capsys, monkeypatch):
    (tmp_path / ".git").mkdir()
    part = tmp_path / "gpu part"
    part.mkdir()
    assert main(["init", str(part)]) == 0
    said = capsys.readouterr().out
    assert f"at the top of a repository alone, which is {tmp_path.resolve()}." in said
    assert 'defaults: {run: {working-directory: "gpu part"}}' in said
    assert "    git add . && git commit" in said
    main(["init", str(tmp_path)])
    assert "working-directory" not in capsys.readouterr().out
    monkeypatch.setattr(init_command, "checkout_around", lambda _: None)
    assert main(["init", str(tmp_path)]) == 0
    assert "    git init && git add . && git commit" in capsys.readouterr().out


@pytest.mark.parametrize("mine", [b"# caf\xe9\n", b"*.png binary\r\n*.txt text", b""])
def test_nothing_is_overwritten_and_a_second_time_writes_nothing(tmp_path, capsys, mine):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q\n")
    (tmp_path / ".gitattributes").write_bytes(mine)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "axpy.cu").write_text("// mine, and no kernel\n")
    main(["init", str(tmp_path)])
    assert (tmp_path / "kernels" / "axpy.cu").read_text() == "// mine, and no kernel\n"
    assert (tmp_path / "pytest.ini").read_text() == "[pytest]\naddopts = -q\n"
    attributes = (tmp_path / ".gitattributes").read_bytes()
    assert attributes == mine + b"\n" * (mine[-1:] not in (b"", b"\n")) + init_command.ATTRIBUTES + b"\n"
    capsys.readouterr()
    main(["init", str(tmp_path)])
    assert "written" not in capsys.readouterr().out
    assert (tmp_path / ".gitattributes").read_bytes() == attributes


def test_what_a_full_disk_cuts_short_is_not_left_there(tmp_path):
    limited = (
        "import resource, sys; from pytest_gpuperf.cli.command_line import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20)); sys.exit(main(['init', sys.argv[1]]))"
    )
    assert subprocess.run([sys.executable, "-B", "-c", limited, str(tmp_path)], check=False).returncode == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_kernel_that_is_there_gets_a_test_beside_it(tmp_path):
    """Under a name of its own where Python and the test have a use for it, in a file of any name."""
    for name in ("src", "build"):
        (tmp_path / name).mkdir()
    (tmp_path / "build" / "a.cu").write_text('extern "C" __global__ void wrong(float* x) {}')
    source = 'we"ird\\n caf\xe9.cu'
    (tmp_path / "src" / source).write_text(
        'struct S {};\nextern "C" __global__ void other(S s) {}\n// extern "C" __global__ void not_one(int n)\n'
        "template <typename T>\n__global__ void any_scale(const T* x, int n) {}\n"
        "__global__ void __launch_bounds__(128) "
        "scale(const float* __restrict__ in, /* y */ double *gpu, float by, unsigned int n)\n"
        "{ unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) gpu[i] = by * in[i]; }\n"
    )
    assert main(["init", str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.rglob("test_*.py")] == ["test_scale.py"]
    text = (tmp_path / "src" / "test_scale.py").read_text()
    ast.parse(text)
    assert 'in_ = gpu.random(n, "float32", seed=0)' in text
    assert 'gpu_ = gpu.random(n, "float64", seed=1)' in text
    assert "grid=(n // 128,), block=(128,), args=(in_, gpu_, 1.0, n)" in text
    assert gate(tmp_path, "--update-baselines").returncode == 0


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"__global__ __launch_bounds__(256) {SCALE[11:]}", ["scale"]), (f"__launch_bounds__(256) {SCALE}", ["scale"]),
        ("__global__ void __launch_bounds__(256)\n  scale(float* x) {}", ["scale"]),
        (f"template <typename T> {SCALE}", []), (f"// {SCALE}", []), (f"/* {SCALE} */", []),
    ],
)  # fmt: skip
def test_kernels_are_found_by_their_signatures(tmp_path, text, names):
    (tmp_path / "scale.cu").write_text(text)
    assert [kernel.name for kernel in init_command.kernels_in([tmp_path / "scale.cu"])] == names


@pytest.mark.parametrize("parameters", ["S s", "float** x", "float& x", "T x", "float", "const struct S* s"])
def test_a_kernel_whose_arguments_cannot_be_made_up_is_passed_over(parameters):
    assert init_command.arguments_of(parameters) is None


@pytest.mark.parametrize(
    ("bounds", "block"), [("64, 4", 64), ("1024", 256), ("2 * 64", 128), ("1u << 10", 256), ("SIZE, 2", 32)]
)
def test_a_block_has_as_many_threads_as_the_launch_bounds_allow(tmp_path, bounds, block):
    kernel = f"#define SIZE 32\n__global__ void __launch_bounds__({bounds}) scale(float* x, int n) {{}}\n"
    (tmp_path / "scale.cu").write_text(kernel)
    (found,) = init_command.kernels_in([tmp_path / "scale.cu"])
    assert init_command.compiled(found).block == block


@pytest.mark.parametrize(
    "text",
    [
        f"#include <torch/extension.h>\n{SCALE}", f"#ifdef DEBUG\n{SCALE}#endif\n",
        "__global__ void scale(float* x, int n);\n", f"{SCALE}__global__ void scale(double* x, int n) {{}}\n",
        "__global__ void scale(float* x, int n) { x[n] = FACTOR; }\n", f"// caf\xe9\n{SCALE}",
        f"{SCALE}void run(float* x) {{ scale<<<1, 1>>>(x, 1); }}\n",
    ],
)  # fmt: skip
def test_a_kernel_that_no_test_could_compile_is_passed_over(tmp_path, text):
    (tmp_path / "scale.cu").write_text(text, encoding="latin-1")
    assert [init_command.compiled(one) for one in init_command.kernels_in([tmp_path / "scale.cu"])][:1] == [None]


def test_where_no_kernel_stands_by_itself_a_sample_is_written_and_that_is_said(tmp_path, capsys):
    (tmp_path / "a.cu").mkdir()
    (tmp_path / "b.cu").symlink_to("nowhere")
    os.mkfifo(tmp_path / "c.cu")
    (tmp_path / "scale.cu").write_text("#error no\n" + SCALE)
    assert main(["init", str(tmp_path)]) == 0
    assert "No .cu file here holds a kernel that can be tested as it stands" in capsys.readouterr().out
    assert (tmp_path / "kernels" / "test_axpy.py").exists()
    (tmp_path / "before.cu").write_text(SCALE.replace("scale", "zoom"))
    assert main(["init", str(tmp_path)]) == 0
    assert "No .cu file" not in capsys.readouterr().out
    assert (tmp_path / "test_zoom.py").exists()


def test_without_a_compiler_a_kernel_is_taken_as_it_is_found(tmp_path, monkeypatch):
    def missing(*_):
        raise ToolchainMissing("no NVRTC")

    monkeypatch.setattr(init_command, "compile_kernel", missing)
    (tmp_path / "scale.cu").write_text(SCALE)
    assert main(["init", str(tmp_path)]) == 0
    assert "block=(256,)" in (tmp_path / "test_scale.py").read_text()


def test_a_folder_that_is_not_there_or_cannot_be_written_is_named(tmp_path, capsys):
    assert main(["init", str(tmp_path / "nowhere")]) == 1
    assert "nowhere is no folder" in capsys.readouterr().err
    (tmp_path / ".github").write_text("a file where a folder has to be")
    assert main(["init", str(tmp_path)]) == 1
    assert f"Not a directory: '{tmp_path / '.github' / 'workflows'}'" in capsys.readouterr().err


def test_the_suite_is_listed_and_copied(tmp_path, capsys):
    assert main(["examples"]) == 0
    assert "bank_conflicts  " in capsys.readouterr().out
    target = tmp_path / "my examples"
    assert main(["examples", str(target)]) == 0
    said = capsys.readouterr().out
    assert f"    cd '{target}'\n" in said
    assert len(list(target.glob("test_*.py"))) > 40
    for command in [line.split()[1:3] for line in said.splitlines() if line.startswith("    pytest ")]:
        done = gate(target, *command, "-q")
        assert done.returncode == 0, done.stdout
    assert "UNCHANGED" in done.stdout


def test_examples_go_nowhere_where_something_is(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["examples", str(tmp_path)]) == 1
    assert "nothing is overwritten" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]

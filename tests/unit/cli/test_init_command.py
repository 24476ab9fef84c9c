"""``gpuperf init`` and ``gpuperf examples``: what they write, and what they leave alone."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_gpuperf.cli import examples_command, init_command
from pytest_gpuperf.cli.command_line import main
from pytest_gpuperf.compile.compile_errors import ToolchainMissing

HERE = Path(__file__)


def gate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--gpuperf-arch=sm_90", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_an_empty_repository_gets_a_test_that_gates(tmp_path, capsys):
    assert main(["init", str(tmp_path)]) == 0
    assert "pytest --update-baselines" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        ".gitattributes", "axpy.cu", "gpuperf-constraints.txt", "gpuperf.yml", "pytest.ini", "test_axpy.py",
    ]  # fmt: skip
    assert gate(tmp_path, "--update-baselines").returncode == 0
    green = gate(tmp_path, "--gpuperf")
    assert green.returncode == 0
    assert "1 workload: 1 UNCHANGED" in green.stdout


def test_the_workflow_sees_where_a_change_began_and_may_only_read(tmp_path):
    main(["init", str(tmp_path)])
    workflow = (tmp_path / ".github/workflows/gpuperf.yml").read_text()
    assert "permissions: {contents: read}\n" in workflow
    assert "actions/checkout@v4\n        with: {fetch-depth: 0, persist-credentials: false}\n" in workflow
    assert "pull_request_target" not in workflow


def test_in_a_folder_of_a_repository_it_says_where_github_looks_for_workflows(tmp_path, capsys):
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


def test_where_there_is_no_repository_the_next_commands_make_one(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(init_command, "checkout_around", lambda _: None)
    assert main(["init", str(tmp_path)]) == 0
    assert "    git init && git add . && git commit" in capsys.readouterr().out


def test_nothing_is_overwritten_and_a_second_time_writes_nothing(tmp_path, capsys):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q\n")
    (tmp_path / ".gitattributes").write_text("*.png binary")
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "axpy.cu").write_text("// mine, and no kernel\n")
    main(["init", str(tmp_path)])
    assert (tmp_path / "kernels" / "axpy.cu").read_text() == "// mine, and no kernel\n"
    assert (tmp_path / "pytest.ini").read_text() == "[pytest]\naddopts = -q\n"
    attributes = (tmp_path / ".gitattributes").read_text()
    assert attributes == "*.png binary\n" + init_command.ATTRIBUTES
    capsys.readouterr()
    main(["init", str(tmp_path)])
    assert "written" not in capsys.readouterr().out
    assert (tmp_path / ".gitattributes").read_text() == attributes


@pytest.mark.parametrize("mine", [b"# caf\xe9\n", b"*.png binary\r\n*.txt text\r\n"])
def test_attributes_that_are_there_stay_byte_for_byte(tmp_path, mine):
    attributes = tmp_path / ".gitattributes"
    attributes.write_bytes(mine)
    assert main(["init", str(tmp_path)]) == 0
    assert attributes.read_bytes() == mine + init_command.ATTRIBUTES.encode()


def test_what_a_full_disk_cuts_short_is_not_left_there_and_nothing_is_lost(tmp_path):
    limited = (
        "import resource, sys; from pytest_gpuperf.cli.command_line import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20)); sys.exit(main(['init', sys.argv[1]]))"
    )
    command = [sys.executable, "-B", "-c", limited, str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    main(["init", str(tmp_path)])
    (tmp_path / ".gitattributes").write_bytes(b"*.png binary\n")
    assert subprocess.run(command, check=False).returncode == 1
    assert (tmp_path / ".gitattributes").read_bytes() == b"*.png binary\n"


def test_a_kernel_that_is_there_gets_a_test_beside_it(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "a.cu").write_text('extern "C" __global__ void wrong(float* x) {}')
    (tmp_path / "src" / "scale.cu").write_text(
        'struct S {};\nextern "C" __global__ void other(S s) {}\n// extern "C" __global__ void not_one(int n)\n'
        'extern "C" __global__ void scale(const float* __restrict__ x, /* y */ double *y, float by, unsigned int n)\n'
        "{ unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = by * x[i]; }\n"
    )
    assert main(["init", str(tmp_path)]) == 0
    test = tmp_path / "src" / "test_scale.py"
    text = test.read_text()
    ast.parse(text)
    assert 'x = gpu.random(n, "float32", seed=0)' in text
    assert 'y = gpu.random(n, "float64", seed=1)' in text
    assert "args=(x, y, 1.0, n)" in text
    assert gate(tmp_path, "--update-baselines").returncode == 0


def test_a_kernel_of_cpp_gets_a_test_and_a_template_none(tmp_path, capsys):
    (tmp_path / "scale.cu").write_text(
        "template <typename T>\n__global__ void any_scale(const T* x, int n) {}\n"
        "__global__ void __launch_bounds__(256) scale(float* x, int n)\n"
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2.0f; }\n"
    )
    assert main(["init", str(tmp_path)]) == 0
    assert init_command.NO_KERNEL not in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.rglob("test_*.py")) == ["test_scale.py"]
    assert gate(tmp_path, "--update-baselines").returncode == 0


@pytest.mark.parametrize(
    "head",
    [
        "__global__ __launch_bounds__(256) void",
        "__launch_bounds__(256) __global__ void",
        "__global__ void __launch_bounds__(256)",
    ],
)
def test_a_kernel_is_found_wherever_its_launch_bounds_stand_and_its_template_too(tmp_path, head):
    (tmp_path / "scale.cu").write_text(
        f"template <typename T>\n{head} any_scale(float* x, int n) {{}}\n{head} scale(float* x, int n) {{}}\n"
    )
    assert [kernel.name for kernel in init_command.kernels_in(tmp_path)] == ["scale"]


@pytest.mark.parametrize(
    ("bounds", "block"),
    [("128", 128), ("64, 4", 64), ("1024", 256), ("2 * 64", 128), ("1u << 10", 256), ("SIZE, 2", 32)],
)
def test_a_block_has_as_many_threads_as_the_launch_bounds_allow(tmp_path, bounds, block):
    kernel = f"#define SIZE 32\n__global__ void __launch_bounds__({bounds}) scale(float* x, int n) {{}}\n"
    (tmp_path / "scale.cu").write_text(kernel)
    main(["init", str(tmp_path)])
    assert f"grid=(n // {block},), block=({block},)" in (tmp_path / "test_scale.py").read_text()


def test_a_test_for_a_kernel_with_small_launch_bounds_can_be_recorded(tmp_path):
    (tmp_path / "scale.cu").write_text("__global__ void __launch_bounds__(128) scale(float* x, int n) {}\n")
    main(["init", str(tmp_path)])
    assert gate(tmp_path, "--update-baselines").returncode == 0


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ("const float* in, float* out", ["in_", "out"]),
        ("const float* gpu, float* n", ["gpu_", "n_"]),
        ("const float* launch, float* gpuperf", ["launch_", "gpuperf_"]),
    ],
)
def test_a_parameter_that_python_or_the_test_has_a_use_for_gets_another_name(tmp_path, parameters, names):
    (tmp_path / "scale.cu").write_text(f"__global__ void scale({parameters}) {{}}\n")
    assert main(["init", str(tmp_path)]) == 0
    assert f"args=({', '.join(names)}))" in (tmp_path / "test_scale.py").read_text()
    assert gate(tmp_path, "--update-baselines").returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void scale(float* x, int n) {}\nvoid run(float* x) { scale<<<1, 1>>>(x, 1); }\n",
        "template <typename T> __global__ void scale(T* x, int n) {}\n",
    ],
)
def test_where_no_kernel_stands_by_itself_a_sample_is_written_and_that_is_said(tmp_path, capsys, text):
    (tmp_path / "axpy.cu").write_text(text)
    assert main(["init", str(tmp_path)]) == 0
    assert init_command.NO_KERNEL in capsys.readouterr().out
    assert (tmp_path / "kernels" / "test_axpy.py").exists()
    assert not list(tmp_path.rglob("test_scale.py"))


SCALE = "__global__ void scale(float* x, int n) {}\n"


@pytest.mark.parametrize(
    "text",
    [
        f"#include <torch/extension.h>\n{SCALE}",
        f"#ifdef DEBUG\n{SCALE}#endif\n",
        "__global__ void scale(float* x, int n);\n",
        f"{SCALE}__global__ void scale(double* x, int n) {{}}\n",
        "__global__ void scale(float* x, int n) { x[n] = FACTOR; }\n",
        f"// caf\xe9\n{SCALE}",
    ],
)
def test_a_kernel_that_no_test_could_compile_is_passed_over(tmp_path, capsys, text):
    (tmp_path / "scale.cu").write_text(text, encoding="latin-1")
    assert main(["init", str(tmp_path)]) == 0
    assert init_command.NO_KERNEL in capsys.readouterr().out
    (tmp_path / "before.cu").write_text(SCALE.replace("scale", "zoom"))
    assert main(["init", str(tmp_path)]) == 0
    assert (tmp_path / "test_zoom.py").exists()


def test_without_a_compiler_a_kernel_is_taken_as_it_is_found(tmp_path, monkeypatch):
    def missing(*_):
        raise ToolchainMissing("no NVRTC")

    monkeypatch.setattr(init_command, "compile_kernel", missing)
    (tmp_path / "scale.cu").write_text(SCALE)
    assert main(["init", str(tmp_path)]) == 0
    assert "block=(256,)" in (tmp_path / "test_scale.py").read_text()


def test_what_is_called_as_a_source_and_is_no_file_is_passed_over(tmp_path):
    (tmp_path / "a.cu").mkdir()
    (tmp_path / "b.cu").symlink_to("nowhere")
    os.mkfifo(tmp_path / "c.cu")
    (tmp_path / "scale.cu").write_text(SCALE)
    assert main(["init", str(tmp_path)]) == 0
    assert (tmp_path / "test_scale.py").exists()


@pytest.mark.parametrize("name", ['we"ird.cu', "we\\nird.cu", "caf\xe9.cu"])
def test_a_source_may_have_any_name(tmp_path, name):
    (tmp_path / name).write_text(SCALE)
    assert main(["init", str(tmp_path)]) == 0
    assert gate(tmp_path, "--update-baselines").returncode == 0


@pytest.mark.parametrize("parameters", ["S s", "float** x", "float& x", "T x", "float", "const struct S* s"])
def test_a_kernel_whose_arguments_cannot_be_made_up_is_passed_over(parameters):
    assert init_command.arguments_of(parameters) is None


def test_a_folder_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["init", str(tmp_path / "nowhere")]) == 1
    assert "nowhere is no folder" in capsys.readouterr().err


def test_what_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / ".github").write_text("a file where a folder has to be")
    assert main(["init", str(tmp_path)]) == 1
    assert f"Not a directory: '{tmp_path / '.github' / 'workflows'}'" in capsys.readouterr().err


def test_families_are_listed_and_copied(tmp_path, capsys):
    assert main(["examples"]) == 0
    assert "bank_conflicts" in capsys.readouterr().out
    target = tmp_path / "examples"
    assert main(["examples", str(target), "bank_conflicts"]) == 0
    assert [path.name for path in target.glob("test_*.py")] == ["test_bank_conflicts.py"]
    assert sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) < 1_000_000
    assert gate(target, "--update-baselines", "-q").returncode == 0
    done = gate(target, "--gpuperf", "-q")
    assert done.returncode == 0, done.stdout
    assert "UNCHANGED" in done.stdout


def test_the_command_that_enters_the_copied_folder_works_in_a_shell(tmp_path, capsys):
    target = tmp_path / "my examples"
    assert main(["examples", str(target), "reduce_sum"]) == 0
    assert f"    cd '{target}'\n" in capsys.readouterr().out


def test_copied_tests_pass_before_anything_is_gated_and_come_with_what_they_import_alone(tmp_path):
    target = tmp_path / "examples"
    assert main(["examples", str(target), "reduce_sum"]) == 0
    assert not (target / "textbook.py").exists()
    plain = gate(target, "-q")  # claims of another family's file are checked on the machine code
    assert plain.returncode == 0, plain.stdout


def test_the_usual_families_are_there():
    suite = HERE.parents[3] / "example_suite"
    assert all((suite / f"test_{name}.py").is_file() for name in examples_command.USUAL)


@pytest.mark.parametrize(
    ("families", "there", "says"), [(["nonsense"], False, "no family nonsense"), ([], True, "nothing is overwritten")]
)
def test_examples_go_nowhere_where_something_is(tmp_path, capsys, families, there, says):
    if there:
        (tmp_path / "mine.txt").write_text("mine")
    assert main(["examples", str(tmp_path), *families]) == 1
    assert says in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == (["mine.txt"] if there else [])


def test_a_family_is_not_taken_for_the_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["examples", "bank_conflicts"]) == 1
    assert "gpuperf examples DIR bank_conflicts" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

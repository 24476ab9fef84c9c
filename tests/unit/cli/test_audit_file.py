"""The one file of an audit's baseline: written in one form, and read with nothing believed."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import msgspec
import pytest
from record_samples import static_of

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.cli import audit_file
from pytest_gpuperf.cli.audit_file import read, write
from pytest_gpuperf.compile.machine_code.audited import AuditedKernel

RECORD = static_of(kernel="k", code="0123456789abcdef01234567")
GROUPS = {
    "lib.so": [AuditedKernel("", "sm_120", RECORD)],
    "p": [AuditedKernel(f"p/{name}.so", arch, RECORD) for name in "ab" for arch in ("sm_80", "sm_80", "sm_90a")],
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "audit.json.xz"
    assert read(file) is None
    assert write(file, GROUPS)
    assert read(file) == GROUPS


def test_equal_content_is_equal_bytes_and_is_not_written_again(tmp_path: Path) -> None:
    file, other = tmp_path / "a.xz", tmp_path / "b.xz"
    write(file, GROUPS)
    write(other, {name: kernels[::-1] for name, kernels in reversed(GROUPS.items())})
    assert file.read_bytes() == other.read_bytes()
    assert not write(file, GROUPS)


def packed(change) -> bytes:
    content = {"schema": 1, "kernels": [["p", "p/a.so", "sm_90", msgspec.to_builtins(RECORD)]]}
    change(content)
    return lzma.compress(json.dumps(content).encode())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: content.update(schema=2), "it has schema 2, and this version of the plugin reads 1"),
        (lambda content: content.update(more=1), "unknown field `more`"),
        (lambda content: content.pop("kernels"), "missing required field `kernels`"),
        (lambda content: content["kernels"][0].append(1), "Expected `array` of length 4"),
        (lambda content: content["kernels"][0][3].update(more=1), "unknown field `more`"),
        (lambda content: content["kernels"][0][3]["profile"].update(registers="many"), "Expected `int`, got `str`"),
    ],
)
def test_what_is_no_baseline_is_refused_with_the_reason(tmp_path: Path, change, words: str) -> None:
    file = tmp_path / "audit.json.xz"
    file.write_bytes(packed(lambda content: None))
    assert read(file) is not None
    file.write_bytes(packed(change))
    with pytest.raises(BaselineError) as caught:
        read(file)
    assert words in str(caught.value)
    assert f"gpuperf audit FILE... --baseline {file} --update" in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", lzma.compress(b"[" * 100_000), packed(dict)[:-20], packed(dict) + b"x", packed(dict) * 2,
     lzma.compress(b"{}", format=lzma.FORMAT_ALONE), lzma.compress(b'{"schema": 1, "kernels": [["\xff"]]}')],
)  # fmt: skip
def test_broken_files_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "audit.json.xz"
    file.write_bytes(content)
    with pytest.raises(BaselineError, match="this baseline cannot be read"):
        read(file)


def test_a_file_that_unpacks_to_more_than_any_baseline_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(audit_file, "MAX_JSON_BYTES", 10_000)
    file = tmp_path / "audit.json.xz"
    file.write_bytes(lzma.compress(b" " * 100_000))
    with pytest.raises(BaselineError, match="unpacks to more than"):
        read(file)
    monkeypatch.setattr(audit_file, "MAX_FILE_BYTES", 10)
    with pytest.raises(BaselineError, match="it is larger than"):
        read(file)


def test_a_file_whose_unpacking_takes_much_memory_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "audit.json.xz"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    file.write_bytes(lzma.compress(b"{}", filters=filters))
    with pytest.raises(BaselineError, match=r"(?i)memory"):
        read(file)

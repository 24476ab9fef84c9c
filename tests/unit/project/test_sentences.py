"""Prose of README, docs and messages is plain, and each page is near the index."""

from __future__ import annotations

from pathlib import Path

import pytest
import sentences


def test_prose_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    status = sentences.main()
    assert status == 0, capsys.readouterr().out


@pytest.mark.parametrize(("text", "found"), [
    ("A kernel is " + "very " * 40 + "slow.", "too long: A kernel is very"),
    ("One is told from the other. `told`", "'told' in"),
    ("Fine.\n\n| a | b |\n|---|---|\n| a | stands for b |\n", "'stands for' in"),
])  # fmt: skip
def test_other_prose_is_red(
    text: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("README.md", "far.md"):
        (tmp_path / "docs" / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(sentences, "ROOT", tmp_path)
    monkeypatch.setattr(sentences, "DOCS", tmp_path / "docs")
    assert sentences.main() == 1
    out = capsys.readouterr().out
    assert out.count(found) == 1
    assert out.endswith("far.md: more than two links away from the index\n")


def test_red_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in {"docs/README.md": "Fine.", "pytest_gpuperf/a.py": '"""It stands\nfor this."""\n'}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(sentences, "ROOT", tmp_path)
    monkeypatch.setattr(sentences, "DOCS", tmp_path / "docs")
    assert sentences.main() == 1
    assert "a.py: 'stands for' in" in capsys.readouterr().out

"""What a file of hashes pins of a folder of baselines, and what it says of another state."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from baseline_samples import make_key, make_session, static_update, time_update

from pytest_gpuperf.baselines import pin
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.store import BaselineStore


def test_each_file_is_pinned_and_named_where_it_differs(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path / "data")
    store.write(time_update(make_session()))
    files = {path.relative_to(store.root).as_posix(): path for path in store.root.rglob("[!.]*.*") if path.is_file()}
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    lines = pin.lines_of(store)
    assert (pin.pinned(lines), len(lines.splitlines())) == (hashes, len(hashes))
    assert pin.pinned(b"no pin\nab  one  two\ncd  \xff\n") == {"one  two": "ab", "\N{REPLACEMENT CHARACTER}": "cd"}
    pin.require_pinned(tmp_path, store)  # nothing is pinned
    (tmp_path / pin.FILE).write_bytes(lines)
    pin.require_pinned(tmp_path, store)
    store.write(static_update(key=make_key(module="test_more.py")))
    cubin = next(name for name in files if name.startswith("cubins/"))
    files[cubin].unlink()
    with pytest.raises(BaselineError) as problem:
        pin.require_pinned(tmp_path, BaselineStore(store.root))
    found = (
        f"baselines.sha256 pins another state of {store.root}: {cubin} is missing, manifest.json differs and 1 more. "
    )
    pins = f"gpuperf baselines pin --baselines {store.root}"
    assert str(problem.value) == f"{found}To do: get the state that it pins, or pin this one: in {tmp_path} {pins}"

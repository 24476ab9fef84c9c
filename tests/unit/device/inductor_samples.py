"""A cache folder as ``torch.compile`` leaves one, with kernels that real Tritons have compiled.

Its layout is that of Triton 3.3 to 3.9 and of ``AutotuneCache.save`` of PyTorch 2.9 to 2.15.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from triton_samples import FOLDER

WIDE, NARROW, SOFTMAX = "add-3.6.0", "add-narrow-3.6.0", "softmax-3.6.0"


def compiled_to(folder: Path, stem: str, **metadata: Any) -> str:
    """Write what Triton keeps of a compilation; returns the name of its folder."""
    facts = {**json.loads((FOLDER / f"{stem}.json").read_text())["metadata"], "hash": "21e6", **metadata}
    place = folder / "triton" / stem.upper()
    place.mkdir(parents=True)
    shutil.copy(FOLDER / f"{stem}.cubin", place / f"{facts['name']}.cubin")
    (place / f"{facts['name']}.json").write_text(json.dumps(facts))
    (place / f"{facts['name']}.ptx").write_text(f"// PTX of {stem}")
    (place / f"__grp__{facts['name']}.json").write_text(json.dumps({"child_paths": {}}))
    return place.name


def chosen(folder: Path, place: str | None, number: int = 0, **choice: Any) -> None:
    """Write what PyTorch's autotuning chose."""
    found = {"XBLOCK": 256, "num_warps": 2, "num_stages": 1, **choice}
    kept = {"configs_hash": "c7", "found_by_coordesc": False, "time_taken_ms": 3, "triton_cache_hash": place}
    (folder / "ab").mkdir(exist_ok=True)
    (folder / "ab" / f"cab{number}.best_config").write_text(json.dumps({**found, **kept}))


def program(folder: Path, *kernels: str, number: int = 0) -> None:
    """Write the program of a graph."""
    text = "".join(
        f"{name}_0 = async_compile.triton('{name}', '''\n@triton.jit\ndef {name}(): ...\n''')\n" for name in kernels
    )
    (folder / "cd").mkdir(exist_ok=True)
    (folder / "cd" / f"ccd{number}.py").write_text(f"async_compile = AsyncCompile()\n{text}")

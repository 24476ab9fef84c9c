"""What ``torch.compile`` makes of a function, kernel by kernel: compiled once more, into a cache of its own.

Public of PyTorch are ``torch.compiler.reset`` and the environment variables that say where its caches lie.  Triton
keeps a folder for each compilation there, where ``NAME.json`` tells the warps and the shared memory of ``NAME.cubin``.
Where Inductor had a choice, a ``.best_config`` file has what it chose and names that folder, so that the two can be
matched (pytorch/pytorch#148981).  Nobody promises either layout: they are read as PyTorch 2.9 to 2.15 leave them, and
others are refused.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.compile.adapters.handed import OWN_ARCH, Handed
from pytest_gpuperf.compile.adapters.triton import CHOICES, configuration_text
from pytest_gpuperf.compile.compile_errors import UnsupportedKernel
from pytest_gpuperf.formatting import numbered

_CACHES = {"TORCHINDUCTOR_CACHE_DIR": "", "TRITON_CACHE_DIR": "triton"}
"""Variables that say where, and the folder of each in the temporary one."""
_DEFINED = re.compile(r"async_compile\.triton\(\s*['\"](\w+)['\"]")
"""Where the program that Inductor writes for a graph defines a kernel."""
_TIMED = "Its time is gated all the same: gpuperf(lambda: function(...))"


def read_torch(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Handed, ...]:
    """The Triton kernels of one call, at least one.

    What this process compiled before is compiled anew at its next call: a kernel that is in memory leaves no file.
    Raises ``BadArgument``, ``UnsupportedKernel``.
    """
    from unittest.mock import patch  # noqa: PLC0415 asyncio comes with it

    torch = sys.modules.get("torch")
    if torch is None or not callable(function):
        raise BadArgument(
            f"from_torch takes the result of torch.compile(...) and the arguments of its call, not "
            f"{type(function).__name__}"
        )
    with tempfile.TemporaryDirectory(prefix="gpuperf-torch-", ignore_cleanup_errors=True) as folder:
        torch.compiler.reset()
        with patch.dict(os.environ, {name: str(Path(folder, place)) for name, place in _CACHES.items()}):
            function(*args, **kwargs)
        return read_inductor(Path(folder))


def read_inductor(folder: Path) -> tuple[Handed, ...]:
    """The kernels that were chosen, at least one.  Raises ``UnsupportedKernel``."""
    programs = (file.read_text(encoding="utf-8") for file in folder.rglob("*.py"))
    defined = Counter(name for program in programs for name in _DEFINED.findall(program))  # each graph counts from 0
    found: dict[str, list[Path]] = {}
    for cubin in sorted(folder.rglob("*.cubin")):
        if cubin.stem in defined:  # others were compiled to be tried out alone
            found.setdefault(cubin.stem, []).append(cubin)
    if not found:
        raise UnsupportedKernel(
            "from_torch: the call compiled no Triton kernel: its tensors are not on the GPU, it calls nothing but "
            f"libraries, or PyTorch's caches are turned off. {_TIMED}"
        )
    chosen = dict(_chosen(folder))
    kernels = []
    for name, cubins in found.items():
        best = [cubin for cubin in cubins if cubin.parent.name in chosen] if len(cubins) > 1 else cubins
        if defined[name] > 1 or len(best) != 1:
            raise UnsupportedKernel(
                f"from_torch: {name} was compiled {len(cubins)} times, for {numbered(defined[name], 'graph')}, so the "
                "launched one is not known. To do: compile the function to one graph (torch.compile(..., "
                "fullgraph=True), no backward pass), with PyTorch 2.9 to 2.15 and its default autotuning caches. "
                f"{_TIMED}"
            )
        kernels.append(_handed(best[0], chosen.get(best[0].parent.name, "")))
    return tuple(kernels)


def _handed(cubin: Path, config: str) -> Handed:
    try:
        facts = msgspec.json.decode(cubin.with_suffix(".json").read_bytes())
        name, shared_bytes, threads = facts["name"], facts["shared"], facts["num_warps"] * facts["target"]["warp_size"]
    except (OSError, msgspec.MsgspecError, KeyError, TypeError) as problem:
        raise UnsupportedKernel(
            f"from_torch: {cubin.stem}: its files are not those of Triton 3.0 to 3.9: {problem}. {_TIMED}"
        ) from problem
    return Handed(
        {OWN_ARCH: [cubin.read_bytes()]}, name, f"the cubin of {name}", threads=threads, shared_bytes=shared_bytes,
        compiler=f"triton {facts.get('triton_version', '')}".strip(), config=config,
    )  # fmt: skip


def _chosen(folder: Path) -> Iterator[tuple[str, str]]:
    """Name of Triton's folder and the configuration, of every choice that Inductor made."""
    for file in folder.rglob("*.best_config"):
        try:
            best = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        except msgspec.MsgspecError:  # then what it chose is not known, and not needed where there was no choice
            continue
        place = best.get("triton_cache_hash")
        if isinstance(place, str):
            yield place, configuration_text({name: best[name] for name in best if name.isupper() or name in CHOICES})

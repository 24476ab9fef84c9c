"""``baselines.sha256``: what a folder of baselines has to hold that is not committed with the code.

It lies at pytest's root, in the form that ``sha256sum`` writes and checks.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from pathlib import Path

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError, quoted
from pytest_gpuperf.baselines.cubin_store import stored_cubins
from pytest_gpuperf.baselines.records import read_bounded
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.formatting import first_of

FILE = "baselines.sha256"
MOST_NAMED = 2


def lines_of(store: BaselineStore) -> bytes:
    """The file that pins the records, the manifest and the machine code of a folder.  Raises ``BaselineError``."""
    cubins = [path.relative_to(store.root).as_posix() for path in stored_cubins(store.root)]
    contents = {name: store.content(name) for name in sorted([*store.paths(), *cubins, manifest.FILE])}
    hashes = ((hashlib.sha256(content).hexdigest(), name) for name, content in contents.items() if content is not None)
    return "".join(f"{sha256}  {name}\n" for sha256, name in hashes).encode()


def pinned(content: bytes) -> Mapping[str, str]:
    """SHA-256 of each file that is pinned, by its path in the folder."""
    pairs = (line.split("  ", 1) for line in content.decode("utf-8", "replace").splitlines() if "  " in line)
    return {name: sha256 for sha256, name in pairs}


def require_pinned(root: Path, store: BaselineStore) -> None:
    """Raise ``BaselineError`` if the project at ``root`` pins another content of the folder."""
    content = read_bounded(root / FILE)
    if content is None:
        return
    wanted, found = pinned(content), pinned(lines_of(store))
    other = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
    words = [
        f"{quoted(name, 200)} {'is missing' if name not in found else 'differs' if name in wanted else 'is not pinned'}"
        for name in other
    ]
    if words:
        raise BaselineError(
            f"{FILE} pins another state of {store.root}: {first_of(words, MOST_NAMED)}. To do: get the state that it "
            f"pins, or pin this one: in {root} gpuperf baselines pin --baselines {shlex.quote(str(store.root))}"
        )

"""Node ids of tests, as other folders of a repository see them."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_gpuperf.baselines.git_objects import RevisionError


def below_top(node_id: str, start: Path, top: Path) -> str:
    """The node id as it reads from the repository's ``top``, so that it means each commit's own file.

    A relative path is one that ``start`` sees, else one that a folder above it sees, as where a summary names a test
    from pytest's root.  Raises ``RevisionError`` for a file outside of the repository.
    """
    name, mark, test = node_id.partition("::")
    here = start.resolve()
    place = next((one for one in (here, *here.parents) if one.is_relative_to(top) and (one / name).exists()), here)
    path = place / name
    ways = (Path(os.path.normpath(path)), path.parent.resolve() / path.name, path.resolve())
    inside = next((one for one in ways if one.is_relative_to(top)), None)
    if inside is None:
        raise RevisionError(f"{path} lies outside of the repository {top}: name a test that it has at every commit")
    return f"{inside.relative_to(top).as_posix()}{mark}{test}"


def seen_from(node_id: str, folder: Path, top: Path) -> str:
    """The node id that reads so from ``top``, as a folder below it sees it."""
    name, mark, test = node_id.partition("::")
    return f"{Path(os.path.relpath(top / name, folder)).as_posix()}{mark}{test}"

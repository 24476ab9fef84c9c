"""Whether the tests of this process, in a comparison with another revision, ran the code of the tree they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_gpuperf.context.revision_imports import foreign_imports
from pytest_gpuperf.context.worktree import repository_of, working_trees


def foreign_code(config: pytest.Config, others: Sequence[Path], tree: Path) -> list[str]:
    """Modules that this process imported from elsewhere than the working tree ``tree`` that it runs in, in words."""
    return foreign_imports(config.rootpath.resolve(), config.getini("pythonpath"), others, tree)


def foreign_here(config: pytest.Config) -> list[str]:
    """The same of a process that runs in the working tree around pytest's root.  Raises ``RevisionError``."""
    top = repository_of(config.rootpath).top
    return foreign_code(config, [one for one in working_trees(top) if one != top], top)

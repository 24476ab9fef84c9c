"""Which tests have a kernel on record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pytest_gpuperf.baselines.file_types import StaticFile
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.cubin.stable_names import kernel_key


class KernelTests(NamedTuple):
    """Ids of tests by what tells a kernel."""

    by_name: Mapping[str, set[str]]
    """By ``kernel_key`` of its symbol, and by its name as the tests give it."""
    by_code: Mapping[str, set[str]]
    """By the hash of its code."""

    def of(self, symbol: str, name: str, codes: Iterable[str]) -> set[str]:
        """Tests of the kernel with this symbol and name for people, or of any of these codes."""
        found = [self.by_name.get(kernel_key(symbol), set()), self.by_name.get(name, set())]
        return set().union(*found, *(self.by_code.get(code, set()) for code in codes))


def kernel_tests(store: BaselineStore) -> KernelTests:
    """The tests of all static records of the store.  Raises ``BaselineError``."""
    by_name: dict[str, set[str]] = defaultdict(set)
    by_code: dict[str, set[str]] = defaultdict(set)
    for arch in store.archs():
        for module in store.modules(arch):
            file = store.load(arch, module)
            for _, test, _, record in file.records() if isinstance(file, StaticFile) else ():
                for name in (kernel_key(record.symbol or record.kernel), record.kernel):
                    by_name[name].add(f"{module}::{test}")
                by_code[record.profile.code_hash].add(f"{module}::{test}")
    return KernelTests(by_name, by_code)

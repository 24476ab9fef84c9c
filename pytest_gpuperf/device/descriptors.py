"""Arguments that are no array and lead to one: texture objects and TMA descriptors.

A launch is given a handle or 128 bytes that hold an address.  The identity has what they describe instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np


class Descriptor(ABC):
    """Made by ``gpu.texture`` and ``gpu.tensor_map``; a launch keeps it alive, and it keeps its array alive."""

    parameter_bytes: int
    """Size of the kernel's parameter."""
    declared_as: str
    """How CUDA C++ declares that parameter."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    @abstractmethod
    def entry(self) -> str:
        """Its entry in the identity: what it describes, without addresses."""

    @abstractmethod
    def of(self, array: Any) -> Descriptor:
        """The same description of another array of the same shape and type."""

    @property
    def follows_array(self) -> bool:
        """Whether what a kernel reads is the array itself, and not a copy of its own."""
        return True

    @cached_property
    @abstractmethod
    def value(self) -> np.generic | np.ndarray[Any, Any]:
        """What the loaded kernel is given; made at first use, and as long on the device as this object."""


def array_behind(argument: Any) -> Any:
    """The array that a launch's argument reads or writes through an address of it; the argument itself if it is none.

    None for a descriptor with a copy of its own.
    """
    if not isinstance(argument, Descriptor):
        return argument
    return argument.array if argument.follows_array else None

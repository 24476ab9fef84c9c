"""The configuration that Triton's autotuner chose, checked against what was compiled, and as text for the record.

A ``triton.Config`` is read by ``all_kwargs()``, as Triton 3.0 to 3.9 have it; Triton is never imported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pytest_gpuperf.arguments import BadArgument

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Options of every ``triton.Config``, in the order in which they stand behind the kernel's own constants."""
_USUAL = {"num_ctas": 1}
"""Options at these values, others at 0, do nothing and are not told: one Triton has them and another one lacks them."""


def tuned_configuration(kernel: str, config: Any, constants: Mapping[str, Any], metadata: Any) -> str:
    """``BLOCK=1024, num_warps=4, num_stages=3``; empty if ``config`` is None.

    ``constants`` are those that were compiled in, by name; ``metadata`` has the options that the kernel was compiled
    with.  Raises ``BadArgument`` for what is no configuration, or not that of this kernel.
    """
    if config is None:
        return ""
    chosen = _values(config)
    for name, value in chosen.items():
        if name not in constants and not hasattr(metadata, name):
            raise BadArgument(
                f"from_triton: config has {name}={value!r}, and {kernel} has neither a constant nor an option {name}: "
                "give the best_config of the autotuner that compiled it"
            )
        compiled = constants[name] if name in constants else getattr(metadata, name)
        if not _agree(name, value, compiled):
            raise BadArgument(
                f"from_triton: config has {name}={value!r}, and {kernel} was compiled with {compiled!r}: the autotuner "
                "keeps the best_config of its last call alone, so read it right after the call that compiled this"
            )
    return configuration_text(chosen, constants.keys())


def configuration_text(chosen: Mapping[str, Any], constants: Collection[str]) -> str:
    """What was ``chosen``: ``constants`` of the kernel itself by name, then options that do something."""
    own = sorted(name for name in chosen if name in constants)
    options = [*_OPTIONS, *sorted(chosen.keys() - set(own) - set(_OPTIONS))]
    told = [*own, *(name for name in options if chosen.get(name, 0) != _USUAL.get(name, 0))]
    return ", ".join(f"{name}={chosen[name]}" for name in told if name in chosen)


def _values(config: Any) -> dict[str, Any]:
    """By name, without options that were left to Triton."""
    found = config if isinstance(config, Mapping) else None
    if found is None and callable(getattr(config, "all_kwargs", None)):
        found = config.all_kwargs()
    if not isinstance(found, Mapping) or not found:
        raise BadArgument(
            f"from_triton: config is a {type(config).__name__}; it takes kernel.best_config, which an autotuned kernel "
            'has once it was called, or the like by name: {"BLOCK": 1024, "num_warps": 4}'
        )
    return {str(name): value for name, value in found.items() if value is not None}


def _agree(name: str, chosen: Any, compiled: Any) -> bool:
    """Triton adds the warps of a specialised kernel's partitions to those that were asked for."""
    return bool(compiled >= chosen) if name == "num_warps" else bool(compiled == chosen)

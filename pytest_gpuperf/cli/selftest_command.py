"""``gpuperf selftest`` (stub while it is rewritten)."""

PROBLEMS = (OSError,)


def execute(parsed, write):  # type: ignore
    return 0

"""A source without what its machine code cannot depend on, so that a comment makes no other source of it."""

from __future__ import annotations

import functools
import re

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)"
    |"(?:\\.|[^"\\\n])*"
    |'(?:\\.|[^'\\\n])*'""",
    re.DOTALL | re.VERBOSE,
)
_LINE_MATTERS = re.compile(r"__LINE__|\bassert\b|#\s*line\b")


@functools.lru_cache(maxsize=256)
def without_comments(text: str) -> str:
    """The text without comments, blank lines and spaces at the ends of lines.

    One that may ask for the number of a line, as ``assert`` does, stays as it is: there a comment is a change.
    """
    if _LINE_MATTERS.search(text):
        return text
    bare = _TOKEN.sub(lambda found: " " if found["comment"] else found[0], text)
    return "\n".join(line.rstrip() for line in bare.splitlines() if line.strip())

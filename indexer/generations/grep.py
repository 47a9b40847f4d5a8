"""Finds lines by a regular expression in indexed text, within limits for every pattern and repository."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from indexer.errors import BadPattern
from indexer.types import Location, Match, Matches

MAX_PATTERN = 500  # characters
MAX_PER_FILE = 50  # lines
MAX_LINE = 400  # characters that are shown of a line
SECONDS = 2.0
_MEMORY = 8 << 20  # bytes that RE2 may spend on a pattern


def grep_texts(
    texts: Iterable[tuple[str, str]],
    pattern: str,
    *,
    limit: int,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Matches:
    """Search paths with their texts for a pattern in RE2's syntax, line by line; raises `BadPattern`.

    RE2 takes linear time, whatever the pattern; `seconds` limits how many files are searched.
    """
    expression = _compile_pattern(pattern)
    deadline = clock() + seconds
    matches: list[Match] = []
    searched, complete = 0, True
    for path, text in texts:
        if len(matches) > limit or clock() > deadline:
            complete = False
            break
        in_file = list(_find_lines(expression, path, text))
        complete = complete and len(in_file) <= MAX_PER_FILE
        matches += in_file[:MAX_PER_FILE]
        searched += 1
    return Matches(lines=tuple(matches[:limit]), files_searched=searched, complete=complete and len(matches) <= limit)


def _compile_pattern(pattern: str) -> Any:
    """Compile a pattern so that it matches within one line only."""
    import re2

    if not pattern or len(pattern) > MAX_PATTERN:
        raise BadPattern(f"A pattern has between 1 and {MAX_PATTERN} characters.")
    options = re2.Options()
    options.never_nl = True
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        # A group, so that an alternative does not escape the flag; bytes, so that offsets cost nothing.
        return re2.compile(f"(?m:{pattern})".encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise BadPattern(
            f"That is not a valid RE2 pattern: {reason}. Look-around and back-references are not supported."
        ) from error


def _find_lines(expression: Any, path: str, text: str) -> Iterator[Match]:
    """Find the matching lines of one file, at most one more than the limit."""
    data = text.encode("utf-8", "surrogatepass")
    number, counted, start = 1, 0, 0
    for _ in range(MAX_PER_FILE + 1):
        match = expression.search(data, start) if start <= len(data) else None
        if match is None or (match.start() == len(data) and (not data or data.endswith(b"\n"))):
            return
        begin = data.rfind(b"\n", 0, match.start()) + 1
        end = data.find(b"\n", match.start())
        end = len(data) if end < 0 else end
        number, counted = number + data.count(b"\n", counted, begin), begin
        line = data[begin:end].decode("utf-8", "replace").removesuffix("\r")
        yield Match(location=Location(path=path, start_line=number, end_line=number), text=line[:MAX_LINE])
        start = end + 1

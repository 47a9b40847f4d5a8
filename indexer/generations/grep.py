"""Finds lines by a regular expression in indexed text, within limits for every pattern and repository."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from indexer.errors import BadPattern
from indexer.types import Location, Match, Matches, SourceType

MAX_PATTERN = 500  # characters
MAX_PATTERNS = 8  # at once
MAX_PER_FILE = 50  # lines
MAX_LINE = 400  # characters that are shown of a line
CPU_SECONDS = 2.0
READING_ORDER: tuple[SourceType, ...] = ("code", "test", "doc", "config")  # a bound cuts off data first
_MEMORY = 8 << 20  # bytes that RE2 may spend on a pattern


def grep_texts(
    texts: Iterable[tuple[str, str]],
    *patterns: str,
    limit: int,
    total: int | None = None,
    seconds: float = CPU_SECONDS,
    clock: Callable[[], float] = time.thread_time,
) -> Matches:
    """Search texts for RE2 patterns, line by line; raises `BadPattern`.

    Every text is read once for all patterns, each of which may have `limit` lines. RE2 takes linear time. `seconds` of
    this thread's CPU time limit how many of the `total` texts are searched, so a busy machine finds as much as an idle
    one.
    """
    if not 0 < len(patterns) <= MAX_PATTERNS:
        raise BadPattern(f"Between 1 and {MAX_PATTERNS} patterns are searched for at once.")
    expressions = [_compile_pattern(pattern) for pattern in patterns]
    deadline = clock() + seconds
    found: list[list[Match]] = [[] for _ in patterns]
    cut: list[str] = []
    searched, ended_by = 0, ""
    for path, text in texts:
        ended_by = "lines" if all(len(own) > limit for own in found) else "time" if clock() > deadline else ""
        if ended_by:
            break
        data = text.encode("utf-8", "surrogatepass")
        in_file = [list(_find_lines(expression, path, data)) for expression in expressions]
        for own, added in zip(found, in_file, strict=True):
            own.extend(added[:MAX_PER_FILE])
        cut += [path] * any(len(added) > MAX_PER_FILE for added in in_file)
        searched += 1
    is_full = any(len(own) > limit for own in found)
    return Matches(
        lines=tuple(_merge_lines([own[:limit] for own in found])),
        files_searched=searched,
        complete=not (ended_by or cut or is_full),
        files=searched if total is None else total,
        is_out_of_time=ended_by == "time",
        cut_files=tuple(cut),
        counts=tuple(len(own) for own in found),
    )


def _merge_lines(found: Sequence[Sequence[Match]]) -> list[Match]:
    """Merge the lines found by several patterns in file order, each line once."""
    if len(found) == 1:
        return list(found[0])
    files = {path: at for at, path in enumerate(dict.fromkeys(one.location.path for own in found for one in own))}
    lines = {one.location: one for own in found for one in own}
    return sorted(lines.values(), key=lambda one: (files[one.location.path], one.location.start_line))


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
        # A group, so that an alternative does not escape the flag; bytes, so that offsets are free.
        return re2.compile(f"(?m:{pattern})".encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise BadPattern(
            f"That is not a valid RE2 pattern: {reason}. Look-around and back-references are not supported."
        ) from error


def _find_lines(expression: Any, path: str, data: bytes) -> Iterator[Match]:
    """Find the matching lines of one file, at most one more than the limit."""
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

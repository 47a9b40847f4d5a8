"""Writes changed files as a patch that `git apply` takes, without asking git."""

from __future__ import annotations

import hashlib
import posixpath
import zlib
from base64 import b85encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

# Lines that differ at most before two texts count as wholly different; time and memory grow with the square of it.
_MOST_EDITS = 400

Match = tuple[int, int, int]  # where equal lines begin in the old text and in the new one, and how many there are
_CONTEXT = 3  # unchanged lines around a change
_LOOKED_AT = 8_000  # bytes at the beginning of a file that tell whether it is text, as git does it
_PER_LINE = 52  # bytes of a binary patch on one line
_NO_FILE = b"/dev/null"
_ESCAPES = {0x07: b"a", 0x08: b"b", 0x09: b"t", 0x0A: b"n", 0x0B: b"v", 0x0C: b"f", 0x0D: b"r", 0x22: b'"', 0x5C: b"\\"}


def find_matches(old: Sequence[bytes], new: Sequence[bytes]) -> list[Match]:
    """Return the runs of lines that both texts have, in order; the last one is empty and stands at both ends."""
    start = _count_common(old, new)
    end = _count_common(old[start:][::-1], new[start:][::-1])
    inner = _trace_back(_search(old[start : len(old) - end], new[start : len(new) - end]))
    found = [(0, 0, start), *((a + start, b + start, n) for a, b, n in inner), (len(old) - end, len(new) - end, end)]
    return [*(match for match in found if match[2]), (len(old), len(new), 0)]


def find_changes(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int, int, int]]:
    """Return what was replaced: from and to which line of the old text, and by which lines of the new one."""
    matches = [(0, 0, 0), *find_matches(old, new)]
    changes = ((a + n, next_a, b + n, next_b) for (a, b, n), (next_a, next_b, _) in pairwise(matches))
    return [change for change in changes if change[0] < change[1] or change[2] < change[3]]


def _count_common(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    return next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def _search(old: Sequence[bytes], new: Sequence[bytes]) -> list[dict[int, tuple[int, int]]]:
    """Find the shortest way from one text to the other (Myers): per number of edits, how far each diagonal comes.

    A diagonal holds the line of the old text where its last run of equal lines begins, and the one where that ends.
    Empty if the texts differ in too many lines.
    """
    ends = {1: 0}
    steps: list[dict[int, tuple[int, int]]] = []
    for edits in range(_MOST_EDITS + 1):
        step: dict[int, tuple[int, int]] = {}
        for diagonal in range(-edits, edits + 1, 2):
            ways = (ends.get(diagonal + 1, -1), ends.get(diagonal - 1, -2) + 1)  # a line added, a line removed
            begin = max((way for way in ways if 0 <= way <= len(old) and way - diagonal <= len(new)), default=-1)
            if begin < 0:
                continue
            line = begin
            while line < len(old) and line - diagonal < len(new) and old[line] == new[line - diagonal]:
                line += 1
            step[diagonal] = (begin, line)
            if line == len(old) and line - diagonal == len(new):
                return [*steps, {diagonal: (begin, line)}]
        ends = {diagonal: end for diagonal, (_, end) in step.items()}
        steps.append(step)
    return []


def _trace_back(steps: list[dict[int, tuple[int, int]]]) -> list[Match]:
    """Follow the way back from its end, and return the runs of equal lines on it."""
    if not steps:
        return []
    found: list[Match] = []
    (diagonal,) = steps[-1]
    for number in reversed(range(len(steps))):
        begin, end = steps[number][diagonal]
        if end > begin:
            found.append((begin, begin - diagonal, end - begin))
        if number:
            down = steps[number - 1].get(diagonal + 1)
            diagonal += 1 if down is not None and down[1] == begin else -1
    return found[::-1]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileVersion:
    """A file as git keeps it: its mode, such as 100644 or 120000 for a link, and what it holds or where it leads."""

    mode: str
    content: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """A file before and after; None where it was not there."""

    path: bytes
    old: FileVersion | None
    new: FileVersion | None


def leads_out(change: FileChange) -> bool:
    """Whether a change makes a link out of the repository, or says where submodules are fetched from."""
    if change.new is None:
        return False
    if change.path.rpartition(b"/")[2].lower() == b".gitmodules" or change.new.mode == "160000":
        return True
    if change.new.mode != "120000":
        return False
    target = posixpath.normpath(posixpath.join(posixpath.dirname(change.path), change.new.content))
    return target.startswith((b"/", b"../")) or target == b".."


def hash_blob(content: bytes, commit: str) -> str:
    """Return the name that git gives to a content, in a repository whose commits are named like this one."""
    algorithm = hashlib.sha1(usedforsecurity=False) if len(commit) == 40 else hashlib.sha256()
    algorithm.update(b"blob %d\0" % len(content))
    algorithm.update(content)
    return algorithm.hexdigest()


def format_change(change: FileChange, commit: str) -> bytes:
    """Write one change; what was a file and is a link now, or the other way round, is removed and created again."""
    old, new = change.old, change.new
    if old is not None and new is not None and old.mode[:3] != new.mode[:3]:
        parts = (FileChange(path=change.path, old=old, new=None), FileChange(path=change.path, old=None, new=new))
        return b"".join(format_change(part, commit) for part in parts)
    before, after = (version.content if version else b"" for version in (old, new))
    lines = [b"diff --git %s %s\n" % (_quote(b"a/", change.path), _quote(b"b/", change.path)), *_format_modes(old, new)]
    if before == after and old is not None and new is not None:
        return b"".join(lines)
    none = "0" * len(commit)
    names = [hash_blob(version.content, commit) if version else none for version in (old, new)]
    mode = f" {new.mode}" if old and new and old.mode == new.mode else ""
    lines.append(f"index {names[0]}..{names[1]}{mode}\n".encode())
    if b"\0" in before[:_LOOKED_AT] or b"\0" in after[:_LOOKED_AT]:
        lines += [b"GIT binary patch\n", *_format_literal(after), *_format_literal(before)]
    elif before != after:
        lines += [_format_side(b"--- ", b"a/", change.path, old), _format_side(b"+++ ", b"b/", change.path, new)]
        lines += _format_hunks(_split_lines(before), _split_lines(after))
    return b"".join(lines)


def _format_modes(old: FileVersion | None, new: FileVersion | None) -> list[bytes]:
    if old is None:
        return [f"new file mode {new.mode}\n".encode()] if new else []
    if new is None:
        return [f"deleted file mode {old.mode}\n".encode()]
    return [f"old mode {old.mode}\nnew mode {new.mode}\n".encode()] if old.mode != new.mode else []


def _format_side(sign: bytes, prefix: bytes, path: bytes, version: FileVersion | None) -> bytes:
    name = _quote(prefix, path) if version else _NO_FILE
    end = b"\t\n" if b" " in name and not name.startswith(b'"') else b"\n"  # a name with a space would end there
    return sign + name + end


def _quote(prefix: bytes, path: bytes) -> bytes:
    """Write a path as git does; one with bytes beyond ASCII or with controls in quotation marks, those escaped."""
    if all(0x20 <= byte < 0x7F and byte not in _ESCAPES for byte in path):
        return prefix + path
    parts = (
        b"\\" + _ESCAPES[byte] if byte in _ESCAPES else b"%c" % byte if 0x20 <= byte < 0x7F else b"\\%03o" % byte
        for byte in path
    )
    return b'"' + prefix + b"".join(parts) + b'"'


def _split_lines(content: bytes) -> list[bytes]:
    """Split at line feeds alone, which stay; the last line may lack one."""
    lines = [line + b"\n" for line in content.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _format_hunks(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[bytes]:
    for group in _group_changes(find_changes(old, new)):
        first, last = group[0], group[-1]
        start, end = max(0, first[0] - _CONTEXT), min(len(old), last[1] + _CONTEXT)
        new_start, new_end = first[2] - (first[0] - start), last[3] + (end - last[1])
        yield b"@@ -%s +%s @@\n" % (_format_range(start, end), _format_range(new_start, new_end))
        position = start
        for old_from, old_to, new_from, new_to in group:
            yield from _format_lines(b" ", old[position:old_from])
            yield from _format_lines(b"-", old[old_from:old_to])
            yield from _format_lines(b"+", new[new_from:new_to])
            position = old_to
        yield from _format_lines(b" ", old[position:end])


def _group_changes(changes: Sequence[tuple[int, int, int, int]]) -> list[list[tuple[int, int, int, int]]]:
    """Assemble changes whose unchanged surroundings would touch."""
    groups: list[list[tuple[int, int, int, int]]] = []
    for change in changes:
        if groups and change[0] - groups[-1][-1][1] <= 2 * _CONTEXT:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _format_range(start: int, end: int) -> bytes:
    return b"%d,%d" % (start + (end > start), end - start)


def _format_lines(sign: bytes, lines: Sequence[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"


def _format_literal(content: bytes) -> Iterator[bytes]:
    """Write a whole content as letters and digits; each line begins with a letter that tells how long it is."""
    yield b"literal %d\n" % len(content)
    packed = zlib.compress(content)
    for start in range(0, len(packed), _PER_LINE):
        part = packed[start : start + _PER_LINE]
        length = bytes([len(part) + (0x40 if len(part) <= 26 else 0x60 - 26)])
        yield length + b85encode(part, pad=True) + b"\n"
    yield b"\n"

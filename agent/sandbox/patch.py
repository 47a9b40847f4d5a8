"""Writes changed files as a patch that `git apply` takes, without running git."""

from __future__ import annotations

import hashlib
import posixpath
import zlib
from base64 import b85encode
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_MAX_PAIRS = 200_000  # of equal lines; texts that have more are compared as if they had none
_CONTEXT = 3  # unchanged lines around a change
_LOOKED_AT = 8_000  # bytes at the beginning of a file that tell whether it is text, as git does it
_PER_LINE = 52  # bytes of a binary patch on one line
_NO_FILE = b"/dev/null"
_ESCAPES = {0x07: b"a", 0x08: b"b", 0x09: b"t", 0x0A: b"n", 0x0B: b"v", 0x0C: b"f", 0x0D: b"r", 0x22: b'"', 0x5C: b"\\"}


def find_changes(old: list[bytes], new: list[bytes]) -> list[tuple[int, int, int, int]]:
    """Return the replaced line ranges of the old text, and their replacements."""
    start = len(posixpath.commonprefix([old, new]))
    end = len(posixpath.commonprefix([old[start:][::-1], new[start:][::-1]]))
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    counts, frequent = Counter(after), max(200, len(after) // 100)  # which the matcher does not begin with
    if sum(counts[line] for line in before if counts[line] <= frequent) > _MAX_PAIRS:
        return [(start, len(old) - end, start, len(new) - end)]
    changes = (each[1:] for each in SequenceMatcher(None, before, after).get_opcodes() if each[0] != "equal")
    return [(a + start, b + start, c + start, d + start) for a, b, c, d in changes]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileVersion:
    """A file in git: its mode, such as 100644 or 120000 for a link, and its contents or target."""

    mode: str
    content: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """A file before and after; None if it was missing."""

    path: bytes
    old: FileVersion | None
    new: FileVersion | None


def leads_out(change: FileChange) -> bool:
    """Whether a change makes a link out of the repository, or sets the source of submodules."""
    if change.new is None:
        return False
    if change.path.rpartition(b"/")[2].lower() == b".gitmodules" or change.new.mode == "160000":
        return True
    if change.new.mode != "120000":
        return False
    target = posixpath.normpath(posixpath.join(posixpath.dirname(change.path), change.new.content))
    return target.startswith((b"/", b"../")) or target == b".."


def hash_blob(content: bytes, commit: str) -> str:
    """Return git's name for a content, in a repository with commit names like this one."""
    algorithm = hashlib.sha1(usedforsecurity=False) if len(commit) == 40 else hashlib.sha256()
    algorithm.update(b"blob %d\0" % len(content))
    algorithm.update(content)
    return algorithm.hexdigest()


def format_change(change: FileChange, commit: str) -> bytes:
    """Format one change; switching between file and link is a removal and a creation."""
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
    """Quote a path as git does: bytes beyond ASCII and controls are escaped within quotation marks."""
    if all(0x20 <= byte < 0x7F and byte not in _ESCAPES for byte in path):
        return prefix + path
    parts = (
        b"\\" + _ESCAPES[byte] if byte in _ESCAPES else b"%c" % byte if 0x20 <= byte < 0x7F else b"\\%03o" % byte
        for byte in path
    )
    return b'"' + prefix + b"".join(parts) + b'"'


def _split_lines(content: bytes) -> list[bytes]:
    """Split only at line feeds, and keep them; the last line may lack one."""
    lines = [line + b"\n" for line in content.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _format_hunks(old: list[bytes], new: list[bytes]) -> Iterator[bytes]:
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
    """Group changes whose unchanged surroundings would overlap."""
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
    """Write a whole content as letters and digits; each line begins with a letter for its length."""
    yield b"literal %d\n" % len(content)
    packed = zlib.compress(content)
    for start in range(0, len(packed), _PER_LINE):
        part = packed[start : start + _PER_LINE]
        length = bytes([len(part) + (0x40 if len(part) <= 26 else 0x60 - 26)])
        yield length + b85encode(part, pad=True) + b"\n"
    yield b"\n"

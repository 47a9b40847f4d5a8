"""Reads what `git diff` and `git diff-tree` print: hunks, and the files that differ."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from indexer.types import FileFate

MAX_WORDS_READ = 5_000_000  # bytes of a patch, beyond which nobody says which words it touches
MAX_MOVES = 200_000  # lines that were added, among which lines that are gone are looked for
# Git reads a person's settings for a patch; the same algorithm at every step keeps positions comparable.
PATCH_OPTIONS = (
    "--unified=0", "--inter-hunk-context=0", "--full-index", "--diff-algorithm=histogram", "--no-color",
    "--no-ext-diff", "--no-textconv",
)  # fmt: skip
_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_INDEX = re.compile(rb"index ([0-9a-f]{40,64})\.\.([0-9a-f]{40,64})")
WORD = re.compile(r"[^\W\d]\w+|\d+(?:\.\d+)?")
_FATES: Mapping[str, FileFate] = {"A": "added", "D": "removed", "R": "renamed", "C": "renamed"}


@dataclass(frozen=True, slots=True)
class Hunk:
    """Replaced lines; for a side without any, the number of the line before."""

    old_line: int
    old_count: int
    new_line: int
    new_count: int

    def touches(self, lines: tuple[int, int] | None) -> bool:
        """Whether some lines of the newer side were replaced, or surround deleted ones."""
        if lines is None:
            return True
        last = self.new_line + max(self.new_count - 1, 0)
        return self.new_line <= lines[1] and (last >= lines[0] if self.new_count else last >= lines[0] - 1)


@dataclass(slots=True)
class Patch:
    """The hunks of files, by their contents before and after, and the lines that were added."""

    hunks: dict[tuple[str, str], list[Hunk]] = field(default_factory=lambda: defaultdict(list))
    added: list[tuple[str, int, str]] = field(default_factory=list)  # new blob, line, text
    words: set[str] = field(default_factory=set)


@dataclass(frozen=True, kw_only=True, slots=True)
class RawChange:
    """A changed file; names are git's, and empty on a side without the file."""

    fate: FileFate
    old: bytes
    new: bytes
    mode: str
    old_blob: str
    new_blob: str


def read_raw(output: bytes) -> Iterator[RawChange]:
    """Read what `git diff-tree --raw -z` printed: facts, a name, and of a renamed file a second one."""
    fields = iter(output.split(b"\0"))
    for facts in fields:
        if not facts.startswith(b":"):
            continue
        _, mode, old_blob, new_blob, letter = facts.decode("ascii", "replace").split(" ")
        fate = _FATES.get(letter[:1], "changed")
        first = next(fields, b"")
        yield RawChange(
            fate=fate,
            old=b"" if fate == "added" else first,
            new=next(fields, b"") if fate == "renamed" else b"" if fate == "removed" else first,
            mode=mode,
            old_blob=old_blob,
            new_blob=new_blob,
        )


def read_patch(patch: bytes) -> Patch:
    """Read the hunks, by the contents in their header, and added lines; other lines are skipped by count."""
    read, key, minus, plus, line = Patch(), ("", ""), 0, 0, 0
    for text in patch.split(b"\n"):
        if plus and text[:1] == b"+":
            plus -= 1
            if len(read.added) < MAX_MOVES:
                read.added.append((key[1], line, text[1:].decode("utf-8", "replace")))
            line += 1
        elif minus and text[:1] == b"-":
            minus -= 1
        elif found := _HUNK.match(text):
            minus, plus, line = int(found[2] or b"1"), int(found[4] or b"1"), int(found[3])
            read.hunks[key].append(Hunk(int(found[1]), minus, line, plus))
            continue
        elif header := _INDEX.match(text):
            key = header[1].decode(), header[2].decode()
            continue
        else:
            continue
        if len(patch) <= MAX_WORDS_READ:
            read.words.update(list_words([text[1:].decode("utf-8", "replace")]))
    return read


def list_words(lines: Sequence[str]) -> frozenset[str]:
    """List the words and numbers of lines, in lower case."""
    return frozenset(word.lower() for line in lines for word in WORD.findall(line))

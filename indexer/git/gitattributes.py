"""What the `.gitattributes` files of one commit say about being generated or vendored."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import re2

_Mark = Literal["generated", "vendored"]
_MARKS: dict[str, _Mark] = {"linguist-generated": "generated", "linguist-vendored": "vendored"}
_NAME = ".gitattributes"
_LINE = re.compile(r'[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s#"]\S*))[ \t]+(.*)')
_TOKEN = re.compile(r"^\*\*/|/\*\*/|/\*\*$|\*+|\?|\[|\\.|.", re.DOTALL)
_CLASS = re.compile(r"\[!?\]?[^\]]*\]")
_WILD = {"**/": "(?:.*/)?", "/**/": "/(?:.*/)?", "/**": "/.*", "?": "[^/]"}
_LONGEST_LINE = 2048  # characters; git too passes over a longer one
_MOST_PATTERNS = 2_000
_MOST_CHARACTERS = 60_000  # of all patterns together, which each path is held against
_DEEPEST = 100  # folders within folders whose own file is looked for
_BATCH = 250  # patterns that are matched at once: RE2 has memory for so many, unless they are odd

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileAttributes:
    """What `.gitattributes` says of a file: True and False are declared, None is left to the rules."""

    generated: bool | None = None
    vendored: bool | None = None


UNMARKED = FileAttributes()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pattern:
    folder: str
    glob: str
    declared: dict[_Mark, bool]


class GitAttributes:
    """The linguist attributes of one commit.

    The patterns come with the repository, so that they run on RE2, where none of them can take long, and only so many
    count.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        """`files` maps the path of each `.gitattributes` to its text."""
        self._batches: list[tuple[Any, list[dict[_Mark, bool]]]] = []
        patterns = _take_first(_read_patterns(files))
        refused = [bad for at in range(0, len(patterns), _BATCH) for bad in self._add(patterns[at : at + _BATCH])]
        if refused:
            log.warning("%d patterns of .gitattributes cannot be read, such as %.100r.", len(refused), refused[0].glob)

    def of(self, path: str) -> FileAttributes:
        """Look up the marks of a file."""
        marks: dict[_Mark, bool] = {}
        for matcher, declared in self._batches:
            for index in sorted(matcher.Match(path) or ()):
                marks |= declared[index]
        return FileAttributes(**marks) if marks else UNMARKED

    def _add(self, patterns: list[_Pattern]) -> list[_Pattern]:
        """Take patterns to be matched together, or fewer where that is too much for RE2; returns those it refuses."""
        options = re2.Options()
        options.log_errors = False
        matcher = re2.Set.FullMatchSet(options)
        try:
            for pattern in patterns:
                matcher.Add(_expression(pattern.folder, pattern.glob))
            matcher.Compile()
        except re2.error:
            half = len(patterns) // 2
            return [*self._add(patterns[:half]), *self._add(patterns[half:])] if half else patterns
        self._batches.append((matcher, [pattern.declared for pattern in patterns]))
        return []


def is_attributes_file(path: str) -> bool:
    """Tell whether a path is that of a `.gitattributes`."""
    return path.rpartition("/")[2] == _NAME


def list_attribute_files(names: Iterable[bytes]) -> set[bytes]:
    """Name every place of a `.gitattributes` that could decide on one of the files."""
    folders = {parts[:depth] for parts in map(_list_folders, names) for depth in range(len(parts) + 1)}
    return {b"/".join((*folder, _NAME.encode())) for folder in folders}


def _list_folders(name: bytes) -> tuple[bytes, ...]:
    return tuple(name.split(b"/", _DEEPEST)[:-1])


def _read_patterns(files: Mapping[str, str]) -> Iterator[_Pattern]:
    """Read the lines that declare something; what comes later decides: the nearest file, and in it the last line."""
    for path in sorted(files, key=lambda path: path.count("/")):
        for line in files[path].split("\n"):
            found = _LINE.match(line) if len(line) <= _LONGEST_LINE else None
            declared = _declarations(found[3].split()) if found else {}
            if found and declared:
                yield _Pattern(folder=path.rpartition("/")[0], glob=found[1] or found[2], declared=declared)


def _take_first(patterns: Iterable[_Pattern]) -> list[_Pattern]:
    """Take the first patterns, as many as there may be."""
    taken: list[_Pattern] = []
    characters = 0
    for pattern in patterns:
        characters += len(pattern.folder) + len(pattern.glob)
        if len(taken) == _MOST_PATTERNS or characters > _MOST_CHARACTERS:
            log.warning("Of the patterns in .gitattributes the first %d count, and the others do not.", len(taken))
            break
        taken.append(pattern)
    return taken


def _declarations(attributes: list[str]) -> dict[_Mark, bool]:
    """Read `linguist-generated`, `-linguist-generated`, `linguist-generated=false` and so on; the last counts."""
    declared: dict[_Mark, bool] = {}
    for attribute in attributes:
        name, _, value = attribute.removeprefix("-").partition("=")
        if name in _MARKS:
            declared[_MARKS[name]] = not attribute.startswith("-") and value.lower() not in {"false", "0", "no", "off"}
    return declared


def _expression(folder: str, glob: str) -> str:
    """Translate a pattern: as in `.gitignore`, but a folder does not stand for what is in it."""
    prefix = re.escape(folder) + "/" if folder else ""
    anywhere = "" if "/" in glob.rstrip("/") else "(?:.*/)?"
    return f"(?s){prefix}{anywhere}" + "".join(map(_token, _split_glob(glob.removeprefix("/"))))


def _split_glob(glob: str) -> Iterator[str]:
    at = 0
    last = glob.rfind("]")
    # Past the last bracket that closes there is no use in looking for one.
    while found := (_CLASS.match(glob, at) if at < last else None) or _TOKEN.match(glob, at):
        yield found[0]
        at = found.end()


def _token(token: str) -> str:
    if token in _WILD:
        return _WILD[token]
    if token.startswith("*"):
        return "[^/]*"
    if token.startswith("[") and len(token) > 1:
        negated, members = token[1] == "!", token[1:-1].removeprefix("!")
        return f"[{'^/' if negated else ''}{re.escape(members).replace(chr(92) + '-', '-')}]"
    return re.escape(token[-1])

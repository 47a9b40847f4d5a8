"""Reads a commit's `.gitattributes` and `.editorconfig` files."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import re2

_MARKS = {"linguist-generated": "generated", "linguist-vendored": "vendored"}
_ENCODINGS = {"encoding", "working-tree-encoding"}
_NAMES = (".editorconfig", ".gitattributes")  # the latter wins
_SECTION = re.compile(r"[ \t]*\[(.*)\][ \t]*\r?$|[ \t]*charset[ \t]*=[ \t]*([\w-]+)", re.IGNORECASE)
_BRACES = re.compile(r"\{([^{}]*)\}")
_MAX_CHOICES = 50  # of the braces of a section
_LINE = re.compile(r'[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s#"]\S*))[ \t]+(.*)')
_TOKEN = re.compile(r"^\*\*/|/\*\*/|/\*\*$|\*+|\?|\[|\\.|.", re.DOTALL)
_CLASS = re.compile(r"\[!?\]?[^\]]*\]")
_WILD = {"**/": "(?:.*/)?", "/**/": "/(?:.*/)?", "/**": "/.*", "?": "[^/]"}
_LONGEST_LINE = 2048  # characters; git too skips a longer one
_MAX_PATTERNS = 2_000
_MAX_CHARACTERS = 60_000  # of all patterns together, which each path is matched against
_DEEPEST = 100  # nested folders whose own file is looked for
_BATCH = 250  # patterns per matcher: RE2 has memory for so many, unless they are unusual

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileAttributes:
    """The declared attributes of a file: its encoding, if any, and flags; None leaves the decision to the rules."""

    generated: bool | None = None
    vendored: bool | None = None
    encoding: str = ""
    is_large: bool = False  # by the operator's settings


UNMARKED = FileAttributes()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pattern:
    folder: str
    glob: str
    declared: dict[str, Any]


class GitAttributes:
    """The attributes of the files of one commit.

    The patterns come from the repository, so they run on RE2, in linear time, and their number is
    limited.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        """`files` maps the path of each file of attributes to its text."""
        self._batches: list[tuple[Any, list[dict[str, Any]]]] = []
        patterns = _take_first(_read_patterns(files))
        batches = (patterns[start : start + _BATCH] for start in range(0, len(patterns), _BATCH))
        refused = [pattern for batch in batches for pattern in self._add(batch)]
        if refused:
            log.warning("%d patterns of attributes are invalid, such as %.100r.", len(refused), refused[0].glob)

    def of(self, path: str) -> FileAttributes:
        """Look up the attributes of a file."""
        marks: dict[str, Any] = {}
        for matcher, declared in self._batches:
            for index in sorted(matcher.Match(path) or ()):
                marks |= declared[index]
        return FileAttributes(**marks) if marks else UNMARKED

    def _add(self, patterns: list[_Pattern]) -> list[_Pattern]:
        """Compile patterns into one matcher, or into several if RE2 runs out of memory; return those it refuses."""
        options = re2.Options()
        options.log_errors = False
        matcher = re2.Set.FullMatchSet(options)
        try:
            for pattern in patterns:
                matcher.Add(_translate_pattern(pattern.folder, pattern.glob))
            matcher.Compile()
        except re2.error:
            half = len(patterns) // 2
            return [*self._add(patterns[:half]), *self._add(patterns[half:])] if half else patterns
        self._batches.append((matcher, [pattern.declared for pattern in patterns]))
        return []


def is_attributes_file(path: str) -> bool:
    """Whether a path is that of a file of attributes."""
    return path.rpartition("/")[2] in _NAMES


def list_attribute_files(names: Iterable[bytes]) -> set[bytes]:
    """List every path of a file of attributes that could apply to one of the files."""
    parents = (tuple(name.split(b"/", _DEEPEST)[:-1]) for name in names)
    folders = {parts[:depth] for parts in parents for depth in range(len(parts) + 1)}
    return {b"/".join((*folder, name.encode())) for folder in folders for name in _NAMES}


def _read_patterns(files: Mapping[str, str]) -> Iterator[_Pattern]:
    """Read the lines that declare something, in ascending precedence: the nearest file and its last line win."""
    for path in sorted(files, key=lambda path: (path.endswith(_NAMES[1]), path.count("/"))):
        if path.endswith(_NAMES[0]):
            yield from _read_sections(path.rpartition("/")[0], files[path])
            continue
        for line in files[path].split("\n"):
            match = _LINE.match(line) if len(line) <= _LONGEST_LINE else None
            declared = _read_declarations(match[3].split()) if match else {}
            if match and declared:
                yield _Pattern(folder=path.rpartition("/")[0], glob=match[1] or match[2], declared=declared)


def _read_sections(folder: str, text: str) -> Iterator[_Pattern]:
    """Read the encodings of an `.editorconfig`, whose sections are patterns with choices in braces."""
    globs: list[str] = []
    for line in text.split("\n"):
        match = _SECTION.match(line) if len(line) <= _LONGEST_LINE else None
        if match and match[1]:
            globs = _expand_choices(match[1])
        elif match and match[2]:
            declared = {"encoding": match[2].lower().removesuffix("-bom")}
            yield from (_Pattern(folder=folder, glob=glob, declared=declared) for glob in globs)


def _expand_choices(glob: str) -> list[str]:
    globs = [glob]
    while _BRACES.search(globs[0]) and len(globs) < _MAX_CHOICES:
        parts = (_BRACES.split(each, maxsplit=1) for each in globs)
        globs = [first + choice + rest for first, choices, rest in parts for choice in choices.split(",")]
    return globs[:_MAX_CHOICES]


def _take_first(patterns: Iterable[_Pattern]) -> list[_Pattern]:
    """Take the first patterns, up to the limits."""
    taken: list[_Pattern] = []
    characters = 0
    for pattern in patterns:
        characters += len(pattern.folder) + len(pattern.glob)
        if len(taken) == _MAX_PATTERNS or characters > _MAX_CHARACTERS:
            log.warning("Only the first %d patterns of attributes are used.", len(taken))
            break
        taken.append(pattern)
    return taken


def _read_declarations(attributes: list[str]) -> dict[str, Any]:
    """Read `linguist-generated`, `-linguist-generated`, `linguist-generated=false` and so on; the last counts."""
    declared: dict[str, Any] = {}
    for attribute in attributes:
        name, _, value = attribute.removeprefix("-").partition("=")
        if name in _MARKS:
            declared[_MARKS[name]] = not attribute.startswith("-") and value.lower() not in {"false", "0", "no", "off"}
        elif name in _ENCODINGS and value:
            declared["encoding"] = value.lower()
    return declared


def _translate_pattern(folder: str, glob: str) -> str:
    """Translate a pattern to RE2: as in `.gitignore`, but a folder does not match its contents."""
    prefix = re.escape(folder) + "/" if folder else ""
    anywhere = "" if "/" in glob.rstrip("/") else "(?:.*/)?"
    return f"(?s){prefix}{anywhere}" + "".join(map(_translate_token, _split_glob(glob.removeprefix("/"))))


def _split_glob(glob: str) -> Iterator[str]:
    position = 0
    last = glob.rfind("]")
    # After the last closing bracket no class can begin, and looking for one would take quadratic time.
    while match := (_CLASS.match(glob, position) if position < last else None) or _TOKEN.match(glob, position):
        yield match[0]
        position = match.end()


def _translate_token(token: str) -> str:
    if token in _WILD:
        return _WILD[token]
    if token.startswith("*"):
        return "[^/]*"
    if token.startswith("[") and len(token) > 1:
        negated, members = token[1] == "!", token[1:-1].removeprefix("!")
        return f"[{'^/' if negated else ''}{re.escape(members).replace(chr(92) + '-', '-')}]"
    return re.escape(token[-1])

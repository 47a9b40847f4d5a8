"""What the `.gitattributes` files of one commit say about being generated or vendored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import re2

_Mark = Literal["generated", "vendored"]
_MARKS: dict[str, _Mark] = {"linguist-generated": "generated", "linguist-vendored": "vendored"}
_NAME = ".gitattributes"
_LINE = re.compile(r'[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s#"]\S*))[ \t]+(.*)')
_TOKEN = re.compile(r"^\*\*/|/\*\*/|/\*\*$|\*+|\?|\[!?\]?[^\]]*\]|\\.|.", re.DOTALL)
_WILD = {"**/": "(?:.*/)?", "/**/": "/(?:.*/)?", "/**": "/.*", "?": "[^/]"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Marks:
    """What `.gitattributes` says of a file: True and False are declared, None is left to the rules."""

    generated: bool | None = None
    vendored: bool | None = None


UNMARKED = Marks()


class Attributes:
    """The linguist attributes of one commit.

    The patterns come with the repository, so that they run on RE2, where none of them can take long.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        """`files` maps the path of each `.gitattributes` to its text."""
        options = re2.Options()
        options.log_errors = False
        self._patterns = re2.Set.FullMatchSet(options)
        self._declared: list[dict[_Mark, bool]] = []
        # The nearest file decides, and within it the last line: what comes later in this order.
        for path in sorted(files, key=lambda path: path.count("/")):
            for glob, declared in _lines(files[path]):
                if _added(self._patterns, _expression(path.rpartition("/")[0], glob)):
                    self._declared.append(declared)
        if self._declared:
            self._patterns.Compile()

    def of(self, path: str) -> Marks:
        """Look up the marks of a file."""
        if not self._declared:
            return UNMARKED
        marks: dict[_Mark, bool] = {}
        for index in sorted(self._patterns.Match(path) or ()):
            marks |= self._declared[index]
        return Marks(**marks) if marks else UNMARKED


def is_attributes_file(path: str) -> bool:
    """Tell whether a path is that of a `.gitattributes`."""
    return path.rpartition("/")[2] == _NAME


def attributes_above(names: Iterable[bytes]) -> set[bytes]:
    """Name every place of a `.gitattributes` that could decide on one of the files."""
    folders = {tuple(name.split(b"/")[:depth]) for name in names for depth in range(name.count(b"/") + 1)}
    return {b"/".join((*folder, _NAME.encode())) for folder in folders}


def _added(patterns: Any, expression: str) -> bool:
    """Add an expression; a line that is no valid pattern matches nothing, as in git."""
    try:
        patterns.Add(expression)
    except re2.error:
        return False
    return True


def _lines(text: str) -> Iterator[tuple[str, dict[_Mark, bool]]]:
    for line in text.split("\n"):
        found = _LINE.match(line)
        declared = _declarations(found[3].split()) if found else {}
        if found and declared:
            yield found[1] or found[2], declared


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
    return f"(?s){prefix}{anywhere}" + "".join(map(_token, _TOKEN.findall(glob.removeprefix("/"))))


def _token(token: str) -> str:
    if token in _WILD:
        return _WILD[token]
    if token.startswith("*"):
        return "[^/]*"
    if token.startswith("[") and len(token) > 1:
        negated, members = token[1] == "!", token[1:-1].removeprefix("!")
        return f"[{'^/' if negated else ''}{re.escape(members).replace(chr(92) + '-', '-')}]"
    return re.escape(token[-1])

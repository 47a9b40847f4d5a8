"""Describes a repository at a glance: its size, languages, folders, introduction, and entry points."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile, pairwise
from pathlib import PurePosixPath

from indexer.search.path_traits import read_path_traits
from indexer.types import FileEntry, Location, Passage, RepositoryOverview

_ENTRY_POINTS = 5
_LANGUAGES = 6
_TREE_LEVELS = 2
_README_LINES = 120
_README = re.compile(r"readme(?:\.(?:md|markdown|rst|txt|adoc|org))?", re.IGNORECASE)
_STARTS = re.compile(
    r"(?:__main__|main|manage|app|server|wsgi|asgi|cli)\.py|main\.(?:go|rs|c|cc|cpp|java|kt|swift|dart|ts|js|tsx|jsx|zig)"
    r"|(?:index|server|app|cli)\.(?:js|ts|mjs|cjs|tsx)|lib\.rs|Program\.cs|\w*Application\.(?:java|kt)|config\.ru|index\.php"
)
# Lines of a README that introduce nothing: badges, images, links, markup, rules, headings.
_NO_PROSE = re.compile(r"\s*(?:[#=*~^\-<|!\[.{:>]|```|\w+://)|\s*$")
_MARKUP = re.compile(r"<[^<>]{0,200}>|[*_`]")
_EMOJI = re.compile(r":[^:]+:")
_BEING = frozenset({("is", "a"), ("is", "an"), ("is", "the"), ("is", "our")})
_LONGEST = 2_000  # characters of a paragraph that are looked at
_NAMED_WITHIN, _SAID_WITHIN = 12, 10  # words
_MIN_CHARACTERS = 60  # characters of a paragraph that needs no other beside it
_MIN_WORDS = 3


def describe_repository(
    name: str, entries: Sequence[FileEntry], folders: Mapping[str, int], read: Callable[[str], str]
) -> RepositoryOverview:
    """Assemble the description of a repository; `read` returns the text of a file."""
    written = [entry for entry in entries if entry.source_type in {"code", "test"} and entry.language]
    languages = Counter(entry.language for entry in written or entries if entry.language)
    readmes = [entry for entry in entries if _README.fullmatch(PurePosixPath(entry.path).name)]
    readme = min(readmes, key=lambda entry: entry.path.count("/"), default=None)
    return RepositoryOverview(
        files=len(entries),
        lines=sum(entry.lines for entry in entries),
        languages=tuple(languages.most_common(_LANGUAGES)),
        folders=tuple((path, count) for path, count in sorted(folders.items()) if path.count("/") < _TREE_LEVELS),
        starts=tuple(_list_starts(entries)),
        introduction=find_introduction(name, readme.path, readme.language, read(readme.path)) if readme else (),
    )


def _list_starts(entries: Sequence[FileEntry]) -> list[str]:
    """List the files that programs begin in, the ones near the top first."""
    named = [
        entry.path
        for entry in entries
        if entry.source_type == "code" and _STARTS.fullmatch(PurePosixPath(entry.path).name)
    ]
    traits = {path: read_path_traits(path) for path in named}
    # In a repository that is an example as a whole, every path may say so.
    found = [path for path, one in traits.items() if not (one.is_test or one.is_example or one.is_secondary)] or named
    return sorted(found, key=lambda path: (path.count("/"), path))[:_ENTRY_POINTS]


def find_introduction(name: str, path: str, language: str, text: str) -> tuple[Passage, ...]:
    """Find the README's description of the repository, else its first paragraph of prose.

    After a slogan, the next one too.
    """
    lines = text.split("\n", _README_LINES)[:_README_LINES]
    blank = [-1, *(at for at, line in enumerate(lines) if not line.strip()), len(lines)]
    paragraphs = [(before + 1, after) for before, after in pairwise(blank) if after > before + 1]
    says_what_it_is = [(start, end) for start, end in paragraphs if _is_introduction(" ".join(lines[start:end]), name)]
    prose = [(start, end) for start, end in paragraphs if _is_prose(lines[start:end])]
    at_start = prose[:1] if prose and len(" ".join(lines[slice(*prose[0])])) >= _MIN_CHARACTERS else prose[:2]
    return tuple(
        Passage(
            location=Location(path=path, start_line=start + 1, end_line=end),
            text="\n".join(lines[start:end]),
            language=language,
        )
        for start, end in says_what_it_is[:1] or at_start
    )


def _is_prose(lines: Sequence[str]) -> bool:
    """Whether a paragraph has content: a short slogan counts, a badge or a heading does not."""
    words = list(dropwhile(_EMOJI.fullmatch, " ".join(lines).split()))
    return len(words) >= _MIN_WORDS and not _NO_PROSE.match(words[0])


def _is_introduction(text: str, name: str) -> bool:
    """Whether a paragraph introduces something: "NAME is a ..."."""
    words = _MARKUP.sub(" ", text[:_LONGEST]).lower().split()
    called = [at for at, word in enumerate(words[:_NAMED_WITHIN]) if word.strip("(),:") == name.lower()]
    return any(pair in _BEING for at in called for pair in pairwise(words[at : at + _SAID_WITHIN]))

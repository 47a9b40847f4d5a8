"""What a question names that can be looked up: files, definitions and errors. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.questions.mentions import find_mentions, normalize_name
from agent.questions.traceback import parse_error_name, parse_frames
from indexer.models import Definition

MOST_CLUES = 12
_MOST_FRAMES = 4
_TICKED = re.compile(r"`([^`\n]{3,200})`")


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryHint:
    """A file or a name that may be in a repository; `weight` says how much it proves.

    An `exact` name has to be written just so: a capitalised word of the question is seldom a class.
    """

    kind: Literal["path", "name", "hint"]
    text: str
    weight: int
    exact: bool = False


def find_hints(question: str) -> tuple[RepositoryHint, ...]:
    """Find what a question names, what proves most first."""
    found = sorted((*_of_traces(question), *_of_words(question)), key=lambda clue: -clue.weight)
    first = {(clue.kind, clue.text): clue for clue in reversed(found)}
    return tuple(sorted(first.values(), key=lambda clue: -clue.weight))[:MOST_CLUES]


def find_name_hint(repository: str) -> RepositoryHint:
    """The name of a repository, where a question has it as a word like any other."""
    return RepositoryHint(kind="hint", text=repository, weight=2)


def is_path_match(written: str, path: str) -> bool:
    """Whether a path as people and stack traces write it may be that of an indexed file."""
    wanted, indexed = written.strip("/").split("/"), path.split("/")
    wanted = [part for part in wanted if part not in {"", "."}]
    shared = 0
    for one, other in zip(reversed(wanted), reversed(indexed), strict=False):
        if one != other:
            break
        shared += 1
    return shared > 0 and shared >= min(len(wanted), len(indexed), 2)


def is_defined(clue: RepositoryHint, definitions: Sequence[Definition]) -> bool:
    """Whether definitions that were found for a name are what the clue means."""
    plain = clue.text.rpartition(".")[2]
    return any(not clue.exact or each.symbol.name == plain for each in definitions)


def _of_traces(question: str) -> Iterator[RepositoryHint]:
    for frame in parse_frames(question)[-_MOST_FRAMES:]:
        yield _path(frame.path)
        if frame.function and not frame.function.startswith("<"):
            yield _name(frame.function)
    error = parse_error_name(question)
    if error:
        yield _name(error.rpartition(".")[2])


def _of_words(question: str) -> Iterator[RepositoryHint]:
    mentions = find_mentions(question)
    yield from (_path(each.path) for each in mentions.paths)
    yield from map(_name, mentions.names)
    yield from (RepositoryHint(kind="name", text=word, weight=1, exact=True) for word in mentions.words)
    yield from (_path(each) for each in _TICKED.findall(question) if "/" in each and " " not in each)


def _path(written: str) -> RepositoryHint:
    path = written.replace("\\", "/").partition(":")[0] if "/" in written else written
    return RepositoryHint(kind="path", text=path, weight=4 if "/" in path.strip("/") else 2)


def _name(written: str) -> RepositoryHint:
    name = normalize_name(written)
    if "." in name:
        return RepositoryHint(kind="name", text=name, weight=4)
    is_plain = name.isalpha() and name == name.lower()
    return RepositoryHint(kind="name", text=name, weight=1 if is_plain else 3)

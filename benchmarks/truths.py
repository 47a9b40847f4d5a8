"""Questions whose truth is a place: from the files of `benchmarks/keyless/`, and from a folder of SWE-QA questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.keyless import read_subjects
from benchmarks.retrieval import _commit, _list_files, _mirror, _queries

Lines = frozenset[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedQuestion:
    """A question and the places of its truth: each a file, with the lines in it where the truth names lines.

    `is_any` says that one of the places is enough.
    """

    text: str
    kind: str
    places: dict[str, Lines]
    is_any: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedSubject:
    """A repository at a commit, and the questions about it whose truths are places."""

    suite: str
    name: str
    mirror: Path
    commit: str
    questions: tuple[PlacedQuestion, ...]


def read_keyless(folder: Path, mirrors: Path) -> Iterator[PlacedSubject]:
    """Read those of the keyless questions whose truth is a place, or one of several."""
    for subject in read_subjects(folder, None, None):
        mirror = _find_mirror(mirrors, subject.url, subject.name)
        questions = tuple(
            PlacedQuestion(
                text=each.text,
                kind=each.kind,
                places=_gather((place.path, place.start, place.end) for place in each.truth.places),
                is_any=True,
            )
            for each in subject.questions
            if each.truth.places
        )
        if mirror is not None and questions:
            yield PlacedSubject(
                suite="keyless", name=subject.name, mirror=mirror, commit=subject.commit, questions=questions
            )


def read_sweqa(folder: Path, mirrors: Path) -> Iterator[PlacedSubject]:
    """Read the questions of SWE-QA about each repository of which there is a copy with the commit."""
    for record in json.loads((folder / "repos.json").read_text(encoding="utf-8")):
        mirror = _find_mirror(mirrors, record["url"], record["name"])
        if mirror is None:
            continue
        commit = _commit(mirror, record["commit"])
        if commit != record["commit"]:
            print(f"skipped {record['name']}: {mirror} does not have {record['commit']}")
            continue
        known = _list_files(mirror, commit)
        questions = tuple(
            PlacedQuestion(
                text=query.text,
                kind="sweqa",
                places=_gather((one.path, *span) for one in query.targets for span in one.spans or [(None, None)]),
            )
            for query in _queries(folder / f"{record['name']}.json", known)
        )
        yield PlacedSubject(suite="sweqa", name=record["name"], mirror=mirror, commit=commit, questions=questions)


def _find_mirror(mirrors: Path, url: str, name: str) -> Path | None:
    mirror = _mirror(mirrors, url, name)
    if mirror is None:
        print(f"skipped {name}: no copy of {url} below {mirrors}")
    return mirror


def _gather(spans: Iterable[tuple[str, int | None, int | None]]) -> dict[str, Lines]:
    places: dict[str, Lines] = {}
    for path, start, end in spans:
        lines = frozenset(range(start, end + 1)) if start is not None and end is not None else frozenset()
        places[path] = places.get(path, frozenset()) | lines
    return places

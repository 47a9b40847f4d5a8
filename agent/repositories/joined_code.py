"""Several repositories, each at one commit, as joined code: paths begin with the repository's label."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from agent.ports import CatchUp, CodeLibrary, CodePast, CodeSearch
from agent.questions.terms import find_content_terms, match_terms
from agent.repositories.labels import LabelledPlace, RepositoryLabels, add_label, make_labels
from indexer.errors import IndexerError, UnknownPath
from indexer.types import (
    CallSite,
    Commit,
    Coverage,
    Definition,
    FileEntry,
    FileHistory,
    FileImport,
    Filters,
    Hit,
    LeftOut,
    Location,
    Match,
    Matches,
    Passage,
    RegistrationKind,
    RegistrationSite,
    RepositoryOverview,
    SearchAim,
    SearchMode,
    Subclass,
    Unparsed,
)

ONE_AT_A_TIME = "The past is that of one repository. Name the repository."

_MIN_LINES = 5  # of each pattern in each repository
_ELSEWHERE = Filters(folders=("/",))

Found = TypeVar("Found")

log = logging.getLogger(__name__)
_JUDGED = 5  # hits of each repository
_MUCH = 0.5  # of the best repository's weight
_MIN_WEIGHT = 0.1  # of the best repository's weight: what a search has found is never worth nothing


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeHome:
    """The home of a place: its repository, the code, its label, and the path in it.

    The label is empty if a question is about one repository.
    """

    repository: str
    code: CodeSearch
    label: str
    path: str


@dataclass(frozen=True, kw_only=True)
class JoinedCode:
    """The code of several repositories; `missing` names unreadable ones with the reason."""

    members: Mapping[str, CodeSearch]
    labels: RepositoryLabels
    missing: Mapping[str, str] = field(default_factory=dict)
    _files: list[FileEntry] = field(default_factory=list, init=False)

    def narrow(self, name: str) -> JoinedCode:
        """Return one of the repositories, its paths labelled as before."""
        return JoinedCode(members={name: self.members[name]}, labels=self.labels)

    def list_homes(self, path: str) -> list[CodeHome]:
        """Return the places that a path may mean: that of its label, else the path in each repository."""
        found = self.labels.split(path)
        if found is not None and found[0] in self.members:
            return [self._make_home(*found)]
        return [self._make_home(name, path) for name in self.members]

    def find_home(self, path: str) -> CodeHome:
        """Return the one place that a path means; `UnknownPath` if its label is missing."""
        homes = self.list_homes(path)
        if len(homes) != 1:
            names = ", ".join(self.labels.by_name[name] for name in self.members)
            raise UnknownPath(f"{path} is in none of the repositories: paths begin with one of {names}.")
        return homes[0]

    def _make_home(self, name: str, path: str) -> CodeHome:
        return CodeHome(repository=name, code=self.members[name], label=self.labels.by_name[name], path=path)

    @property
    def repository(self) -> str:
        """The names of the repositories."""
        return ", ".join(self.members)

    @property
    def commits(self) -> dict[str, str]:
        """The commit of each repository."""
        return {name: code.commit.sha for name, code in self.members.items()}

    @property
    def commit(self) -> Commit:
        """Return a name for all commits together, which changes with each of them."""
        commits = [code.commit for code in self.members.values()]
        digest = hashlib.sha1(repr(self.commits).encode(), usedforsecurity=False).hexdigest()
        return Commit(sha=digest, branch=None, committed_at=max(one.committed_at for one in commits), subject="")

    @property
    def past(self) -> CodePast:
        """The past of the only repository; `IndexerError` if there are several."""
        if len(self.members) != 1:
            raise IndexerError(ONE_AT_A_TIME)
        return next(iter(self.members.values())).past

    async def history(self, path: str, *, line: int = 0, limit: int = 20) -> FileHistory:
        """The commits that touched a file."""
        home = self.find_home(path)
        return replace(await home.code.history(home.path, line=line, limit=limit), path=path)

    def permalink(self, location: Location, commit: str = "") -> str | None:
        """Return the web address of the lines, or of a commit, in their own repository."""
        name = location.repository
        if not location.path:
            return self.members[name].permalink(location, commit) if name in self.members else None
        home = self.find_home(location.path)
        return home.code.permalink(replace(location, path=home.path), commit)

    def name_cells(self, location: Location) -> str:
        """Name the cells of a notebook that lines are in, such as `cell 7, lines 2-4`; empty for other files."""
        if not location.path:
            return ""
        home = self.find_home(location.path)
        return home.code.name_cells(replace(location, path=home.path))

    async def files(self) -> Sequence[FileEntry]:
        """Every indexed file, by repository and path."""
        if not self._files:
            listings = await self._ask_all(lambda code: code.files())
            self._files[:] = await asyncio.to_thread(self._label_files, listings)
        return self._files

    def _label_files(self, listings: Mapping[str, Sequence[FileEntry]]) -> list[FileEntry]:
        return [
            FileEntry(
                path=f"{self.labels.by_name[name]}/{one.path}",
                language=one.language,
                source_type=one.source_type,
                lines=one.lines,
            )
            for name, entries in listings.items()
            for one in entries
        ]

    async def overview(self) -> RepositoryOverview:
        """Describe the repositories together; each has a folder."""
        facts = await self._ask_all(lambda code: code.overview())
        languages: Counter[str] = Counter()
        for one in facts.values():
            languages.update(dict(one.languages))
        folders = {self.labels.by_name[name]: one.files for name, one in facts.items()}
        return RepositoryOverview(
            files=sum(one.files for one in facts.values()),
            lines=sum(one.lines for one in facts.values()),
            languages=tuple(languages.most_common()),
            folders=tuple(folders.items()),
            starts=tuple(f"{self.labels.by_name[name]}/{path}" for name, one in facts.items() for path in one.starts),
            introduction=(),
        )

    async def folders(self) -> Mapping[str, int]:
        """Count the files in each folder and below it; each repository is a folder."""
        found: dict[str, int] = {}
        listings = await self._ask_all(lambda code: code.folders())
        totals = Counter(entry.path.partition("/")[0] for entry in await self.files())
        for name, counts in listings.items():
            label = self.labels.by_name[name]
            found[label] = totals[label]
            found |= {f"{label}/{folder}": count for folder, count in counts.items()}
        return found

    async def read(self, path: str, start_line: int = 1, end_line: int | None = None) -> Passage:
        """Read lines of an indexed file."""
        home = self.find_home(path)
        return add_label(home.label, await home.code.read(home.path, start_line, end_line))

    async def list_left_out(self) -> Sequence[LeftOut]:
        """Every path that is not indexed, by repository and path."""
        return self._label_left_out(await self._ask_all(lambda code: code.list_left_out()))

    def follow(self, catch_up: CatchUp | None) -> None:
        """Make each "no" wait for newer commits of every repository; None: no longer."""
        for code in self.members.values():
            code.follow(catch_up)

    async def coverage(self, *words: str) -> Coverage:
        """Return the joint coverage of all repositories."""
        found = await self._ask_all(lambda code: code.coverage(*words))
        skipped: Counter[str] = Counter()
        unparsed: Counter[Unparsed] = Counter()
        for one in found.values():
            skipped.update(one.skipped)
            unparsed.update({replace(each, files=0): each.files for each in one.unparsed})
        return Coverage(
            files=sum(one.files for one in found.values()),
            skipped=skipped,
            uncommitted=tuple(
                f"{self.labels.by_name[name]}/{path}" for name, one in found.items() for path in one.uncommitted
            ),
            holding=self._label_left_out({name: one.holding for name, one in found.items()}),
            unparsed=tuple(replace(each, files=count) for each, count in unparsed.items()),
            is_behind=any(one.is_behind for one in found.values()),
        )

    def _label_left_out(self, found: Mapping[str, Sequence[LeftOut]]) -> tuple[LeftOut, ...]:
        return tuple(
            replace(one, path=f"{self.labels.by_name[name]}/{one.path}") for name, left in found.items() for one in left
        )

    async def definitions(self, name: str) -> Sequence[Definition]:
        """Find definitions by name, repository by repository."""
        found: Mapping[str, Sequence[Definition]] = await self._ask_all(lambda code: code.definitions(name))
        exact = {
            repository: [one for one in own if name.rpartition(".")[2] == one.symbol.name]
            for repository, own in found.items()
        }
        return self._label_all(exact if any(exact.values()) else found)

    async def find_enclosing(self, location: Location) -> Sequence[Definition]:
        """Return the definitions around a location, outermost first."""
        home = self.find_home(location.path)
        around = await home.code.find_enclosing(replace(location, path=home.path))
        return [add_label(home.label, one) for one in around]

    async def find_siblings(self, definition: Definition) -> Sequence[Definition]:
        """The definitions that share the definition's parent in its file."""
        home = self.find_home(definition.path)
        beside = await home.code.find_siblings(replace(definition, path=home.path))
        return [add_label(home.label, one) for one in beside]

    async def callers(self, name: str, *, unresolved: bool = False) -> Sequence[CallSite]:
        """List the calls of a function or class, each in the repository of its target."""
        return self._label_all(await self._ask_all(lambda code: code.callers(name, unresolved=unresolved)))

    async def callees(self, name: str) -> Sequence[CallSite]:
        """Return the calls that a function makes."""
        return self._label_all(await self._ask_all(lambda code: code.callees(name)))

    async def list_file_imports(self) -> Sequence[FileImport]:
        """Return the imports of files from their own repository."""
        return self._label_all(await self._ask_all(lambda code: code.list_file_imports()))

    async def subclasses(self, name: str) -> Sequence[Subclass]:
        """Return the subclasses of a type in its own repository."""
        return self._label_all(await self._ask_all(lambda code: code.subclasses(name)))

    async def registrations(self, kinds: Collection[RegistrationKind]) -> Sequence[RegistrationSite]:
        """Return the files' registrations of some kinds."""
        return self._label_all(await self._ask_all(lambda code: code.registrations(kinds)))

    async def complete_name(self, beginning: str, *, limit: int = 20) -> Sequence[str]:
        """Complete qualified names of definitions."""
        names = await self._ask_all(lambda code: code.complete_name(beginning, limit=limit))
        return list(dict.fromkeys(name for own in names.values() for name in own))[:limit]

    async def list_central(self, *, limit: int = 20) -> Sequence[Definition]:
        """Return the definitions most used by the code, alternating between repositories."""
        central = await self._ask_all(lambda code: code.list_central(limit=limit))
        ranked = sorted(
            ((rank, name) for name, own in central.items() for rank in range(len(own))), key=lambda each: each[0]
        )
        return [add_label(self.labels.by_name[name], central[name][rank]) for rank, name in ranked[:limit]]

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        filters: Filters | None = None,
        mode: SearchMode = "hybrid",
        aim: SearchAim = "places",
    ) -> Sequence[Hit]:
        """Rank chunks of all repositories that the filters allow; a failure of one does not affect the others."""
        asked = {name: self._split_filters(name, filters) for name in self.members}
        searches = {
            name: self.members[name].search(query, limit=limit, filters=own, mode=mode, aim=aim)
            for name, own in asked.items()
            if own is not _ELSEWHERE
        }
        results = await asyncio.gather(*searches.values(), return_exceptions=True)
        found: dict[str, Sequence[Hit]] = {}
        failures: list[IndexerError] = []
        for name, result in zip(searches, results, strict=True):
            if isinstance(result, IndexerError):
                log.warning("the %s search of %s failed: %s", mode, name, result)
                failures.append(result)
            elif isinstance(result, BaseException):
                raise result
            else:
                found[name] = [add_label(self.labels.by_name[name], hit) for hit in result]
        if failures and not found:
            raise failures[0]
        return merge_hits(found, query)[:limit]

    def _split_filters(self, name: str, filters: Filters | None) -> Filters | None:
        """Return the filters as one repository reads them; `_ELSEWHERE` if they only let others through."""
        if filters is None:
            return None
        folders, patterns = self._strip_label(name, filters.folders), self._strip_label(name, filters.patterns)
        if (filters.folders and not folders) or (filters.patterns and not patterns):
            return _ELSEWHERE
        return replace(
            filters,
            folders=() if "" in folders else tuple(folders),  # a label alone is all of the repository
            patterns=tuple((pattern.strip("/") and pattern) or "**" for pattern in patterns),
        )

    def _strip_label(self, name: str, written: Iterable[str]) -> list[str]:
        """Return the folders or patterns that may be in a repository; one that begins with a slash still does."""
        kept: list[str] = []
        for path in written:
            found = self.labels.split(path.lstrip("/"))
            if found is None:
                kept.append(path)
            elif found[0] == name:
                kept.append(f"/{found[1]}" if path.startswith("/") else found[1])
        return kept

    async def grep(self, *patterns: str, path: str = "", limit: int = 50) -> Matches:
        """Find lines by patterns in all repositories, or below the path; each has its share of the limit."""
        homes = self.list_homes(path.strip("/"))
        part = max(_MIN_LINES, -(-limit // len(homes)))
        results = await asyncio.gather(
            *(home.code.grep(*patterns, path=home.path, limit=part) for home in homes), return_exceptions=True
        )
        found: list[tuple[CodeHome, Matches]] = []
        unknown: list[UnknownPath] = []
        for home, result in zip(homes, results, strict=True):
            if isinstance(result, UnknownPath):
                unknown.append(result)
            elif isinstance(result, BaseException):
                raise result
            else:
                cut = tuple(f"{home.label}/{each}" for each in result.cut_files)
                found.append((home, replace(result, cut_files=cut)))
        if not found:
            raise unknown[0]
        lines = [add_label(home.label, line) for home, matches in found for line in matches.lines]
        counts = count_matches([matches.counts for _, matches in found], part, limit)
        return merge_matches([matches for _, matches in found], lines, counts)

    async def _ask_all(self, ask: Callable[[CodeSearch], Awaitable[Found]]) -> dict[str, Found]:
        answers = await asyncio.gather(*map(ask, self.members.values()))
        return dict(zip(self.members, answers, strict=True))

    def _label_all(self, found: Mapping[str, Sequence[LabelledPlace]]) -> list[LabelledPlace]:
        return [add_label(self.labels.by_name[name], one) for name, own in found.items() for one in own]


def list_homes(code: CodeSearch, path: str = "") -> list[CodeHome]:
    """Return the repositories of a path: the possible ones for joined code, else the only one."""
    if isinstance(code, JoinedCode):
        return code.list_homes(path)
    return [CodeHome(repository=code.repository, code=code, label="", path=path)]


def place_path(code: CodeSearch, path: str) -> str:
    """Return a path as the code has it: with one repository left of several, its label may be missing."""
    if not isinstance(code, JoinedCode) or len(code.members) != 1:
        return path
    (home,) = code.list_homes(path)
    return f"{home.label}/{home.path}".rstrip("/")


async def pin_repositories(library: CodeLibrary, names: Sequence[str]) -> CodeSearch:
    """Pin the repositories at their newest indexed commits, joined if there are several; no name: the default one.

    Unreadable ones are skipped; if all are, the first reason is raised.
    """
    if len(names) < 2:
        return await library.pin(names[0] if names else None)
    results = await asyncio.gather(*map(library.pin, names), return_exceptions=True)
    members: dict[str, CodeSearch] = {}
    missing: dict[str, IndexerError] = {}
    for name, result in zip(names, results, strict=True):
        if isinstance(result, IndexerError):
            log.warning("%s is missing from an answer: %s", name, result)
            missing[name] = result
        elif isinstance(result, BaseException):
            raise result
        else:
            members[name] = result
    if not members:
        raise next(iter(missing.values()))
    reasons = {name: str(error) for name, error in missing.items()}
    return JoinedCode(members=members, labels=make_labels(names), missing=reasons)


def merge_hits(found: Mapping[str, Sequence[Hit]], query: str) -> list[Hit]:
    """Rank the hits of all repositories, keeping the order within each.

    Each score is relative to the best of its repository, weighted by the words of the question in that best hit; a word
    that few of the repositories have counts more. Strong best hits of the other repositories follow the first of all: a
    question about several is about their connection.
    """
    terms = find_content_terms(query)
    matches = {name: [_match_hit(hit, terms) for hit in hits[:_JUDGED]] for name, hits in found.items()}
    weights = weigh_matches(matches)
    most = max(weights.values(), default=0.0)
    merged: list[Hit] = []
    leading: list[Location] = []
    for name, hits in found.items():
        share = max(weights[name] / most, _MIN_WEIGHT) if most else 1.0
        best = max((hit.score for hit in hits), default=0.0)
        leading += [hits[0].location] if hits and share >= _MUCH else []
        merged += (replace(hit, score=hit.score / best * share if best > 0 else 0.0) for hit in hits)
    return sorted(merged, key=lambda hit: (hit.location not in leading, -hit.score))


def weigh_matches(matches: Mapping[str, Sequence[frozenset[str]]]) -> dict[str, float]:
    """Rate the best match of each repository by its words and their rarity in the others."""
    held = {name: frozenset[str]().union(*each) for name, each in matches.items()}
    worth = {
        term: math.log(1 + len(held) / sum(term in each for each in held.values()))
        for term in frozenset[str]().union(*held.values())
    }
    return {
        name: max((sum(worth[term] for term in match) for match in each), default=0.0) for name, each in matches.items()
    }


def _match_hit(hit: Hit, terms: frozenset[str]) -> frozenset[str]:
    named = " ".join(symbol.name for symbol in hit.symbols)
    return match_terms(f"{hit.location.path} {hit.scope} {named} {hit.text}", terms)


def merge_matches(found: Sequence[Matches], lines: Sequence[Match], counts: Sequence[int]) -> Matches:
    """Merge pattern matches of several repositories; `lines` are all their lines."""
    return Matches(
        lines=tuple(lines),
        files_searched=sum(each.files_searched for each in found),
        complete=all(each.complete for each in found),
        files=sum(each.files for each in found),
        is_out_of_time=any(each.is_out_of_time for each in found),
        cut_files=tuple(path for each in found for path in each.cut_files),
        counts=tuple(counts),
    )


def count_matches(counts: Sequence[Sequence[int]], part: int, limit: int) -> list[int]:
    """Count the lines of each pattern, one more than the limit if a repository exceeds its share."""
    columns = zip(*filter(None, counts), strict=False)
    return [limit + 1 if max(column) > part else min(sum(column), limit) for column in columns]

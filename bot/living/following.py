"""Collects the evidence of answers and follows it through pushes: one diff a push, and another look before an edit."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent import FRAME, Answer, CodeSearch, StoredQuery, find_claimed_numbers, find_names, run_again, store_queries
from agent.text.citation_markers import find_markers
from bot.errors import BotError
from bot.ports import Repositories
from bot.storage.living_answers import AnswerEvidence, CitedPlace, FollowedPlace, FollowedQuery, LivingAnswerStore
from indexer import (
    TELLING_FATES,
    CitedLines,
    FollowedLines,
    IndexerError,
    Location,
    Push,
    make_compare_link,
    make_permalink,
)

if TYPE_CHECKING:
    from bot.ports import Repositories

MAX_NAMED = 3  # places, or entries of a list, that a remark names
_COMMIT = re.compile("[0-9a-f]{40,64}")
_WORD = re.compile(r"\w\w+")
_QUIET = frozenset({"same", "moved", "reformatted"})
log = logging.getLogger(__name__)


@dataclass
class _Following:
    """The effect of a push so far: changed places and lookups, and the words of the difference."""

    places: list[FollowedPlace] = field(default_factory=list)
    queries: list[FollowedQuery] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    is_too_much: bool = False  # to tell which words differ


class AnswerFollower:
    """Follows the answers about each repository to the indexed commit, whenever that changes.

    All is recorded before anybody is told, and following the same push again changes nothing.
    `pages` are the addresses of the repositories, and `on_change` is called when answers no longer
    show their state.
    """

    def __init__(
        self,
        store: LivingAnswerStore,
        repositories: Repositories,
        open_push: Callable[[Path, str, str], Push | None],
        *,
        pages: Mapping[str, str],
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._repositories = repositories
        self._open_push = open_push
        self._pages = pages
        self._on_change = on_change
        self._indexed = asyncio.Event()
        self._waiting = dict.fromkeys(repositories.list_names())

    def notify(self, repository: str) -> None:
        """Note that a newer commit of a repository is indexed."""
        self._waiting[repository] = None
        self._indexed.set()

    async def run(self) -> None:
        """Follow until cancelled; failures wait for the next indexing of the repository."""
        while True:
            self._indexed.clear()
            names, self._waiting = self._waiting, {}
            for name in names:
                try:
                    await self.follow(name)
                except (BotError, IndexerError) as error:
                    log.warning("answers about %s were not followed: %s", name, error)
            await self._indexed.wait()

    async def follow(self, name: str) -> None:
        """Follow all answers about a repository to the indexed commit."""
        status = await self._repositories.status(name)
        newer, path = status.commit, Path(status.path)
        if newer is None:
            return
        followed = await self._store.read_followed_commit(name)
        lagging = await self._store.list_lagging_commits(name)
        found = _Following()
        for commit, at in [(followed, ""), *((commit, commit) for commit in lagging)]:
            if commit not in {"", newer}:
                await self._follow_from(found, name, path, commit, newer, at=at)
        await self._look_again(found, path, newer)
        await self._run_queries(found, name, newer)
        changed = await self._note_changes(found, newer)
        await self._store.advance(name, newer, found.places, found.queries, lagging=lagging)
        if changed:
            self._on_change()

    async def _follow_from(self, found: _Following, name: str, path: Path, older: str, newer: str, *, at: str) -> None:
        """Follow the places known at a commit."""
        with await self._open(path, older, newer) as push:
            if push is None:
                log.warning("%s: %s is gone, so that answers are not followed from there", name, older[:12])
                found.is_too_much = True
                return
            found.is_too_much = found.is_too_much or push.words is None
            found.words |= push.words or set()
            places = await self._store.list_touched_places(name, at, push.paths)
            lines = [replace(one.cited.lines, path=one.now.path, start_line=one.now.start_line,
                             end_line=one.now.end_line) for one in places]  # fmt: skip
            after = await asyncio.to_thread(_follow_all, push, lines)
        for one, now in zip(places, after, strict=True):
            # An earlier change stays until it is compared again with the answer's own commit.
            was_touched = one.now.fate not in _QUIET
            moved = replace(now, fate=one.now.fate) if was_touched and now.fate in _QUIET else now
            if moved != one.now or was_touched:
                found.places.append(replace(one, now=moved))

    async def _look_again(self, found: _Following, path: Path, newer: str) -> None:
        """Compare a changed place again with the commit of its answer: restored code is unchanged."""
        by_commit: dict[str, list[int]] = defaultdict(list)
        for number, place in enumerate(found.places):
            if place.now.fate not in _QUIET:
                by_commit[place.cited.commit].append(number)
        for commit, numbers in by_commit.items():
            with await self._open(path, commit, newer) as push:
                if push is None:
                    continue
                lines = [found.places[number].cited.lines for number in numbers]
                after = await asyncio.to_thread(_follow_all, push, lines)
            for number, now in zip(numbers, after, strict=True):
                # What was moved, and edited later, is gone from there: what was seen on the way says more.
                if now.fate != "gone" or found.places[number].now.fate == "gone":
                    found.places[number] = replace(found.places[number], now=now)

    async def _open(self, path: Path, older: str, newer: str) -> AbstractContextManager[Push | None]:
        push = await asyncio.to_thread(self._open_push, path, older, newer)
        return closing(push) if push is not None else nullcontext(None)

    async def _run_queries(self, found: _Following, name: str, newer: str) -> None:
        """Repeat the lookups whose results the push may have changed."""
        queries = [
            one
            for one in await self._store.list_queries(name)
            if found.is_too_much or (found.words and found.words.issuperset(_WORD.findall(one.query.name.lower())))
        ]
        code = await self._repositories.pin_existing(name) if queries else None
        if code is None or code.commit.sha != newer:
            return
        again: dict[str, StoredQuery] = {}
        for one in queries:
            key = json.dumps(one.query.request, sort_keys=True)
            if key not in again:
                again[key] = await run_again(code, one.query)
            difference = _describe_difference(one.query, again[key])
            if difference != one.difference:
                found.queries.append(replace(one, difference=difference))

    async def _note_changes(self, found: _Following, newer: str) -> bool:
        """Record the changed evidence of each answer; return whether any needs an edit."""
        places = {place.key: place for place in found.places}
        queries = {(query.answer, query.number): query for query in found.queries}
        changed = False
        for answer in sorted({key for key, _ in (*places, *queries)}):
            own = [places.get(one.key, one) for one in await self._store.list_places(answer)]
            looked = [queries.get((answer, one.number), one) for one in await self._store.list_answer_queries(answer)]
            known, changes = await self._store.find(answer), self._describe(own, looked, newer)
            if known is None:
                continue
            # Links of an outdated answer stay, and the same difference up to a newer commit is no other one.
            links = known.links if changes else dict(self._list_links(own, newer))
            if _drop_commits(changes, links) != _drop_commits(known.changes, known.links):
                changed = await self._store.note_changes(answer, newer, changes, links) or changed
        return changed

    def _list_links(self, places: Sequence[FollowedPlace], newer: str) -> Iterator[tuple[str, str]]:
        """Yield the old and the new address of each place that only moved."""
        for cited, now in ((one.cited, one.now) for one in places if one.now.fate in _QUIET and one.has_moved):
            page = self._pages.get(cited.repository)
            old, new = make_permalink(page, cited.commit, _locate(cited)), make_permalink(page, newer, _locate(now))
            if old and new:
                yield old, new

    def _describe(self, places: Sequence[FollowedPlace], looked: Sequence[FollowedQuery], newer: str) -> Sequence[str]:
        """Describe in a heading and phrases which evidence of an answer has changed.

        Lines listed by a lookup may change: the lookup itself says whether it still finds them.
        """
        differences = [one.difference for one in looked if one.difference]
        telling = [
            one
            for one in places
            if one.now.fate in TELLING_FATES and not any(each.query.covers(one.cited.words) for each in looked)
        ]
        heading = f"{len(telling)} of {len(places)} cited places changed" if telling else "what it lists changed"
        named = [self._name_place(one, newer) for one in telling]
        return [heading, *named, *differences] if named or differences else []

    def _name_place(self, place: FollowedPlace, newer: str) -> str:
        cited = place.cited
        lines = f"{cited.start_line}-{cited.end_line}" if cited.end_line > cited.start_line else f"{cited.start_line}"
        name = f"`{cited.path.replace('`', '')}:{lines}`"
        link = make_compare_link(self._pages.get(cited.repository), cited.commit, newer)
        return f"[{name}]({link})" if link else name


def _drop_commits(changes: Sequence[str], links: Mapping[str, str]) -> str:
    return _COMMIT.sub("", json.dumps([[*changes], links]))


def _locate(lines: CitedPlace | FollowedLines) -> Location:
    return Location(path=lines.path, start_line=lines.start_line, end_line=lines.end_line)


def _follow_all(push: Push, lines: Sequence[CitedLines]) -> Sequence[FollowedLines]:
    return [push.follow(one) for one in lines]


def _describe_difference(before: StoredQuery, after: StoredQuery) -> str:
    """Describe how a lookup's results have changed; empty if they have not."""
    if (differences := before.compare(after)) is None:
        return ""
    new, gone = differences
    said = [*_count(new, "new"), *_count(gone, "gone")] or ["another number of places"]
    return f"{before.request['lookup'].replace('_', ' ')} of `{before.name or 'all'}`: {', '.join(said)}"


def _count(items: Sequence[str], what: str) -> Iterable[str]:
    if items:
        named = ", ".join(f"`{item.replace('`', '')}`" for item in items[:MAX_NAMED])
        yield f"{len(items)} {what} ({named}{', …' if len(items) > MAX_NAMED else ''})"


async def collect_evidence(
    answer: Answer, requests: Sequence[Any], repositories: Repositories
) -> AnswerEvidence | None:
    """Collect the evidence of an answer from the requests of its router; None if it has none.

    Lines of other commits never change. If a repository has moved on meanwhile, the result of a lookup is unknown.
    """
    if FRAME in answer.text:  # it points at places that match, and claims nothing of them
        return None
    commits = answer.read_at
    places = tuple(_list_places(answer))
    queries: dict[str, Sequence[StoredQuery]] = {}
    for name, commit in commits.items():
        own = [one for one in requests if one.get("repository", name) == name]
        code = await _hold(repositories, name, commit) if own else None
        if found := await store_queries(code, own) if code is not None else ():
            queries[name] = found
    return AnswerEvidence(commits=commits, places=places, queries=queries) if places or queries else None


def _list_places(answer: Answer) -> Iterable[CitedPlace]:
    words: dict[int, frozenset[str]] = {}
    for marker in find_markers(answer.text):
        said = find_names(marker.sentence) | find_claimed_numbers(marker.sentence)
        words[marker.number] = words.get(marker.number, frozenset()) | said
    for citation in answer.citations:
        if citation.path and not citation.is_elsewhere:
            yield CitedPlace(
                mark=citation.mark,
                repository=citation.repository or answer.repository,
                commit=citation.commit,
                path=citation.path,
                start_line=citation.start_line,
                end_line=citation.end_line,
                words=words.get(citation.mark, frozenset()),
            )


async def _hold(repositories: Repositories, name: str, commit: str) -> CodeSearch | None:
    try:
        code = await repositories.pin_existing(name)
    except IndexerError:
        return None
    return code if code.commit.sha == commit else None

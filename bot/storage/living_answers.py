"""Followed answers: their shown state, cited lines, and lookups."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent import Statement, StoredQuery
from agent.text.storable import make_storable
from bot.messages import MessageContent, MessageHandle
from bot.storage.answer_records import read_content
from bot.storage.database import Table
from indexer import CitedLines, FollowedLines

DAY = 86_400.0
HOUR = 3_600.0
STUCK_SECONDS = 60.0  # after which an edit that was begun is tried again: its process has died
_ID = 20  # characters of a run that all runs of one message share
_MANY = 400  # values in one statement
_EVIDENCE = ("cited_places", "stored_queries")

_KEEP = (
    "INSERT INTO living_answers (id, run_id, entry, conversation, content, question, commits, at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET run_id = excluded.run_id, "
    "content = excluded.content, question = excluded.question, commits = excluded.commits, at = excluded.at, "
    "since = '', changes = '[]', links = '{}', due = 0, "
    "watch = CASE living_answers.watch WHEN 2 THEN 1 ELSE living_answers.watch END"
)
_KEEP_PLACE = (
    "INSERT INTO cited_places (id, mark, repository, cited, at_commit, path, start_line, end_line) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_KEEP_QUERY = "INSERT INTO stored_queries (id, number, repository, name, query) VALUES (?, ?, ?, ?, ?)"
_ADVANCE = (
    "INSERT INTO followed_commits (repository, sha) VALUES (?, ?) "
    "ON CONFLICT (repository) DO UPDATE SET sha = excluded.sha"
)
_CATCH_UP = "UPDATE cited_places SET at_commit = '' WHERE repository = ? AND at_commit = ?"
_MOVE = "UPDATE cited_places SET path = ?, start_line = ?, end_line = ?, fate = ? WHERE id = ? AND mark = ?"
# Once a day, links once a week, and so many an hour in all, of which links alone take half.
_MAY_BE_EDITED = (
    "((due IN (2, 4) AND edited_at < :stuck AND linked_at < :stuck) OR (due IN (1, 3) AND edited_at < :day "
    "AND (due = 1 OR linked_at < :week) AND (SELECT count(*) FROM living_answers WHERE edited_at > :hour) + "
    "(SELECT count(*) FROM living_answers WHERE linked_at > :hour) < CASE due WHEN 1 THEN :most ELSE :most / 2 END))"
)
_CLAIM = (
    "UPDATE living_answers SET due = due + due % 2, edited_at = CASE WHEN due < 3 THEN :now ELSE edited_at END, "
    f"linked_at = CASE WHEN due < 3 THEN linked_at ELSE :now END WHERE id = :id AND {_MAY_BE_EDITED} RETURNING id"
)
_NOTE = (
    "UPDATE living_answers SET changes = :changes, links = :links, since = CASE WHEN :changes = '[]' THEN '' "
    "WHEN since = '' THEN :since ELSE since END, "
    "due = CASE WHEN (changes = '[]') <> (:changes = '[]') OR due IN (1, 2) THEN 1 WHEN links <> :links THEN 3 "
    "ELSE due END WHERE id = :answer AND (changes <> :changes OR links <> :links)"
)
_END = (
    "UPDATE living_answers SET edited_at = CASE WHEN :again = 1 AND due = 2 THEN 0 ELSE edited_at END, "
    "linked_at = CASE WHEN :again = 1 AND due = 4 THEN 0 ELSE linked_at END, due = :again * (due - 1), "
    "watch = CASE WHEN :told = 1 AND watch = 1 THEN 2 ELSE watch END WHERE id = :id AND due IN (2, 4)"
)
_COUNTS_FIRST = "CASE WHEN watch > 0 OR pinned = 1 OR shared <> '[]' THEN 0 ELSE 1 END"
_DIFFER = "UPDATE stored_queries SET difference = ? WHERE id = ? AND number = ?"


@dataclass(frozen=True, kw_only=True, slots=True)
class CitedPlace:
    """Lines that an answer cites, at its commit, with the names and numbers in its claims."""

    mark: int
    repository: str
    commit: str
    path: str
    start_line: int
    end_line: int
    words: frozenset[str] = frozenset()

    @property
    def lines(self) -> CitedLines:
        """The lines in the indexer's form."""
        return CitedLines(path=self.path, start_line=self.start_line, end_line=self.end_line, words=self.words)


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerEvidence:
    """The evidence of one answer; `queries` are by repository, and `commits` are those read."""

    commits: Mapping[str, str]
    places: Sequence[CitedPlace] = ()
    queries: Mapping[str, Sequence[StoredQuery]] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowedPlace:
    """A cited place of an answer, its present position, and its changes."""

    answer: str
    cited: CitedPlace
    now: FollowedLines

    @property
    def key(self) -> tuple[str, int]:
        """The key that identifies the answer."""
        return self.answer, self.cited.mark

    @property
    def has_moved(self) -> bool:
        """Whether it has moved."""
        cited, now = self.cited, self.now
        return (cited.path, cited.start_line, cited.end_line) != (now.path, now.start_line, now.end_line)


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowedQuery:
    """A lookup behind an answer, and its changed result; empty if it is the same."""

    answer: str
    number: int
    query: StoredQuery
    difference: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LivingAnswer:
    """A sent answer, in reply to the message of an inbox entry.

    `since` is the commit at which the first of its evidence changed, empty if none has; `changes`
    are sentences that name what did. `links` are the present addresses of moved lines by their sent
    ones, `shared` the messages that show everybody a private answer, and `is_watched` means that
    its asker wants to hear of a change.
    """

    run_id: str
    entry: int
    content: MessageContent
    question: str
    commits: Mapping[str, str]
    since: str = ""
    changes: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    shared: tuple[MessageHandle, ...] = ()
    is_watched: bool = False
    is_pinned: bool = False


class LivingAnswerStore(Table):
    """The tables `living_answers`, `cited_places`, `stored_queries` and `followed_commits`."""

    async def keep(self, answer: LivingAnswer, conversation: str, evidence: AnswerEvidence) -> None:
        """Keep an answer, replacing any previous one for the same message."""
        key = answer.run_id[:_ID]
        content = json.dumps(dataclasses.asdict(answer.content))
        marks = {one.mark: one for one in evidence.places}
        queries = [(name, query) for name, own in (evidence.queries or {}).items() for query in own]
        await self._database.run_all([
            *_forget([key], _EVIDENCE),
            (
                _KEEP,
                (key, answer.run_id, answer.entry, conversation, make_storable(content),
                 make_storable(answer.question), json.dumps(dict(answer.commits)), self._clock.now()),
            ),
            *((_KEEP_PLACE, _list_values(key, place)) for place in marks.values()),
            *((_KEEP_QUERY, (key, number, name, query.name.lower(), make_storable(json.dumps(query.to_fields()))))
              for number, (name, query) in enumerate(queries)),
        ])  # fmt: skip

    async def find(self, run_id: str) -> LivingAnswer | None:
        """Return the answer to the message of a run; it may come from an earlier run."""
        found = await self._list("id = ?", (run_id[:_ID],))
        return found[0] if found else None

    async def list_places(self, run_id: str) -> Sequence[FollowedPlace]:
        """List the cited places of an answer."""
        return await self._list_places("id = ? ORDER BY mark", (run_id[:_ID],))

    async def list_lagging_commits(self, repository: str) -> Sequence[str]:
        """List the commits, other than the followed one, at which places of a repository are known."""
        rows = await self._database.rows(
            "SELECT DISTINCT at_commit FROM cited_places WHERE repository = ? AND at_commit <> ''", (repository,)
        )
        return [str(commit) for (commit,) in rows]

    async def read_followed_commit(self, repository: str) -> str:
        """Return the commit up to which places of a repository were followed; empty before the first."""
        row = await self._database.row("SELECT sha FROM followed_commits WHERE repository = ?", (repository,))
        return str(row[0]) if row else ""

    async def list_touched_places(
        self, repository: str, at_commit: str, paths: Collection[str]
    ) -> Sequence[FollowedPlace]:
        """List the places in some files at a commit; the followed one is empty."""
        wanted, found = sorted(paths), list[FollowedPlace]()
        for first in range(0, len(wanted), _MANY):
            some = wanted[first : first + _MANY]
            marks = ", ".join("?" * len(some))
            found += await self._list_places(
                f"repository = ? AND at_commit = ? AND path IN ({marks})", (repository, at_commit, *some)
            )
        return found

    async def list_queries(self, repository: str) -> Sequence[FollowedQuery]:
        """List the lookups behind answers in a repository."""
        return await self._list_queries("repository = ?", repository)

    async def advance(
        self,
        repository: str,
        newer: str,
        places: Sequence[FollowedPlace],
        queries: Sequence[FollowedQuery],
        *,
        lagging: Sequence[str] = (),
    ) -> None:
        """Record that places, also those of `lagging` commits, are known at a newer one: all but these are
        unchanged.
        """
        await self._database.run_all([
            (_ADVANCE, (repository, newer)),
            *((_CATCH_UP, (repository, commit)) for commit in lagging),
            *((_MOVE, (one.now.path, one.now.start_line, one.now.end_line, one.now.fate, *one.key)) for one in places),
            *((_DIFFER, (make_storable(one.difference), one.answer, one.number)) for one in queries),
        ])  # fmt: skip

    async def list_answer_queries(self, run_id: str) -> Sequence[FollowedQuery]:
        """List the lookups behind an answer."""
        return await self._list_queries("id = ? ORDER BY number", run_id[:_ID])

    async def note_changes(
        self, answer: str, since: str, changes: Sequence[str], links: Mapping[str, str] | None = None
    ) -> bool:
        """Record the changed and moved evidence of an answer; return whether that is new.

        An answer is edited when it becomes outdated, or up to date again; not for further changes.
        """
        noted = {
            "changes": json.dumps(changes), "links": json.dumps(dict(links or {})), "since": since, "answer": answer
        }  # fmt: skip
        return await self._database.write(_NOTE, noted) > 0

    async def list_due(self, *, per_hour: int, most: int) -> Sequence[LivingAnswer]:
        """List the answers that may be edited now: pinned, shared or watched ones first, then the newest."""
        order = f"{_COUNTS_FIRST}, due, at DESC"
        return await self._list(f"{_MAY_BE_EDITED} ORDER BY {order} LIMIT :listed", self._limit(per_hour, listed=most))

    async def claim_edit(self, answer: LivingAnswer, *, per_hour: int) -> bool:
        """Claim an answer for an edit, by one process only: once a day, and a number per hour in all."""
        values = self._limit(per_hour, id=answer.run_id[:_ID], now=self._clock.now())
        return await self._database.row(_CLAIM, values, lock="living edits") is not None

    def _limit(self, per_hour: int, **more: object) -> Mapping[str, object]:
        now = self._clock.now()
        return {
            "stuck": now - STUCK_SECONDS,
            "day": now - DAY,
            "week": now - 7 * DAY,
            "hour": now - HOUR,
            "most": per_hour,
            **more,
        }

    async def end_edit(self, answer: LivingAnswer, *, again: bool = False, told: bool = False) -> None:
        """Record that an answer shows its state, or must be tried again, unless it has changed meanwhile."""
        await self._database.write(_END, {"again": int(again), "told": int(told), "id": answer.run_id[:_ID]})

    async def mark(self, run_id: str, **columns: int) -> bool:
        """Record whether an answer is watched or pinned; False if it is not followed."""
        named = ", ".join(f"{name} = :{name}" for name in columns)
        return await self._database.write(
            f"UPDATE living_answers SET {named} WHERE run_id = :run_id", {**columns, "run_id": run_id}
        ) > 0  # fmt: skip

    async def note_shared(self, run_id: str, handles: Sequence[MessageHandle]) -> None:
        """Record the messages that show an answer to everybody; changes until now are shown there."""
        await self._database.write(
            "UPDATE living_answers SET shared = ?, due = CASE changes WHEN '[]' THEN due ELSE 1 END WHERE run_id = ?",
            (json.dumps([dataclasses.asdict(handle) for handle in handles]), run_id),
        )

    async def drop_due(self, answer: LivingAnswer) -> None:
        """Record that an answer must not be edited in its place."""
        await self._database.write("UPDATE living_answers SET due = 0 WHERE id = ?", (answer.run_id[:_ID],))

    async def forget_run(self, run_id: str) -> None:
        """Drop the answer to the message of a run."""
        await self._database.run_all(_forget([run_id[:_ID]]))

    async def forget(self, conversation: str) -> None:
        """Drop the answers of a conversation."""
        await self._forget_where("conversation = ?", conversation)

    async def forget_old(self, before: float) -> None:
        """Drop the answers from before a time."""
        await self._forget_where("at < ?", before)

    async def _forget_where(self, condition: str, value: object) -> None:
        rows = await self._database.rows(f"SELECT id FROM living_answers WHERE {condition}", (value,))
        if rows:
            await self._database.run_all(_forget([str(key) for (key,) in rows]))

    async def _list(self, condition: str, values: Sequence[Any] | Mapping[str, Any]) -> Sequence[LivingAnswer]:
        rows = await self._database.rows(
            f"SELECT run_id, entry, content, question, commits, since, changes, links, shared, watch, pinned "
            f"FROM living_answers WHERE {condition}",
            values,
        )
        return [
            LivingAnswer(
                run_id=run_id, entry=entry, content=read_content(json.loads(content)), question=question,
                commits=json.loads(commits), since=since, changes=tuple(json.loads(changes)), links=json.loads(links),
                shared=tuple(MessageHandle(**each) for each in json.loads(shared)), is_watched=watch == 1,
                is_pinned=pinned == 1,
            )
            for run_id, entry, content, question, commits, since, changes, links, shared, watch, pinned in rows
        ]  # fmt: skip

    async def _list_queries(self, condition: str, value: str) -> Sequence[FollowedQuery]:
        rows = await self._database.rows(
            f"SELECT id, number, query, difference FROM stored_queries WHERE {condition}", (value,)
        )
        return [
            FollowedQuery(
                answer=answer, number=number, query=StoredQuery.from_fields(json.loads(text)), difference=difference
            )
            for answer, number, text, difference in rows
        ]

    async def _list_places(self, condition: str, values: Sequence[Any]) -> Sequence[FollowedPlace]:
        rows = await self._database.rows(
            f"SELECT id, cited, path, start_line, end_line, fate FROM cited_places WHERE {condition}", values
        )
        found = []
        for answer, text, path, start, end, fate in rows:
            fields = json.loads(text)
            cited = CitedPlace(**{**fields, "words": frozenset(fields["words"])})
            now = FollowedLines(path=path, start_line=start, end_line=end, fate=fate)
            found.append(FollowedPlace(answer=answer, cited=cited, now=now))
        return found


def _list_values(key: str, place: CitedPlace) -> Sequence[object]:
    cited = json.dumps({**dataclasses.asdict(place), "words": sorted(place.words)})
    return key, place.mark, place.repository, cited, place.commit, place.path, place.start_line, place.end_line


def _forget(keys: Sequence[str], tables: Sequence[str] = ("living_answers", *_EVIDENCE)) -> list[Statement]:
    return [(f"DELETE FROM {table} WHERE id = ?", (key,)) for key in keys for table in tables]

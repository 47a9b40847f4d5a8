"""Stores the repository of each conversation, the routes of its turns, and pending choices."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass

from agent.text.storable import make_storable
from bot.messages import Button, MessageContent
from bot.storage.database import Table

MAX_TOGETHER = 5  # repositories that one question is answered about, and that are offered as buttons

LONGEST_LABEL = 75


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryChoice:
    """The repositories that a question is about, the likeliest first or as the question names them.

    `why` gives the reason, `remark` is the first line of the answer, or empty. `question` lacks the
    words that only choose a repository. `decides` says that the conversation is about them from now
    on, if it is about none yet.
    """

    repositories: tuple[str, ...]
    why: str
    question: str
    remark: str = ""
    decides: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class AmbiguousRepository:
    """Several repositories are possible: the likeliest, best first, and their total number."""

    likeliest: tuple[str, ...]
    of: int


def make_clarifying_question(unclear: AmbiguousRepository, run_id: str) -> MessageContent:
    """Ask back. A button represents a repository by its position, because its value must be short."""
    buttons = tuple(
        Button(action="choose", label=name[:LONGEST_LABEL], value=f"{run_id}.{number}")
        for number, name in enumerate(unclear.likeliest)
    )
    more = "" if unclear.of == len(buttons) else f" `repos` lists all {unclear.of}."
    return MessageContent(
        text=f"Which repository do you mean? Press its button, or say `use NAME`.{more}", buttons=buttons
    )


def parse_choice_button(value: str) -> str:
    """Return the repositories of a pressed button."""
    return value.rpartition(".")[2]


_LAST_LETTER = "\U0010ffff"  # no key continues it, so all that begin alike come before it


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationTopic:
    """The repositories of a conversation, in the table one per line, and the time they were last set or used."""

    repositories: tuple[str, ...]
    at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingQuestion:
    """A question with an unclear repository, the offered names, and the time."""

    run_id: str
    question: str
    names: tuple[str, ...]
    at: float = 0.0


class ChoiceStore(Table):
    """The tables `topics`, `routes` and `asked_back`."""

    async def topic(self, conversation: str) -> ConversationTopic | None:
        """Return a conversation's repositories."""
        row = await self._database.row("SELECT repository, at FROM topics WHERE conversation = ?", (conversation,))
        return ConversationTopic(repositories=tuple(row[0].split("\n")), at=row[1]) if row else None

    async def set_topic(self, conversation: str, repositories: Sequence[str]) -> None:
        """Set a conversation's repositories."""
        await self._database.write(
            "INSERT INTO topics (conversation, repository, at) VALUES (?, ?, ?) "
            "ON CONFLICT (conversation) DO UPDATE SET repository = excluded.repository, at = excluded.at",
            (conversation, "\n".join(repositories), self._clock.now()),
        )

    async def recent(self, channel: str) -> Sequence[str]:
        """Return the subjects of the conversations with a key prefix, newest first."""
        rows = await self._database.rows(
            "SELECT repository FROM topics WHERE conversation >= ? AND conversation < ? GROUP BY repository "
            "ORDER BY max(at) DESC LIMIT 20",
            (channel, f"{channel}{_LAST_LETTER}"),
        )
        return list(dict.fromkeys(name for (names,) in rows for name in str(names).split("\n")))

    async def decide(self, run_id: str, conversation: str, route: RepositoryChoice) -> None:
        """Store the choice of a turn, so that it is the same after a restart; the question is not stored."""
        record = json.dumps(dataclasses.asdict(dataclasses.replace(route, question="")))
        await self._database.write(
            "INSERT INTO routes (run_id, conversation, route, at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (run_id) DO UPDATE SET conversation = excluded.conversation, route = excluded.route, "
            "at = excluded.at",
            (run_id, conversation, record, self._clock.now()),
        )

    async def find_route(self, run_id: str) -> RepositoryChoice | None:
        """Return the stored route of a turn, without its question."""
        row = await self._database.row("SELECT route FROM routes WHERE run_id = ?", (run_id,))
        return _read_choice(row[0]) if row else None

    async def together(self, conversation: str) -> Sequence[str]:
        """Return the repositories that a conversation has combined with others."""
        rows = await self._database.rows("SELECT route FROM routes WHERE conversation = ?", (conversation,))
        routes = [_read_choice(text) for (text,) in rows]
        return tuple(
            dict.fromkeys(name for route in routes if len(route.repositories) > 1 for name in route.repositories)
        )

    async def ask_back(self, conversation: str, author: str, asked: PendingQuestion) -> None:
        """Store a question until its author has chosen the repository."""
        question = make_storable(asked.question)
        await self._database.write(
            "INSERT INTO asked_back (run_id, conversation, author, question, names, at) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (run_id) DO UPDATE SET conversation = excluded.conversation, author = excluded.author, "
            "question = excluded.question, names = excluded.names, at = excluded.at",
            (asked.run_id, conversation, author, question, json.dumps(asked.names), self._clock.now()),
        )

    async def find_pending_question(self, run_id: str) -> PendingQuestion | None:
        """Return a question that waits for its author's choice."""
        row = await self._database.row("SELECT run_id, question, names, at FROM asked_back WHERE run_id = ?", (run_id,))
        return _make_pending_question(*row) if row else None

    async def last_asked_back(self, conversation: str, author: str) -> PendingQuestion | None:
        """Return the newest question of a person in a conversation that waits for a choice."""
        row = await self._database.row(
            "SELECT run_id, question, names, at FROM asked_back WHERE conversation = ? AND author = ? "
            "ORDER BY at DESC, rowid DESC LIMIT 1",
            (conversation, author),
        )
        return _make_pending_question(*row) if row else None

    async def close(self, run_id: str) -> None:
        """Drop the data of a finished turn."""
        await self._database.write("DELETE FROM routes WHERE run_id = ?", (run_id,))
        await self._database.write("DELETE FROM asked_back WHERE run_id = ?", (run_id,))

    async def forget(self, conversation: str) -> None:
        """Drop the data of a conversation."""
        await self._database.write("DELETE FROM topics WHERE conversation = ?", (conversation,))
        await self._database.write("DELETE FROM routes WHERE conversation = ?", (conversation,))
        await self._database.write("DELETE FROM asked_back WHERE conversation = ?", (conversation,))

    async def forget_old(self, before: float) -> None:
        """Drop data older than a time."""
        await self._database.write("DELETE FROM topics WHERE at < ?", (before,))
        await self._database.write("DELETE FROM routes WHERE at < ?", (before,))
        await self._database.write("DELETE FROM asked_back WHERE at < ?", (before,))


def _make_pending_question(run_id: str, question: str, names: str, at: float) -> PendingQuestion:
    return PendingQuestion(run_id=run_id, question=question, names=tuple(json.loads(names)), at=at)


def _read_choice(text: str) -> RepositoryChoice:
    fields = json.loads(text)
    return RepositoryChoice(**fields | {"repositories": tuple(fields["repositories"])})

"""Stores the state of threads: whether citebot takes part, mute, the repository in use, the conversation."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from bot.messages import IncomingMessage, Place
from bot.storage.database import Table

GOES_ON_SECONDS = 1_800.0  # a DM belongs to the conversation before it while that is younger
EXCHANGES = 4  # newest messages; if another person wrote one of them, a follow-up is not for citebot


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreadState:
    """One thread. `people` wrote its last messages, oldest first; `last_at` is the time of the last question."""

    key: str
    conversation: str
    takes_part: bool = False
    muted: bool = False
    repository: str | None = None
    people: tuple[str, ...] = ()
    last_at: float = 0.0


class ThreadStore(Table):
    """The table `threads`."""

    async def should_answer(self, message: IncomingMessage, *, by_anybody: bool = False) -> bool:
        """Whether to answer a message; notes its author in threads with citebot.

        A message without a mention is answered in an unmuted thread with citebot, if only its
        author wrote recently; or anybody's, if its content allows it.
        """
        if message.kind != "follow_up":
            return True
        thread = await self._note_author(message)
        if thread is None or thread.muted or message.mentions_others:
            return False
        return by_anybody or set(thread.people) == {message.author}

    async def enter(self, message: IncomingMessage) -> str:
        """Join the thread of a message to be answered; return its conversation.

        A direct message outside threads continues the previous conversation for half an hour.
        """
        columns: dict[str, object] = {"takes_part": True, "last_at": self._clock.now()}
        if message.kind == "direct" and not message.in_thread:
            now = self._clock.now()
            ((conversation,),) = await self._database.rows(
                "INSERT INTO threads (key, conversation, last_at) VALUES (:key, :begun, :now) "
                "ON CONFLICT (key) DO UPDATE SET last_at = excluded.last_at, conversation = "
                "CASE WHEN threads.last_at < :oldest THEN excluded.conversation ELSE threads.conversation END "
                "RETURNING conversation",
                {
                    "key": f"{replace(message.place, thread='').key()}session",
                    "begun": replace(message.place, thread=message.id).key(),
                    "now": now,
                    "oldest": now - GOES_ON_SECONDS,
                },
            )
            columns["conversation"] = str(conversation)
        if message.kind != "follow_up":
            columns["people"] = json.dumps([message.author])
        return await self._change(_make_key(message), **columns)

    async def leave(self, message: IncomingMessage) -> None:
        """Leave the thread of a message."""
        await self._database.write("UPDATE threads SET takes_part = 0 WHERE key = ?", (_make_key(message),))

    async def find(self, place: Place) -> ThreadState | None:
        """Find a known thread."""
        return await self._read_row(place.key())

    async def settings(self, message: IncomingMessage) -> ThreadState:
        """Return the thread of a message."""
        key = _make_key(message)
        return await self._read_row(key) or ThreadState(key=key, conversation=key)

    async def mute(self, message: IncomingMessage, *, muted: bool) -> None:
        """Mute citebot in a thread until it is addressed by a command, or unmute it."""
        await self._change(_make_key(message), muted=muted, last_at=self._clock.now())

    async def use(self, message: IncomingMessage, repository: str) -> None:
        """Use a repository from now on in this thread, or in this channel outside threads."""
        await self._change(_make_key(message), repository=repository, last_at=self._clock.now())
        if not message.in_thread:
            channel = replace(message, place=replace(message.place, thread=""))
            await self._change(_make_key(channel), repository=repository)

    async def repository(self, message: IncomingMessage) -> str | None:
        """Return the repository in use in the thread of a message, else in its channel."""
        channel = replace(message, place=replace(message.place, thread=""))
        return (await self.settings(message)).repository or (await self.settings(channel)).repository

    async def forget_old(self, before: float) -> int:
        """Delete the threads without a question since a time; return their number.

        A channel's choice stays, because questions are only in its threads.
        """
        return await self._database.write("DELETE FROM threads WHERE last_at < ? AND last_at > 0", (before,))

    async def _note_author(self, message: IncomingMessage) -> ThreadState | None:
        """Add an author to a thread of citebot's, and return it; None for other threads."""
        while True:
            thread = await self.find(message.place)
            if thread is None or not thread.takes_part:
                return None
            people = (*thread.people, message.author)[-EXCHANGES:]
            noted = await self._database.write(
                "UPDATE threads SET people = ? WHERE key = ? AND people = ?",
                (json.dumps(people), thread.key, json.dumps(thread.people)),
            )
            if noted:  # else somebody else wrote meanwhile, who must be noted as well
                return replace(thread, people=people)

    async def _read_row(self, key: str) -> ThreadState | None:
        row = await self._database.row(
            "SELECT key, conversation, takes_part, muted, repository, people, last_at FROM threads WHERE key = ?",
            (key,),
        )
        if row is None:
            return None
        name, conversation, takes_part, muted, repository, people, last_at = row
        return ThreadState(
            key=name,
            conversation=conversation,
            takes_part=bool(takes_part),
            muted=bool(muted),
            repository=repository,
            people=tuple(json.loads(people)),
            last_at=last_at,
        )

    async def _change(self, key: str, **columns: object) -> str:
        """Write some columns of a thread, creating it if missing, and return its conversation.

        One statement leaves the other columns alone, because another process may be writing them.
        """
        row = {"key": key, "conversation": key, "last_at": 0.0} | columns
        changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
        ((conversation,),) = await self._database.rows(
            f"INSERT INTO threads ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)}) "  # noqa: S608 - names of columns
            f"ON CONFLICT (key) DO UPDATE SET {changes} RETURNING conversation",
            row,
        )
        return str(conversation)


def _make_key(message: IncomingMessage) -> str:
    """Name the thread; private messages in a channel form a separate conversation."""
    key = message.place.key()
    return f"{key}:{message.author}" if message.private and message.kind != "direct" else key

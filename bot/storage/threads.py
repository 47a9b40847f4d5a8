"""What citebot remembers of threads: whether it takes part, mute, the repository in use, the conversation."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from bot.clock import Clock
from bot.messages import IncomingMessage, Place
from bot.storage.database import SqlDatabase

GOES_ON_SECONDS = 1_800.0  # a DM belongs to the conversation before it while that is younger
EXCHANGES = 4  # newest messages; if another person wrote one of them, a follow-up is not for citebot


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreadState:
    """One thread. `people` wrote the last messages in it, oldest first; `last_at` is when citebot was last asked."""

    key: str
    conversation: str
    takes_part: bool = False
    muted: bool = False
    repository: str | None = None
    people: tuple[str, ...] = ()
    last_at: float = 0.0


class ThreadStore:
    """The table `threads`."""

    def __init__(self, database: SqlDatabase, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def should_answer(self, message: IncomingMessage) -> bool:
        """Whether a message is to be answered; notes who has written in a thread that citebot takes part in.

        A message that names nobody is, where citebot takes part, is not muted, and only the author has written lately.
        """
        if message.kind != "follow_up":
            return True
        thread = await self.find(message.place)
        if thread is None or not thread.takes_part:
            return False
        people = (*thread.people, message.author)[-EXCHANGES:]
        await self._save(replace(thread, people=people))
        return not thread.muted and not message.mentions_others and set(people) == {message.author}

    async def enter(self, message: IncomingMessage) -> str:
        """Take part in the thread of a message to be answered; return the conversation that it belongs to."""
        key = _make_key(message)
        known = await self._read_row(key)
        thread = known or ThreadState(key=key, conversation=key)
        if message.kind == "direct" and not message.in_thread:
            thread = replace(thread, conversation=await self._continue_session(message))
        named = message.kind != "follow_up"
        people = (message.author,) if named else thread.people
        await self._save(replace(thread, takes_part=True, people=people, last_at=self._clock.now()))
        return thread.conversation

    async def leave(self, message: IncomingMessage) -> None:
        """Take part in the thread of a message no more."""
        await self._save(replace(await self.settings(message), takes_part=False))

    async def find(self, place: Place) -> ThreadState | None:
        """Return a thread that is known."""
        return await self._read_row(place.key())

    async def settings(self, message: IncomingMessage) -> ThreadState:
        """Return the thread of a message."""
        key = _make_key(message)
        return await self._read_row(key) or ThreadState(key=key, conversation=key)

    async def mute(self, message: IncomingMessage, *, muted: bool) -> None:
        """Mute citebot in a thread until it is addressed by a command, or unmute it."""
        await self._save(replace(await self.settings(message), muted=muted, last_at=self._clock.now()))

    async def use(self, message: IncomingMessage, repository: str) -> None:
        """Ask about a repository from now on in this thread, or in this channel where it is no thread."""
        await self._save(replace(await self.settings(message), repository=repository, last_at=self._clock.now()))
        if not message.in_thread:
            channel = replace(message, place=replace(message.place, thread=""))
            await self._save(replace(await self.settings(channel), repository=repository))

    async def repository(self, message: IncomingMessage) -> str | None:
        """Return the repository in use in the thread of a message, else in its channel."""
        channel = replace(message, place=replace(message.place, thread=""))
        return (await self.settings(message)).repository or (await self.settings(channel)).repository

    async def forget_old(self, before: float) -> int:
        """Drop the threads in which citebot was last asked before a time; return how many.

        What a channel chose stays: nothing was ever asked in it but in threads of its own.
        """
        return await self._database.write("DELETE FROM threads WHERE last_at < ? AND last_at > 0", (before,))

    async def _continue_session(self, message: IncomingMessage) -> str:
        """Go on with the conversation of a DM, or begin one."""
        key, now = f"{replace(message.place, thread='').key()}session", self._clock.now()
        last = await self._read_row(key)
        fresh = last is None or now - last.last_at > GOES_ON_SECONDS
        begun = f"{replace(message.place, thread=message.id).key()}"
        session = ThreadState(key=key, conversation=begun) if last is None or fresh else last
        await self._save(replace(session, last_at=now))
        return session.conversation

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

    async def _save(self, thread: ThreadState) -> None:
        await self._database.write(
            "INSERT INTO threads (key, conversation, takes_part, muted, repository, people, last_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET conversation = excluded.conversation, "
            "takes_part = excluded.takes_part, muted = excluded.muted, repository = excluded.repository, "
            "people = excluded.people, last_at = excluded.last_at",
            (
                thread.key, thread.conversation, thread.takes_part, thread.muted, thread.repository,
                json.dumps(thread.people), thread.last_at,
            ),
        )  # fmt: skip


def _make_key(message: IncomingMessage) -> str:
    """Name the thread; what only its author sees in a channel is a conversation of theirs."""
    key = message.place.key()
    return f"{key}:{message.author}" if message.private and message.kind != "direct" else key

"""One message on its way to a settled reply, as far as this process has brought it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from bot.clock import Clock
from bot.messages import MessageContent
from bot.monitoring.observer import ReplyTimer, TurnOutcome
from bot.replies.reply import Reply
from bot.replies.streaming_answer import StreamingAnswer
from bot.storage.inbox import InboxEntry

# Why a turn was broken off: by a person; because it took too long; because the message was edited, deleted or taken by
# another process, so that nothing may be said; because this process ends, and the next one goes on.
Break = Literal["", "stopped", "late", "superseded", "handed over"]


@dataclass
class ActiveTurn:
    """A claimed message, its reply and its draft. `reason` says why it was broken off; `ended` is set at its end.

    `asks` is set for a question, in contrast to a command; `gives_up` where the reply is that there is none; `outcome`
    is how it went as far as is known. Once it is known which `repositories` a question is about, `runs` are those
    that answer it.
    """

    entry: InboxEntry
    reply: Reply
    draft: StreamingAnswer
    stages: ReplyTimer
    reason: Break = ""
    asks: bool = False
    gives_up: bool = False
    outcome: TurnOutcome = "unsaid"
    final: MessageContent | None = None
    task: asyncio.Task[None] | None = None
    runs: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_recovered(self) -> bool:
        """Whether an earlier claim of the message was not brought to its end."""
        return self.entry.claims > 1

    @property
    def final_outcome(self) -> TurnOutcome:
        """How the turn went, for whoever counts: one that was taken away has no outcome of its own."""
        if self.reason == "superseded":
            return "superseded"
        return "handed_over" if self.reason == "handed over" else self.outcome


async def wait_for_turns(turns: Sequence[ActiveTurn], clock: Clock, seconds: float) -> Sequence[ActiveTurn]:
    """Wait until turns have ended, for so long at most; return those that have not."""

    async def end() -> None:
        for turn in turns:
            await turn.ended.wait()

    ending, timer = asyncio.create_task(end()), asyncio.create_task(clock.sleep(seconds))
    await asyncio.wait({ending, timer}, return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    timer.cancel()
    return [turn for turn in turns if not turn.ended.is_set()]

"""The dependencies shared by all turns, and a turn's final text with its outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from cachetools import TTLCache

from bot.clock import Clock
from bot.conversations.commands import CommandHandlers
from bot.conversations.goal_turns import ChatGoals
from bot.markdown.formatting import neutralize
from bot.messages import IncomingMessage, MessageContent
from bot.monitoring.observer import TurnOutcome
from bot.ports import Answerer
from bot.questions.answer_run import QuestionDeps
from bot.repositories.chooser import RepositoryChooser
from bot.storage.answer_records import ShareableAnswerStore, SharedAnswerStore
from bot.storage.inbox import Inbox
from bot.storage.rate_limits import QuestionCounter
from bot.storage.turn_records import TurnRecordStore

DAY_SECONDS = 86_400.0
_MAX_KNOWN = 10_000


class DailyNotices:
    """Remembers who was told today, in which channel."""

    def __init__(self, clock: Clock) -> None:
        self._told: TTLCache[tuple[str, str, str], bool] = TTLCache(_MAX_KNOWN, DAY_SECONDS, timer=clock.now)

    def is_due(self, message: IncomingMessage) -> bool:
        """Whether the author of a message gets a notice today; asking counts as giving it."""
        key = (message.place.platform, message.place.channel, message.author)
        if key in self._told:
            return False
        self._told[key] = True
        return True


# Why a turn is interrupted: by a person; because it took too long; because the message was edited or deleted here, so
# that nothing may be said, and its run is given up; because another process has it by now, to whom the run may belong
# as well; because this process ends, and the next one continues.
Break = Literal["", "stopped", "late", "superseded", "lost", "handed over"]


@dataclass(frozen=True, kw_only=True)
class TurnDeps(QuestionDeps):
    """The parts that all turns use."""

    agent: Answerer
    inbox: Inbox
    commands: CommandHandlers
    chooser: RepositoryChooser
    records: TurnRecordStore
    shareable: ShareableAnswerStore
    shared: SharedAnswerStore
    goals: ChatGoals
    counter: QuestionCounter
    notices: DailyNotices
    takes_images: bool = False

    def make_sentence(self, said: str | MessageContent) -> MessageContent:
        """Return a text in a safe form; an attached file stays unchanged."""
        content = said if isinstance(said, MessageContent) else MessageContent(text=said)
        return replace(content, text=neutralize(self.mask(content.text), self.hosts))


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """The reply of a turn, and its outcome for the metrics."""

    content: MessageContent
    outcome: TurnOutcome

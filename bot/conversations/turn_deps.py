"""The dependencies that all turns share, and the text with the outcome that a turn ends with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from bot.clock import Clock
from bot.conversations.commands import CommandHandlers
from bot.conversations.goal_turns import ChatGoals
from bot.conversations.turns.daily_notices import DailyNotices
from bot.conversations.turns.question_code import CodeDeps
from bot.markdown.safety import neutralize
from bot.messages import MessageContent
from bot.monitoring.observer import ConversationObserver, NullObserver, TurnOutcome
from bot.ports import Answerer, QuestionLimiter
from bot.storage.inbox import Inbox
from bot.storage.shareable_answers import ShareableAnswerStore
from bot.storage.turn_records import TurnRecordStore

# Why a turn is interrupted: by a person; because it took too long; because the message was edited or deleted here, so
# that nothing may be said, and its run is given up; because another process has it by now, to whom the run may belong
# as well; because this process ends, and the next one continues.
Break = Literal["", "stopped", "late", "superseded", "lost", "handed over"]


@dataclass(frozen=True, kw_only=True)
class TurnDeps(CodeDeps):
    """What all turns use."""

    agent: Answerer
    inbox: Inbox
    commands: CommandHandlers
    ratings: TurnRecordStore
    shareable: ShareableAnswerStore
    goals: ChatGoals
    counter: QuestionLimiter
    clock: Clock
    notices: DailyNotices
    deadline: float = 150.0
    observer: ConversationObserver = field(default_factory=NullObserver)

    def make_sentence(self, said: str | MessageContent) -> MessageContent:
        """Return what is said in a form that is safe to send; a file that goes with it goes as it is."""
        content = said if isinstance(said, MessageContent) else MessageContent(text=said)
        return replace(content, text=neutralize(self.mask(content.text), self.hosts))


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """What a turn has to say, and how it counts."""

    content: MessageContent
    outcome: TurnOutcome

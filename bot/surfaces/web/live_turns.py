"""The conversations of the page: they continue in this process without a reader, and are kept for a while."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic

from agent import AgentEvent
from bot.clock import Clock
from bot.replies.paging import cut_to_stable
from bot.surfaces.ask_events import Answered, AnswerState, AskEvent, NotAnswered, RunBegun, StageBegun, TextPart
from bot.surfaces.principals import Principal
from bot.surfaces.questions import NO_QUESTION, Questions
from bot.surfaces.web.cited_code import CitedCode, CitedExcerpt
from bot.surfaces.web.run_course import RunCourse

MAX_CONVERSATIONS = 30  # of one person
MAX_KEPT = 300  # of all
MAX_TURNS = 50  # of one conversation
MAX_UNDER_WAY = 3  # of one person
_PACE = 0.08  # seconds between two looks of anyone who follows a turn
_REST = 4  # times as long as showing a look took until the next one: a long answer leaves time for others
_MIN_STEP = 6  # characters by which text grows at once, where there are so many
_SHARE = 4  # of what has come and is not shown yet, the part that is shown next
_MAX_LABEL = 90
ENDING = "citebot is shutting down and did not answer this. Ask again once it is back."
TOO_MANY = f"{MAX_UNDER_WAY} of your questions are still running. Wait for one to finish, or stop it."
TOO_LONG = f"This conversation has reached {MAX_TURNS} questions. Start a new one."

log = logging.getLogger(__name__)


class Refusal(Exception):
    """A question is refused; the text gives the reason."""


@dataclass(slots=True, kw_only=True)
class LiveTurn:
    """One question and its progress. `version` counts all changes, `course_version` those of its trace."""

    id: str
    conversation: str
    owner: str
    question: str
    asked_at: float
    course: RunCourse
    run_id: str = ""
    stage: str = "Reading the question"
    text: str = ""
    answer: Answered | None = None
    failure: NotAnswered | None = None
    excerpts: dict[int, CitedExcerpt] = field(default_factory=dict)
    opinion: str = ""
    is_shared: bool = False
    state: AnswerState | None = None
    version: int = 0
    course_version: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        """Whether the turn has ended."""
        return self.answer is not None or self.failure is not None

    @property
    def repositories(self) -> set[str]:
        """The repositories of the answer."""
        answer = self.answer
        named = {answer.repository, *answer.commits, *(each.repository for each in answer.citations)} if answer else ()
        return {name for name in named if name}

    def watch(self, event: AgentEvent) -> None:
        """Add an event of the agent to the course."""
        if self.course.take(event):
            self.course_version += 1
            self._notify()

    def take(self, event: AskEvent) -> None:
        """Take an event."""
        match event:
            case RunBegun():
                self.run_id = event.run_id
            case StageBegun():
                self.stage = event.text
            case TextPart():
                self.text = event.text if event.replaces else self.text + event.text
            case Answered():
                self.answer, self.text = event, event.text
            case NotAnswered():
                self.failure = event
        self._notify()

    async def follow(self) -> AsyncGenerator[str, None]:
        """Yield the text to show, first all of it, and again after every change, until the turn ends.

        Text comes in parts of any length and at any time. It is shown in smaller ones, at an even
        pace, none of which ends within a word or markup.
        """
        seen, shown = -1, self.text
        while not (self.is_over and seen == self.version):
            text = self.text if self.is_over else grow_text(shown, self.text)
            if seen == self.version and text == shown:
                await self._changed.wait()
                continue
            seen, shown, began = self.version, text, monotonic()
            yield shown
            if not self.is_over:
                await asyncio.sleep(max(_PACE, _REST * (monotonic() - began)))

    def _notify(self) -> None:
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()


def grow_text(shown: str, text: str) -> str:
    """Return slightly more of a growing text than is shown, or all of it if the text was replaced."""
    if not text.startswith(shown):
        return text
    left = len(text) - len(shown)
    step = max(_MIN_STEP, left // _SHARE)
    while True:
        cut = _cut_within(text, len(shown) + step)
        if len(cut) > len(shown):
            return cut
        if step >= left:
            return shown
        step *= 2


def _cut_within(text: str, length: int) -> str:
    """Cut a text after the word at a position, or before anything incomplete there."""
    end = text.find(" ", length) + 1
    cut = cut_to_stable(text[:end] if end else text)
    line = cut[cut.rfind("\n") + 1 :]
    return cut[: cut.rfind("**")] if line.count("**") % 2 else cut


@dataclass(slots=True, kw_only=True)
class LiveConversation:
    """A conversation of one person; `repository` is set if they chose one."""

    id: str
    owner: str
    repository: str | None
    turns: list[LiveTurn] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The first question of the conversation."""
        question = " ".join(self.turns[0].question.split()) if self.turns else "A new conversation"
        return question if len(question) <= _MAX_LABEL else f"{question[: _MAX_LABEL - 1]}…"


class LiveTurns:
    """Begins turns, keeps them, and finds them for their owners."""

    def __init__(self, cited: CitedCode, mask: Callable[[str], str], clock: Clock) -> None:
        self.cited = cited
        self._mask = mask
        self._clock = clock
        self._conversations: dict[str, LiveConversation] = {}
        self._turns: dict[str, LiveTurn] = {}  # by its id
        self._tasks: dict[asyncio.Task[None], LiveTurn] = {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Open the turns; at the end, those in progress are interrupted, and say so."""
        try:
            yield
        finally:
            tasks = [*self._tasks]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    def list_conversations(self, principal: Principal) -> Sequence[LiveConversation]:
        """Return the conversations of a person, the newest first."""
        return [one for one in reversed(self._conversations.values()) if one.owner == principal.key]

    def measure_errors(self, principal: Principal) -> float | None:
        """Return the share of a person's questions that failed; None before the first end."""
        turns = [turn for one in self.list_conversations(principal) for turn in one.turns if turn.is_over]
        failed = [turn for turn in turns if turn.failure is not None and turn.failure.reason in {"failed", "late"}]
        return len(failed) / len(turns) if turns else None

    def find_conversation(self, principal: Principal, conversation: str) -> LiveConversation | None:
        """Return one of the person's conversations."""
        found = self._conversations.get(conversation)
        return found if found is not None and found.owner == principal.key else None

    def find_turn(self, principal: Principal, turn: str) -> LiveTurn | None:
        """Return one of the person's turns."""
        found = self._turns.get(turn)
        return found if found is not None and found.owner == principal.key else None

    def find_shared(self, turn: str) -> LiveTurn | None:
        """Return a turn shared by its owner."""
        found = self._turns.get(turn)
        return found if found is not None and found.is_shared else None

    def begin(
        self,
        questions: Questions,
        principal: Principal,
        question: str,
        *,
        repository: str | None,
        conversation: LiveConversation | None = None,
        remark: str = "",
    ) -> LiveTurn:
        """Ask a question, in a conversation or in a new one; raises `Refusal`."""
        own = [turn for turn in self._tasks.values() if turn.owner == principal.key]
        if not question.strip():
            raise Refusal(NO_QUESTION)
        if len(own) >= MAX_UNDER_WAY:
            raise Refusal(TOO_MANY)
        if conversation is not None and len(conversation.turns) >= MAX_TURNS:
            raise Refusal(TOO_LONG)
        place = conversation or self._open_conversation(principal)
        place.repository = repository
        turn = LiveTurn(
            id=secrets.token_urlsafe(12), conversation=place.id, owner=principal.key, asked_at=self._clock.now(),
            question=self._mask(question.strip()), course=RunCourse(self._mask),
        )  # fmt: skip
        place.turns.append(turn)
        self._turns[turn.id] = turn
        run = questions.begin(
            principal,
            question,
            surface="web",
            repository=repository,
            conversation=place.id,
            remark=remark,
            watch=turn.watch,
        )
        task = asyncio.create_task(self._answer(turn, run.stream()))
        self._tasks[task] = turn
        task.add_done_callback(self._conclude)
        return turn

    async def _answer(self, turn: LiveTurn, asked: AsyncGenerator[AskEvent, None]) -> None:
        async with aclosing(asked) as events:
            async for event in events:
                if isinstance(event, Answered):
                    turn.excerpts = {each.mark: await self.cited.read(each) for each in event.citations}
                turn.take(event)

    def _conclude(self, task: asyncio.Task[None]) -> None:
        """Say that a turn did not finish, whatever the reason."""
        turn = self._tasks.pop(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("A question of the page failed.", exc_info=error)
        if turn.conversation not in self._conversations:  # it was forgotten meanwhile
            self._turns.pop(turn.id, None)
        if not turn.is_over:
            turn.take(NotAnswered(reason="failed", text=ENDING if error is None else "This failed. Try again."))

    def _open_conversation(self, principal: Principal) -> LiveConversation:
        """Begin a conversation, and forget the oldest beyond the limit."""
        own = [*reversed(self.list_conversations(principal))]
        for old in own[: max(0, len(own) + 1 - MAX_CONVERSATIONS)]:
            self._forget(old)
        for old in [*self._conversations.values()][: max(0, len(self._conversations) + 1 - MAX_KEPT)]:
            self._forget(old)
        place = LiveConversation(id=secrets.token_urlsafe(12), owner=principal.key, repository=None)
        self._conversations[place.id] = place
        return place

    def _forget(self, conversation: LiveConversation) -> None:
        del self._conversations[conversation.id]
        under_way = {turn.id for turn in self._tasks.values()}
        for turn in conversation.turns:
            if turn.id not in under_way:
                self._turns.pop(turn.id, None)

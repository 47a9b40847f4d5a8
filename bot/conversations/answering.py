"""Answers one message: a command or a question, from the sign of life to the settled reply."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast
from weakref import WeakValueDictionary

from agent.errors import AgentError
from agent.guard.approval import parse_decision
from agent.guard.size import MAX_QUESTION, TOO_LONG
from agent.ports import Answer
from bot.access import AccessPolicy
from bot.clock import Clock
from bot.conversations.answer_queue import AnswerQueue
from bot.conversations.commands import CommandHandlers, ParsedCommand, UnknownCommand, parse_command
from bot.conversations.descriptions import describe_commit_read, describe_progress
from bot.conversations.run_follower import RunFollower, make_sections, plan_runs
from bot.conversations.suspects import MAX_DEATHS
from bot.conversations.thread_context import MOST_MESSAGES, add_thread_context
from bot.conversations.turn import ActiveTurn, Break
from bot.errors import BotError, ChatError, NotAllowed, PlatformUnreachable, SilentlyThrottled, describe_unexpected
from bot.markdown.safety import neutralize
from bot.messages import IncomingMessage, MessageContent, ThreadMessage
from bot.monitoring.observer import ConversationObserver, NullObserver, TurnOutcome
from bot.ports import Answerer, ChatPlatform, Repositories
from bot.replies.streaming_answer import AnswerSections
from bot.repositories.choice import AmbiguousRepository, RepositoryChoice, make_clarifying_question
from bot.repositories.chooser import RepositoryChooser
from bot.storage.inbox import Inbox, InboxEntry
from bot.storage.rate_limits import QuestionCounter
from bot.storage.turn_records import TurnRecordStore, merge_records
from indexer.errors import IndexDamaged, IndexerError, NotIndexed
from indexer.types import Progress

MAX_TRIES = 3
LATE_SECONDS = 3_600.0
PATIENCE_SECONDS = 60.0  # with a platform that does not answer; four times that, and again, in later tries
LONGEST_QUESTION = MAX_QUESTION - 100  # characters, the thread around it included
STOPPED = "Stopped, as you asked."
SET_ASIDE = (
    "I could not finish this one: I broke down twice while I was at it, so I have put it aside. "
    "Ask again in other words, or leave out what was pasted."
)
INTERRUPTED = "I was interrupted before I could answer this. Ask me to try again."
NOT_YOURS = "Only the person who asked can do that."
TOO_LATE = "This took too long, so I stopped. Ask for something narrower, or try again."
# The routes of answers that are none.
_OUTCOMES: Mapping[str, TurnOutcome] = {
    "paused": "paused",
    "blocked": "blocked",
    "failed": "failed",
    "stopped": "stopped",
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class AnsweringDeps:
    """What answering needs of others."""

    agent: Answerer
    repositories: Repositories
    inbox: Inbox
    commands: CommandHandlers
    routing: RepositoryChooser
    records: TurnRecordStore
    access: AccessPolicy
    usage: QuestionCounter
    clock: Clock
    hosts: Collection[str]
    deadline: float = 150.0
    mask: Callable[[str], str] = str  # takes secrets out of what people write, and of what is said about errors
    observer: ConversationObserver = field(default_factory=NullObserver)


class Answering:
    """Answers turns: one at a time in a conversation, so many at a time in all."""

    def __init__(self, desk: AnsweringDeps, slots: AnswerQueue) -> None:
        self._desk = desk
        self._slots = slots
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def handle(self, turn: ActiveTurn, platform: ChatPlatform) -> None:
        """Find out what to say, say it, and note that it is over."""
        content = await self._make_final_content(turn, platform)
        if content is not None:
            await self._settle(turn, content)

    async def _make_final_content(self, turn: ActiveTurn, platform: ChatPlatform) -> MessageContent | None:
        """Return the final content; None where nothing may be said any more. Errors become sentences here."""
        try:
            return await self._content(turn, platform)
        except asyncio.CancelledError:
            if turn.reason not in {"stopped", "late"}:
                raise
            cast("asyncio.Task[None]", asyncio.current_task()).uncancel()
            turn.outcome = "stopped" if turn.reason == "stopped" else "late"
            return self._sentence(STOPPED if turn.reason == "stopped" else TOO_LATE)
        except ChatError as error:
            await self._handle_send_failure(turn, error)
            return None
        except SilentlyThrottled as error:
            log.warning("%s: %s", turn.entry.message.author, error)
            turn.outcome = "refused"
            await self._desk.inbox.settle(turn.entry, "closed")
            return None
        except (BotError, AgentError, IndexerError) as error:
            turn.outcome = "refused" if isinstance(error, NotAllowed) else "failed"
            return self._sentence(str(error))
        except Exception as error:
            log.exception("a message could not be answered")
            turn.outcome = "failed"
            return self._sentence(describe_unexpected(error))

    async def _content(self, turn: ActiveTurn, platform: ChatPlatform) -> MessageContent | None:
        entry, message = turn.entry, turn.entry.message
        if entry.deaths >= MAX_DEATHS:
            return self._set_aside(turn)
        if entry.tries > MAX_TRIES or self._desk.clock.now() - entry.received_at > LATE_SECONDS:
            turn.gives_up, turn.outcome = True, "given_up"
            return self._sentence(INTERRUPTED)
        if message.oversize:
            return await self._refuse_size(turn)
        command = self.parse_command(message)
        if command is not None:
            turn.outcome = "command"
            await self._count(command, turn)
        if isinstance(command, UnknownCommand):
            self._desk.access.check_place(message)
            return self._sentence(command.sentence)
        if command is not None:
            return self._sentence(await self._run_command(turn, command))
        return await self._answer(turn, platform)

    def _set_aside(self, turn: ActiveTurn) -> MessageContent:
        """Say that a message is not tried again; nobody looks into it any more."""
        turn.gives_up, turn.outcome, entry = True, "set_aside", turn.entry
        log.error("%s is set aside: citebot died %d times while at it", entry.message.key, entry.deaths)
        return self._sentence(SET_ASIDE)

    async def _refuse_size(self, turn: ActiveTurn) -> MessageContent:
        """Say that a message is too long, to whom anything may be said at all; it counts as a question."""
        turn.outcome, message = "refused", turn.entry.message
        if turn.entry.tries == 1:
            await self._desk.usage.count(message)
        self._desk.routing.check(message)
        log.warning("a message of %d characters is too long, and was not read", message.oversize)
        return self._sentence(TOO_LONG)

    async def _count(self, command: ParsedCommand | UnknownCommand, turn: ActiveTurn) -> None:
        """Count a command, but for those that make citebot do less."""
        if turn.entry.tries == 1 and not (isinstance(command, ParsedCommand) and command.command in {"stop", "mute"}):
            await self._desk.usage.count_command(turn.entry.message)

    async def _run_command(self, turn: ActiveTurn, command: ParsedCommand) -> str:
        """Carry a command out; of indexing, which may take a while, people see how far it has come."""
        run = partial(self._desk.commands.run, command, turn.entry.message, turn.entry.conversation)
        if command.command != "reindex":
            return await run(lambda _: None)
        await turn.reply.begin(MessageContent(status="Indexing …"))
        async with turn.reply.growing():
            return await run(
                lambda status: turn.reply.show(MessageContent(status=neutralize(status, self._desk.hosts)))
            )

    async def _answer(self, turn: ActiveTurn, platform: ChatPlatform) -> MessageContent | None:
        turn.asks = True
        turn.stages.begin()
        message = turn.entry.message
        if turn.entry.tries == 1 and not message.about:  # also of what is refused: that takes a reply, too
            await self._desk.usage.count(message)
        self._desk.routing.check(message)
        lock = self._locks.setdefault(turn.entry.conversation, asyncio.Lock())
        turn.draft.wait(self._slots.before or int(lock.locked()))
        await turn.reply.begin(turn.draft.partial_content())
        async with turn.reply.growing(), lock:
            await self._check_reply(turn)
            async with self._deadline(turn):
                question = await self._question(message, platform)
                route = await self._desk.routing.choose(turn.entry, question)
            if isinstance(route, AmbiguousRepository):
                turn.outcome = "paused"
                return make_clarifying_question(route, turn.entry.run_id)
            sections = await self._follow_runs(turn, route, question)
            return await self._finish_answer(turn, sections, route.why)

    async def _follow_runs(self, turn: ActiveTurn, route: RepositoryChoice, question: str) -> AnswerSections:
        """Wait for a place in line, and let the runs of a question come to their answers."""
        message = turn.entry.message
        runs = plan_runs(turn.entry, route, route.question + question.removeprefix(message.text))
        turn.runs, turn.repositories = tuple(run.id for run in runs), tuple(route.repositories)
        sections = make_sections(runs, turn.entry, route, self._desk.hosts)
        for name in route.repositories:
            await self._have_indexed(turn, name)
        async with self._slots.hold_place(partial(_show_place, turn)):
            turn.reply.show(sections.partial_content())
            following = RunFollower(self._desk.agent, sections, turn.reply.show)
            async with self._deadline(turn):
                await following.follow(runs, recovered=turn.is_recovered)
        return sections

    async def _have_indexed(self, turn: ActiveTurn, name: str) -> None:
        """Have a repository indexed that never was, or whose index is damaged.

        This may take longer than an answer, and shows how far it is.
        """
        growing, repositories = turn.draft.partial_content(), self._desk.repositories
        try:
            await repositories.pin_existing(name)
        except NotIndexed as reason:
            why = f"{reason} " if isinstance(reason, IndexDamaged) else ""

            def show(progress: Progress) -> None:
                turn.reply.show(
                    replace(growing, status=neutralize(why + describe_progress(name, progress), self._desk.hosts))
                )

            await repositories.refresh(name, progress=show)

    async def _check_reply(self, turn: ActiveTurn) -> None:
        """Raise `NotAllowed` where a message would go on with what somebody else asked, and may not.

        What waits is decided by who asked; what was asked back may be told by whoever may ask about the repository.
        """
        message = turn.entry.message
        last = await self._desk.records.last(turn.entry.conversation)
        if last is None or last.route != "paused" or last.person == message.author:
            return
        if parse_decision(message.text):
            raise NotAllowed(NOT_YOURS)
        self._desk.access.check_repository(message, last.repository)

    async def _question(self, message: IncomingMessage, platform: ChatPlatform) -> str:
        """The question, with the thread that citebot was called into; a thread that cannot be read is left out."""
        if message.kind != "mention" or not message.in_thread:
            return message.text
        try:
            thread = await platform.read_thread(message.place, before=message.id, limit=MOST_MESSAGES)
        except ChatError as error:
            log.warning("a thread was not read: %s", error)
            return message.text
        return await asyncio.to_thread(self._add_thread, message.text, [each for each in thread if not each.own])

    def _add_thread(self, question: str, people: Sequence[ThreadMessage]) -> str:
        mask = self._desk.mask
        masked = [replace(each, text=mask(each.text), author=mask(each.author)) for each in people]
        return add_thread_context(question, masked, room=LONGEST_QUESTION)

    @asynccontextmanager
    async def _deadline(self, turn: ActiveTurn) -> AsyncIterator[None]:
        """End the run when its time is over."""

        async def ring() -> None:
            await self._desk.clock.sleep(self._desk.deadline)
            await self.interrupt(turn, "late")

        timer = asyncio.create_task(ring())
        try:
            yield
        finally:
            if turn.reason != "late":
                timer.cancel()
            await asyncio.wait({timer})

    async def interrupt(self, turn: ActiveTurn, reason: Break) -> None:
        """End a turn wherever it is; the agent ends its run itself, unless another process is to go on with it."""
        turn.reason = turn.reason or reason
        stops = [self._desk.agent.stop(run) for run in turn.runs if reason != "handed over"]
        under_way = any(await asyncio.gather(*stops))
        if turn.task is not None and (not under_way or reason == "superseded"):
            turn.task.cancel()

    async def _finish_answer(self, turn: ActiveTurn, sections: AnswerSections, why: str) -> MessageContent | None:
        turn.outcome, message = _outcome(turn, sections), turn.entry.message
        if not sections.is_begun:
            return self._sentence(INTERRUPTED)
        if turn.reason == "late" and (len(turn.runs) == 1 or not sections.answers):
            return self._sentence(TOO_LATE)
        if turn.reason == "stopped" and len(turn.runs) > 1:
            return self._sentence(STOPPED)
        if sections.records:
            record = replace(merge_records(sections.records), why=why, person=message.author)
            await self._desk.records.keep(turn.entry.run_id, turn.entry.conversation, record)
        fresh = [await self._fresh(answer) for answer in sections.answers]
        return sections.final_content(fresh, sharing=message.private and message.kind == "command")

    async def _fresh(self, answer: Answer) -> str:
        """How fresh the answer is; an answer is not lost because that cannot be told."""
        name, repositories = answer.repository, self._desk.repositories
        if name not in repositories.list_names() or not answer.commit:
            return ""
        cited = sorted({citation.path for citation in answer.citations})
        try:
            status = await repositories.status(name)
            drift = await repositories.drift(name, answer.commit, cited)
        except IndexerError as error:
            log.warning("how fresh an answer about %s is cannot be told: %s", name, error)
            return ""
        return neutralize(
            describe_commit_read(name, answer.commit, status, drift, self._desk.clock.now()), self._desk.hosts
        )

    async def _settle(self, turn: ActiveTurn, content: MessageContent) -> None:
        """Show the final content, and note that the message is over."""
        if turn.reason == "superseded":
            return
        try:
            await turn.reply.settle(content)
        except ChatError as error:
            await self._handle_send_failure(turn, error)
        except Exception as error:
            # One reply that cannot be sent must not end all the others.
            log.exception("a message was not replied to")
            await self._handle_send_failure(turn, PlatformUnreachable(describe_unexpected(error)))
        else:
            turn.final = content
            turn.stages.record_final_content()
            await self._desk.inbox.settle(turn.entry, "closed" if turn.gives_up else "done")

    async def _handle_send_failure(self, turn: ActiveTurn, error: ChatError) -> None:
        """A reply could not be sent: wait for a platform that is away, give a place up that takes no messages."""
        log.warning("a message was not replied to: %s", error)
        turn.outcome = "unsaid"
        if isinstance(error, PlatformUnreachable) and not turn.gives_up:
            await self._desk.inbox.postpone(turn.entry, PATIENCE_SECONDS * 4 ** (turn.entry.tries - 1))
        else:
            await self._desk.inbox.settle(turn.entry, "closed")

    def is_command(self, entry: InboxEntry) -> bool:
        """Whether a message is a command; what has been set aside is not looked into."""
        return entry.deaths < MAX_DEATHS and self.parse_command(entry.message) is not None

    def parse_command(self, message: IncomingMessage) -> ParsedCommand | UnknownCommand | None:
        """Read the command that a message is; None for a question, and for what is too long to be read."""
        if message.oversize:
            return None
        names = self._desk.access.visible(message, self._desk.repositories.list_names())
        return parse_command(message.text, slash=message.kind == "command", repositories=names)

    def _sentence(self, text: str) -> MessageContent:
        return MessageContent(text=neutralize(self._desk.mask(text), self._desk.hosts))


def _show_place(turn: ActiveTurn, before: int) -> None:
    """Show how many answers come first; 0 once it is this one's turn."""
    turn.draft.wait(before)
    turn.reply.show(turn.draft.partial_content())


def _outcome(turn: ActiveTurn, sections: AnswerSections) -> TurnOutcome:
    """How the runs of a turn that have ended went."""
    if turn.reason in {"late", "stopped"}:
        return "late" if turn.reason == "late" else "stopped"
    routes = [section.draft.answer.route for section in sections if section.draft.answer is not None]
    outcomes = {_OUTCOMES.get(route, "answered") for route in routes}
    return "answered" if "answered" in outcomes else next(iter(sorted(outcomes)), "failed")

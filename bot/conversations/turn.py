"""One turn from top to bottom: how a stored message becomes a settled reply, and what is known of it on the way.

    received    the dispatcher has stored the message, and lets it begin
    claimed     this process answers it, and renews the lease on it until the end       claim
    admitted    not set aside, not too old, not too long; counted; allowed              _refuse, _admit
    queued      a placeholder is shown; earlier questions of the conversation go first  _begin_reply
    chosen      it is known which repositories it is about, and they are indexed        _choose, _ensure_indexed
    answered    there was a free place, and the run has come to its answer              _follow
    paused      or a person is asked first: which repository, or for an approval        _pause
    settled     the reply shows its final content, and the inbox knows that it is over  _settle

`ActiveTurn.run` goes through them in this order. A command is admitted, carried out and settled. `interrupt` breaks a
turn off in any state; an error becomes the sentence that the reply is settled with.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Self, cast

from agent import (
    INTERRUPTED,
    QUESTION_TOO_LONG,
    STOPPED,
    AgentError,
    AgentEvent,
    Answer,
    is_bare_question,
    parse_decision,
    read_quotes,
    with_background,
)
from bot.access import AccessPolicy
from bot.clock import Clock
from bot.conversations.answer_queue import AnswerQueue
from bot.conversations.commands import CommandHandlers, ParsedCommand, UnknownCommand
from bot.conversations.descriptions import describe_progress, find_freshness
from bot.conversations.run_follower import TurnRun, follow_run
from bot.conversations.thread_context import read_thread_quotes
from bot.errors import (
    BotError,
    ChatError,
    InboxError,
    NotAllowed,
    PlatformUnreachable,
    SilentlyThrottled,
    describe_unexpected,
)
from bot.markdown.safety import neutralize
from bot.messages import MessageContent, MessageHandle
from bot.monitoring import logs
from bot.monitoring.observer import ConversationObserver, NullObserver, ReplyTimer, TurnOutcome
from bot.ports import Answerer, Repositories
from bot.replies.answer_content import StreamingAnswer
from bot.replies.reply import Reply
from bot.replies.send_budget import ReplyTransport
from bot.repositories.choice import AmbiguousRepository, RepositoryChoice, make_clarifying_question
from bot.repositories.chooser import RepositoryChooser
from bot.storage.inbox import Inbox, InboxEntry
from bot.storage.message_states import MAX_DEATHS, MAX_TRIES
from bot.storage.rate_limits import QuestionCounter
from bot.storage.turn_records import RunStats, TurnRecordStore
from indexer import IndexDamaged, IndexerError, NotIndexed, Progress

LATE_SECONDS = 3_600.0
PATIENCE_SECONDS = 60.0  # with a platform that does not answer; four times that, and again, in later tries
SET_ASIDE = (
    "I could not finish this one: I broke down twice while I was at it, so I have put it aside. "
    "Ask again in other words, or leave out what was pasted."
)
NOT_YOURS = "Only the person who asked can do that."
TOO_LATE = "This took too long, so I stopped. Ask for something narrower, or try again."

# Why a turn is broken off: by a person; because it took too long; because the message was edited, deleted or taken by
# another process, so that nothing may be said; because this process ends, and the next one goes on.
Break = Literal["", "stopped", "late", "superseded", "handed over"]
# The outcomes of answers that do not answer the question, by their routes.
_OUTCOMES: Mapping[str, TurnOutcome] = {
    "paused": "paused",
    "blocked": "blocked",
    "failed": "failed",
    "stopped": "stopped",
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TurnDeps:
    """What all turns use."""

    agent: Answerer
    repositories: Repositories
    inbox: Inbox
    commands: CommandHandlers
    chooser: RepositoryChooser
    records: TurnRecordStore
    access: AccessPolicy
    counter: QuestionCounter
    clock: Clock
    hosts: Collection[str]
    deadline: float = 150.0
    mask: Callable[[str], str] = str  # takes secrets out of what people write, and of the sentences about errors
    observer: ConversationObserver = field(default_factory=NullObserver)


class ActiveTurn:
    """A claimed message, its reply, and how far it has come. Only the methods here set its fields.

    `reason` is why it was broken off; `is_question` tells it from a command; `repositories` are those that a question
    is about, once they are chosen; `final` is the content that the reply was settled with; `ended` is set at the end of
    `run`, for which `task` is the one that it runs in. A question that names nobody is answered only where something
    was found, and nothing is shown before; `is_silent` says that nothing was.
    """

    def __init__(
        self, entry: InboxEntry, transport: ReplyTransport, deps: TurnDeps, queue: AnswerQueue, group: asyncio.TaskGroup
    ) -> None:
        self.entry = entry
        self.reason: Break = ""
        self.is_question = False
        self.is_silent = False
        self.repositories: tuple[str, ...] = ()
        self.final: MessageContent | None = None
        self.ended = asyncio.Event()
        self._platform = transport.platform
        self._deps = deps
        self._queue = queue
        self._outcome: TurnOutcome = "unsaid"
        self._is_overheard = entry.message.kind == "overheard"
        self._has_found = False
        self._gives_up = False  # the reply is that there is none, and must not be tried again
        self._run: TurnRun | None = None
        self._stats = RunStats()
        self.task: asyncio.Task[None] | None = None
        self._draft = StreamingAnswer(entry.run_id, deps.hosts)
        self._timer = ReplyTimer(
            observer=deps.observer, clock=deps.clock, platform=entry.message.place.platform, since=entry.received_at
        )
        self._reply = open_reply(
            entry,
            transport,
            deps.inbox,
            on_stop=lambda: group.create_task(self.interrupt("stopped")),
            on_shown=self._timer.record_content,
        )

    @classmethod
    async def claim(
        cls, entry: InboxEntry, transport: ReplyTransport, deps: TurnDeps, queue: AnswerQueue, group: asyncio.TaskGroup
    ) -> Self | None:
        """Claim a message for this process; None where another process has it or its conversation, or it is over."""
        is_command = entry.deaths < MAX_DEATHS and deps.commands.parse(entry.message) is not None
        claimed = await deps.inbox.claim(entry.id, beside=is_command)
        return None if claimed is None else cls(claimed, transport, deps, queue, group)

    async def run(self) -> None:
        """Bring the message to its settled reply. A turn that another process goes on with is released."""
        self.task = asyncio.current_task()
        try:
            with logs.log_turn(self.entry.run_id, self.entry.conversation):
                content = await self._make_final_content()
                if content is None or not await self._is_still_held():
                    return
                if self._is_overheard and not self._has_found:
                    await self._end_silently()
                else:
                    await self._send_final_content(content)
        except asyncio.CancelledError:
            if self.reason == "handed over":
                await self._deps.inbox.release(self.entry)
            if self.reason == "":
                raise
        finally:
            breaks: Mapping[Break, TurnOutcome] = {"superseded": "superseded", "handed over": "handed_over"}
            outcome = breaks.get(self.reason, self._outcome)
            self._deps.observer.count_outcome(self.entry.message.place.platform, outcome)
            self.ended.set()

    async def _make_final_content(self) -> MessageContent | None:
        """Return the final content; None where nothing may be said any more. Errors become sentences here."""
        try:
            return await self._go_through_states()
        except asyncio.CancelledError:
            if self.reason not in {"stopped", "late"}:
                raise
            cast("asyncio.Task[None]", asyncio.current_task()).uncancel()
            self._outcome = "stopped" if self.reason == "stopped" else "late"
            return self._make_sentence(STOPPED if self.reason == "stopped" else TOO_LATE)
        except ChatError as error:
            await self._handle_send_failure(error)
            return None
        except SilentlyThrottled as error:
            log.warning("%s: %s", self.entry.message.author, error)
            self._outcome = "refused"
            await self._deps.inbox.settle(self.entry, "closed")
            return None
        except (BotError, AgentError, IndexerError) as error:
            self._outcome = "refused" if isinstance(error, NotAllowed) else "failed"
            return self._make_sentence(str(error))
        except Exception as error:
            log.exception("a message could not be answered")
            self._outcome = "failed"
            return self._make_sentence(describe_unexpected(error))

    async def _go_through_states(self) -> MessageContent:
        """Admit, queue, choose and answer. The lock of the conversation is held until the answer is recorded."""
        refusal = await self._refuse()
        if refusal:
            return self._make_sentence(refusal)
        command = self._deps.commands.parse(self.entry.message)
        if command is not None:
            return self._make_sentence(await self._run_command(command))
        await self._admit()
        lock = self._queue.lock_conversation(self.entry.conversation)
        await self._begin_reply(is_busy=lock.locked())
        async with self._reply.growing(), lock:
            await self._check_reply()
            choice, quotes = await self._choose()
            if isinstance(choice, AmbiguousRepository):
                return self._pause(choice)
            run = self._plan_run(choice, quotes)
            for name in choice.repositories:
                await self._ensure_indexed(name, is_needed=len(choice.repositories) == 1)
            async with self._queue.hold_place(self._show_place):
                await self._follow(run)
            return await self._conclude(choice.why)

    async def _refuse(self) -> str:
        """Say why a message is not even looked at: set aside, given up, or too long; empty where it is."""
        entry, message = self.entry, self.entry.message
        if entry.deaths >= MAX_DEATHS:
            self._gives_up, self._outcome = True, "set_aside"
            log.error("%s is set aside: citebot died %d times while answering it", message.key, entry.deaths)
            return SET_ASIDE
        if entry.tries > MAX_TRIES or self._deps.clock.now() - entry.received_at > LATE_SECONDS:
            self._gives_up, self._outcome = True, "given_up"
            return INTERRUPTED
        if not message.oversize:
            return ""
        self._outcome = "refused"
        if entry.tries == 1:  # it counts as a question, and is answered only where questions are
            await self._deps.counter.count(message)
        self._deps.chooser.check(message)
        log.warning("a message of %d characters is too long, and was not read", message.oversize)
        return QUESTION_TOO_LONG

    async def _run_command(self, command: ParsedCommand | UnknownCommand) -> str:
        """Carry a command out. It is counted, unless it makes citebot do less; indexing shows its progress."""
        self._outcome, message = "command", self.entry.message
        does_less = isinstance(command, ParsedCommand) and command.command in {"stop", "mute"}
        if self.entry.tries == 1 and not does_less:
            await self._deps.counter.count_command(message)
        if isinstance(command, UnknownCommand):
            self._deps.access.check_place(message)
            return command.sentence
        run = partial(self._deps.commands.run, command, message, self.entry.conversation)
        if command.command != "reindex":
            return await run(lambda _: None)
        await self._deps.commands.check(command, message, self.entry.conversation)
        await self._reply.begin(MessageContent(text="Indexing …"))
        async with self._reply.growing():
            return await run(
                lambda status: self._reply.show(MessageContent(status=neutralize(status, self._deps.hosts)))
            )

    async def _admit(self) -> None:
        """Count a question and check that it may be asked."""
        self.is_question, message = True, self.entry.message
        self._timer.begin()
        if self.entry.tries == 1 and not message.about:  # also one that is refused: that takes a reply, too
            await self._deps.counter.count(message)
        self._deps.chooser.check(message)

    async def _begin_reply(self, *, is_busy: bool) -> None:
        """Post the placeholder, which tells how many questions are answered first."""
        self._draft.wait(self._queue.before or int(is_busy))
        if not self._is_overheard:
            await self._reply.begin(self._draft.partial_content())

    def _show(self, content: MessageContent | Callable[[], MessageContent]) -> None:
        """Show the newest content of a growing reply."""
        if not self._is_overheard:
            self._reply.show(content)

    async def _check_reply(self) -> None:
        """Raise `NotAllowed` where a message would go on with what somebody else asked, and may not.

        An approval is given by the person who asked; which repository was meant, by whoever may ask about it.
        """
        message = self.entry.message
        last = await self._deps.records.last(self.entry.conversation)
        if last is None or last.route != "paused" or last.person == message.author:
            return
        if parse_decision(message.text):
            raise NotAllowed(NOT_YOURS)
        for repository in last.names:
            self._deps.access.check_repository(message, repository)

    async def _choose(self) -> tuple[RepositoryChoice | AmbiguousRepository, Sequence[str]]:
        """Choose the repositories; also return the thread that citebot was called into, quoted.

        The thread counts only where the question says nothing of its own.
        """
        async with self._limit_time():
            text = self.entry.message.text
            quotes = await read_thread_quotes(self.entry.message, self._platform, self._deps.mask)
            context = "\n".join([text, *read_quotes(quotes)]) if is_bare_question(text) else text
            return await self._deps.chooser.choose(self.entry, context), quotes

    def _pause(self, choice: AmbiguousRepository) -> MessageContent:
        """Ask back which repository is meant; the answer to that is another try at this message."""
        self._outcome = "paused"
        return make_clarifying_question(choice, self.entry.run_id)

    def _plan_run(self, choice: RepositoryChoice, quotes: Sequence[str]) -> TurnRun:
        """Plan the run of the turn, the same one after a restart."""
        self.repositories = tuple(choice.repositories)
        self._draft.begin_with(choice.remark)
        self._run = TurnRun(
            id=self.entry.run_id,
            conversation=self.entry.conversation,
            repositories=self.repositories,
            question=with_background(choice.question, quotes),
        )
        return self._run

    async def _ensure_indexed(self, name: str, *, is_needed: bool) -> None:
        """Index a repository that never was, or whose index is damaged; this may take longer than an answer.

        One of several that cannot be indexed is left to the agent, which answers without it and says so.
        """
        growing, repositories = self._draft.partial_content(), self._deps.repositories
        try:
            await repositories.pin_existing(name)
        except NotIndexed as reason:
            why = f"{reason} " if isinstance(reason, IndexDamaged) else ""

            def show(progress: Progress) -> None:
                status = neutralize(why + describe_progress(name, progress), self._deps.hosts)
                self._show(replace(growing, status=status))

            try:
                await repositories.refresh(name, progress=show)
            except IndexerError as error:
                if is_needed:
                    raise
                log.warning("%s could not be indexed for an answer: %s", name, error)
        except IndexerError as error:
            if is_needed:
                raise
            log.warning("%s cannot be read for an answer: %s", name, error)

    def _show_place(self, before: int) -> None:
        """Show how many answers come first; 0 once it is this one's turn."""
        self._draft.wait(before)
        self._show(self._draft.partial_content())

    async def _follow(self, run: TurnRun) -> None:
        """Let the run come to its answer; a message that was claimed before goes on with its run."""

        def take(event: AgentEvent) -> None:
            self._stats.take(event)
            if self._draft.take(event) and event.kind != "answer":
                self._show(self._draft.partial_content)

        self._show(self._draft.partial_content())
        async with self._limit_time():
            await follow_run(self._deps.agent, run, take, recovered=self.entry.token > 1)

    async def _conclude(self, why: str) -> MessageContent:
        """Record how the answer came about, and return it; a sentence where there is none."""
        answer, message = self._draft.answer, self.entry.message
        self._outcome = self._find_outcome(answer)
        if answer is None:
            return self._make_sentence(INTERRUPTED)
        if self.reason == "late":
            return self._draft.content_at_stop(TOO_LATE)
        if answer.route == "stopped":
            return self._draft.content_at_stop(STOPPED)
        self._has_found = answer.found
        record = replace(self._stats.record(answer), why=why, person=message.author)
        await self._deps.records.keep(self.entry.run_id, self.entry.conversation, record)
        freshness = await find_freshness(answer, self._deps.repositories, self._deps.clock.now())
        shown = neutralize(freshness, self._deps.hosts)
        return self._draft.final_content(shown, sharing=message.private and message.kind == "command")

    def _find_outcome(self, answer: Answer | None) -> TurnOutcome:
        if self.reason in {"late", "stopped"}:
            return "late" if self.reason == "late" else "stopped"
        return _OUTCOMES.get(answer.route, "answered") if answer is not None else "failed"

    async def _is_still_held(self) -> bool:
        """Whether the message is still this process's to end: what another one answers now is left to that one."""
        if self.reason == "superseded":
            return False
        try:
            held, _ = await self._deps.inbox.beat([self.entry])
        except InboxError as error:  # nobody else can have claimed it where nothing can be stored
            log.warning("a message is replied to without asking the database: %s", error)
            return True
        if self.entry.run_id not in held:
            log.warning("a message was lost to another process, or edited, before it was replied to")
            self.reason = "superseded"
        return self.reason != "superseded"

    async def _send_final_content(self, content: MessageContent) -> None:
        """Show the final content, and note that the message is over."""
        try:
            await self._reply.settle(content)
        except ChatError as error:
            await self._handle_send_failure(error)
        except Exception as error:
            # One reply that cannot be sent must not end all the others.
            log.exception("a message was not replied to")
            await self._handle_send_failure(PlatformUnreachable(describe_unexpected(error)))
        else:
            self.final = content
            self._timer.record_final_content()
            await self._deps.inbox.settle(self.entry, "closed" if self._gives_up else "done")

    async def _end_silently(self) -> None:
        """Say nothing, and remember nothing of the question: a person may ask it anew, or somebody else answer it."""
        self.is_silent, self._outcome = True, "silent"
        if self._run is not None:
            await self._deps.agent.forget(self._run.conversation)
        try:
            if self._reply.handles:  # of what was found before an edit
                await self._reply.withdraw()
        except ChatError as error:
            log.warning("an answer was not withdrawn: %s", error)
        await self._deps.inbox.settle(self.entry, "closed")

    async def _handle_send_failure(self, error: ChatError) -> None:
        """Wait for a platform that is away; give up where the place takes no messages."""
        log.warning("a message was not replied to: %s", error)
        self._outcome = "unsaid"
        if isinstance(error, PlatformUnreachable) and not self._gives_up:
            await self._deps.inbox.postpone(self.entry, PATIENCE_SECONDS * 4 ** (self.entry.tries - 1))
        else:
            await self._deps.inbox.settle(self.entry, "closed")

    async def interrupt(self, reason: Break) -> None:
        """Break the turn off in any state. The agent ends its run itself, unless another process goes on with it."""
        self.reason = self.reason or reason
        ends = self._run is not None and reason != "handed over"
        is_under_way = ends and await self._deps.agent.stop(self.entry.run_id)
        if self.task is not None and (not is_under_way or reason == "superseded"):
            self.task.cancel()

    @asynccontextmanager
    async def _limit_time(self) -> AsyncIterator[None]:
        """Break the turn off when its time is over."""

        async def ring() -> None:
            await self._deps.clock.sleep(self._deps.deadline)
            await self.interrupt("late")

        timer = asyncio.create_task(ring())
        try:
            yield
        finally:
            if self.reason != "late":
                timer.cancel()
            await asyncio.wait({timer})

    def _make_sentence(self, text: str) -> MessageContent:
        return MessageContent(text=neutralize(self._deps.mask(text), self._deps.hosts))


def open_reply(
    entry: InboxEntry,
    transport: ReplyTransport,
    inbox: Inbox,
    *,
    on_stop: Callable[[], object] = lambda: None,
    on_shown: Callable[[MessageContent], None] = lambda _: None,
) -> Reply:
    """Open the reply to a message, where an earlier try has left it; the inbox notes its messages."""

    async def is_taken(handle: MessageHandle) -> bool:
        other = await inbox.find_by_reply(handle)
        return other is not None and other.id != entry.id

    return Reply(
        transport,
        entry.message.place,
        nonce=entry.run_id,
        note=partial(inbox.note_handles, entry),
        handles=entry.handles,
        recovered=entry.token > (entry.state == "running"),  # an earlier claim was not brought to its end
        on_stop=on_stop,
        on_shown=on_shown,
        is_taken=is_taken,
    )

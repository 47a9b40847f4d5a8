"""One turn from top to bottom: how a stored message becomes a settled reply, and what is known of it on the way.

    received    the dispatcher has stored the message, and lets it begin
    claimed     this process answers it, and renews the lease on it until the end       claim
    admitted    not set aside, not too old, not too long; counted; allowed              _refuse, _admit
    queued      a placeholder is shown; earlier questions of the conversation go first  _begin_reply
                a front leaves it at that, and hands the message on                     _hand_on
    chosen      it is known which repositories it is about, and they are indexed        _choose, _ensure_indexed
                also where it names another branch, tag, commit or pull request         _choose_ref, _hold_ref
    answered    there was a free place, and the run has come to its answer              _follow
                or what a person has approved was done in the sandbox                   _work_on_order
    paused      or a person is asked first: which repository, or for an approval        _pause, _propose
    settled     the reply shows its final content, and the inbox knows that it is over  _settle

`ActiveTurn.run` goes through them in this order. A command is admitted, carried out and settled. `interrupt` breaks a
turn off in any state; an error becomes the sentence that the reply is settled with.
"""

from __future__ import annotations

import asyncio
import logging
import time
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
    CheckpointOvertaken,
    CheckpointUnreachable,
    CodeSearch,
    is_bare_question,
    is_verify_request,
    parse_decision,
    read_quotes,
    with_background,
)
from bot.access import AccessPolicy
from bot.clock import Clock
from bot.conversations.answer_queue import AnswerQueue
from bot.conversations.attached_files import ReadAttachments, read_attachments
from bot.conversations.commands import CommandHandlers, ParsedCommand, UnknownCommand
from bot.conversations.descriptions import describe_progress, find_freshness
from bot.conversations.goal_turns import (
    ABORTED,
    APPROVED,
    DECIDED,
    NOT_STARTED,
    ChatGoals,
    follow_goal,
    forget_goal,
    is_goal_proposed,
)
from bot.conversations.run_follower import ClaimedMessage, TurnRun, find_waiting_turn, follow_run
from bot.conversations.thread_context import read_thread_quotes
from bot.errors import (
    TOO_LATE,
    BotError,
    ChatError,
    InboxError,
    MessageLost,
    NotAllowed,
    PlatformUnreachable,
    SilentlyThrottled,
    describe_unexpected,
)
from bot.markdown.safety import neutralize
from bot.messages import LONGEST_QUOTED, GoalOrder, MessageContent, MessageHandle
from bot.monitoring import logs
from bot.monitoring.observer import ConversationObserver, NullObserver, ReplyTimer, TurnOutcome
from bot.ports import (
    Answerer,
    ChatPlatform,
    GoalRuns,
    MessageInbox,
    QuestionLimiter,
    Ratings,
    Repositories,
    SharedAnswers,
    TurnRecords,
)
from bot.replies.answer_content import StreamingAnswer
from bot.replies.goal_content import GrowingGoal, make_goal_proposal
from bot.replies.reply import Reply
from bot.replies.send_budget import ReplyTransport
from bot.repositories.choice import AmbiguousRepository, RepositoryChoice, make_clarifying_question
from bot.repositories.chooser import RepositoryChooser
from bot.repositories.names import pin_name
from bot.repositories.ref_chooser import RefChoice, RefChooser, read_ref, write_ref
from bot.storage.inbox import LEASE_SECONDS, InboxEntry
from bot.storage.message_states import HELD, MAX_DEATHS, MAX_TRIES, OVER, EndedState
from bot.storage.shareable_answers import ShareableAnswer
from bot.storage.turn_records import RunStats, TurnRecord
from indexer import IndexDamaged, IndexerError, NamedRef, NotIndexed, Progress

LATE_SECONDS = 3_600.0
AWAY_SECONDS = 5.0  # until a message is tried again whose conversation cannot be read or written
PATIENCE_SECONDS = 60.0  # with a platform that does not answer; four times that, and again, in later tries
OVERTAKEN_SECONDS = 1.0
SET_ASIDE = (
    "I could not finish this one: I broke down twice while I was at it, so I have put it aside. "
    "Ask again in other words, or leave out what was pasted."
)
NOT_YOURS = "Only the person who asked can do that."

# Why a turn is broken off: by a person; because it took too long; because the message was edited or deleted here, so
# that nothing may be said, and its run is given up; because another process has it by now, to whom the run may belong
# as well; because this process ends, and the next one goes on.
Break = Literal["", "stopped", "late", "superseded", "lost", "handed over"]
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
    inbox: MessageInbox
    commands: CommandHandlers
    chooser: RepositoryChooser
    records: TurnRecords
    ratings: Ratings
    shareable: SharedAnswers
    access: AccessPolicy
    goals: ChatGoals
    counter: QuestionLimiter
    clock: Clock
    hosts: Collection[str]
    deadline: float = 150.0
    takes_images: bool = False
    refs: RefChooser = field(default_factory=RefChooser)
    mask: Callable[[str], str] = str  # takes secrets out of what people write, and of the sentences about errors
    observer: ConversationObserver = field(default_factory=NullObserver)


class ActiveTurn:
    """A claimed message, its reply, and how far it has come. Only the methods here set its fields.

    `reason` is why it was broken off; `is_question` tells it from a command; `repositories` are those that a question
    is about, once they are chosen; `final` is the content that the reply was settled with; `ended` is set at the end of
    `run`, for which `task` is the one that it runs in. A question that names nobody is answered only where something
    was found, and nothing is shown before; `is_silent` says that nothing was. Where there is no queue, as on a front,
    nothing is answered either: `is_handed_on` says that another process has to. `decided` is the message whose goal run
    this one has decided about.
    """

    def __init__(
        self,
        entry: InboxEntry,
        transport: ReplyTransport,
        deps: TurnDeps,
        queue: AnswerQueue | None,
        group: asyncio.TaskGroup,
    ) -> None:
        self.entry = entry
        self.reason: Break = ""
        self.is_question = False
        self.is_silent = False
        self.is_handed_on = False
        self.decided: InboxEntry | None = None
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
        self._attached = ReadAttachments()
        self._runs: Answerer | GoalRuns = deps.agent  # what the run is one of
        self._ref: NamedRef | None = None
        self._stats = RunStats()
        self.task: asyncio.Task[None] | None = None
        self._answer = StreamingAnswer(entry.run_id, deps.hosts)
        self._goal = GrowingGoal(entry.run_id, deps.hosts, deps.mask)
        self._draft = self._answer if entry.message.order is None else self._goal
        self._lease_ends = 0.0
        self._timer = ReplyTimer(
            observer=deps.observer,
            clock=deps.clock,
            platform=entry.message.place.platform,
            since=deps.clock.now() - entry.age,
        )
        self._reply = open_reply(
            entry,
            transport,
            deps.inbox,
            on_stop=lambda: group.create_task(self.interrupt("stopped")),
            on_shown=self._timer.record_content,
            may_grow=lambda: time.monotonic() < self._lease_ends,
        )

    @classmethod
    async def claim(
        cls,
        entry: InboxEntry,
        transport: ReplyTransport,
        deps: TurnDeps,
        queue: AnswerQueue | None,
        group: asyncio.TaskGroup,
    ) -> Self | None:
        """Claim a message for this process; None where another process has it or its conversation, or it is over."""
        is_command = entry.deaths < MAX_DEATHS and deps.commands.parse(entry.message) is not None
        asked_at = time.monotonic()
        claimed = await deps.inbox.claim(entry.id, beside=is_command or queue is None, risky=queue is not None)
        if claimed is None:
            return None
        turn = cls(claimed, transport, deps, queue, group)
        turn.note_lease(asked_at)
        return turn

    def note_lease(self, asked_at: float) -> None:
        """Note that the lease was given, or renewed, when it was asked for at a time of the monotonic clock."""
        self._lease_ends = asked_at + LEASE_SECONDS

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
        except InboxError:  # whatever was found out before
            self._outcome = "unsaid"
            raise
        except CheckpointOvertaken:
            await self._leave_overtaken()
        except asyncio.CancelledError:
            if self.reason == "handed over":
                self.is_handed_on = True
                await self._deps.inbox.release(self.entry)
            if self.reason == "":
                raise
        finally:
            try:
                if self.reason in {"superseded", "lost"}:
                    await self._withdraw_if_deleted()
            finally:  # whatever becomes of that: others wait for the end of the turn
                breaks: Mapping[Break, TurnOutcome] = {
                    "superseded": "superseded", "lost": "superseded", "handed over": "handed_over",
                }  # fmt: skip
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
        except SilentlyThrottled as error:
            log.warning("%s: %s", self.entry.message.author, error)
            self._outcome = "refused"
            await self._deps.inbox.settle(self.entry, "closed")
        except (InboxError, CheckpointOvertaken):  # the message waits for its database, or is somebody else's
            raise
        except CheckpointUnreachable as error:
            log.warning("a message waits for the database: %s", error)
            await self._deps.inbox.postpone(self.entry, AWAY_SECONDS)  # where that fails, its lease ends by itself
        except (BotError, AgentError, IndexerError) as error:
            self._outcome = "refused" if isinstance(error, NotAllowed) else "failed"
            return self._make_sentence(str(error))
        except Exception as error:
            log.exception("a message could not be answered")
            self._outcome = "failed"
            return self._make_sentence(describe_unexpected(error))
        return None

    async def _go_through_states(self) -> MessageContent | None:
        """Admit, and answer: at once what is no question, everything else in its turn."""
        if self.reason == "stopped":
            self._outcome = "stopped"
            return self._make_sentence(STOPPED)
        refusal = await self._refuse()
        if refusal:
            return self._make_sentence(refusal)
        command = self._deps.commands.parse(self.entry.message)
        if command is not None:
            return self._make_sentence(await self._run_command(command))
        await self._admit()
        decision = parse_decision(self.entry.message.text)
        if decision and is_goal_proposed(await self._deps.records.last(self.entry.conversation)):
            return await self._decide(decision)
        if self._queue is None:
            await self._hand_on()
            return None
        return await self._answer_in_line(self._queue)

    async def _answer_in_line(self, queue: AnswerQueue) -> MessageContent:
        """Answer after what was asked before in the conversation, whose lock is held until the answer is recorded."""
        lock, order = queue.lock_conversation(self.entry.conversation), self.entry.message.order
        places = queue if order is None else self._deps.goals.places
        await self._begin_reply(places.before or int(lock.locked()))
        async with self._reply.growing(), lock:
            if order is not None:
                return await self._work_on_order(order)
            last = await self._deps.records.last(self.entry.conversation)
            self._check_reply(await find_waiting_turn(self._deps.records, self._deps.inbox, self.entry.conversation))
            choice, quotes = await self._choose(last)
            if isinstance(choice, AmbiguousRepository):
                return self._pause(choice)
            at = await self._choose_ref(choice)
            for name in choice.repositories:
                await self._ensure_indexed(name, is_needed=len(choice.repositories) == 1)
            if (proposed := await self._propose(choice, last)) is not None:
                return proposed
            held = await self._hold_ref(choice.repositories[0], at.ref)
            run = self._plan_run(at.question, quotes, held)
            async with queue.hold_place(self._show_place):
                await self._follow(run)
            return await self._conclude(choice)

    async def _refuse(self) -> str:
        """Say why a message is not even looked at: set aside, given up, or too long; empty where it is."""
        entry, message = self.entry, self.entry.message
        if entry.deaths >= MAX_DEATHS:
            self._gives_up, self._outcome = True, "set_aside"
            log.error("%s is set aside: citebot died %d times while answering it", message.key, entry.deaths)
            return SET_ASIDE
        if entry.tries > MAX_TRIES or entry.age > LATE_SECONDS:
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

    async def _run_command(self, command: ParsedCommand | UnknownCommand) -> str | MessageContent:
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
        # Also one that is refused is counted: that takes a reply, too.
        if self.entry.tries == 1 and not message.about:
            await self._deps.counter.count(message)
        self._deps.chooser.check(message)

    async def _hand_on(self) -> None:
        """Show that the question has come in, and leave the rest to whichever process has a free place."""
        await self._begin_reply(await self._deps.inbox.count_before(self.entry))
        await self._deps.inbox.hand_on(self.entry)
        self.is_handed_on, self._outcome = True, "handed_over"

    async def _begin_reply(self, before: int) -> None:
        """Post the placeholder, which tells how many questions are answered first."""
        self._draft.wait(before)
        if not self._is_overheard:
            await self._reply.begin(self._draft.partial_content(), may_stream=self._queue is not None)

    def _show(self, content: MessageContent | Callable[[], MessageContent]) -> None:
        """Show the newest content of a growing reply."""
        if not self._is_overheard:
            self._reply.show(content)

    def _check_reply(self, waiting: TurnRecord | None) -> None:
        """Raise `NotAllowed` where a message would go on with what somebody else asked, and may not.

        An approval is given by the person who asked; which repository was meant, by whoever may ask about it.
        """
        message = self.entry.message
        if waiting is None or waiting.goal or waiting.person == message.author:
            return
        if parse_decision(message.text):
            raise NotAllowed(NOT_YOURS)
        for repository in waiting.names:
            self._deps.access.check_repository(message, repository)

    async def _choose(self, last: TurnRecord | None) -> tuple[RepositoryChoice | AmbiguousRepository, Sequence[str]]:
        """Choose the repositories; also return the thread that citebot was called into, quoted.

        The thread counts only where the question says nothing of its own.
        """
        text = self.entry.message.text
        if last is not None and last.goal is not None and is_verify_request(text):
            self._deps.access.check_repository(self.entry.message, last.goal.repository)
            why = "the answer that is verified is about it"
            return RepositoryChoice(repositories=(last.goal.repository,), why=why, question=text), ()
        async with self._limit_time():
            self._attached = await read_attachments(
                self.entry.message, self._platform, takes_images=self._deps.takes_images, mask=self._deps.mask
            )
            quotes = await read_thread_quotes(self.entry.message, self._platform, self._deps.mask)
            around = [*read_quotes(quotes), *(one.text[:LONGEST_QUOTED] for one in self._attached.texts)]
            context = "\n".join([text, *around]) if is_bare_question(text) else text
            return await self._deps.chooser.choose(self.entry, context), quotes

    def _pause(self, choice: AmbiguousRepository) -> MessageContent:
        """Ask back which repository is meant; the answer to that is another try at this message."""
        self._outcome = "paused"
        return make_clarifying_question(choice, self.entry.run_id)

    async def _choose_ref(self, choice: RepositoryChoice) -> RefChoice:
        """Choose what the repository is read at; a follow-up stays where the question before it was answered."""
        self.repositories = tuple(choice.repositories)
        message, before = self.entry.message, None
        if not (message.private and message.kind == "command"):  # which is one conversation for ever
            last = await self._deps.records.last(self.entry.conversation)
            before = read_ref(last.at) if last is not None and last.names == self.repositories else None
        async with self._limit_time():
            at = await self._deps.refs.choose(choice.repositories, choice.question, before=before)
        self._ref = at.ref
        self._answer.begin_with("\n\n".join(filter(None, (choice.remark, at.remark, *self._attached.remarks))))
        return at

    async def _hold_ref(self, name: str, ref: NamedRef | None) -> CodeSearch | None:
        """Hold the code at a ref, which is indexed where nobody has asked about it lately."""
        if ref is None:
            return None
        growing = self._draft.partial_content()

        def show(progress: Progress) -> None:
            status = neutralize(describe_progress(f"{name} at {ref.name}", progress), self._deps.hosts)
            self._show(replace(growing, status=status))

        return await self._deps.refs.pin(name, ref, show)

    def _plan_run(self, question: str, quotes: Sequence[str], held: CodeSearch | None) -> TurnRun:
        """Plan the run of the turn, the same one after a restart."""
        named = self.repositories if held is None else (pin_name(self.repositories[0], held.commit.sha),)
        self._run = TurnRun(
            id=self.entry.run_id,
            conversation=self.entry.conversation,
            repositories=named,
            question=with_background(question, quotes),
            attachments=self._attached.to_attachments(),
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
        """Let the run come to its answer; one that was begun before goes on."""
        self._show(self._draft.partial_content())
        async with self._limit_time():
            permit = ClaimedMessage(inbox=self._deps.inbox, entry=self.entry)
            was_begun = self.entry.state == "running"
            await follow_run(self._deps.agent, run, self._take, was_begun=was_begun, permit=permit)

    def _take(self, event: AgentEvent) -> None:
        """Take an event of the run in, and show what it changes."""
        self._stats.take(event)
        if self._draft.take(event) and event.kind != "answer":
            self._show(self._draft.partial_content)

    async def _conclude(self, choice: RepositoryChoice) -> MessageContent:
        """Record how the answer came about, and return it; a sentence where there is none."""
        answer, message = self._answer.answer, self.entry.message
        self._outcome = self._find_outcome(answer)
        if answer is None:
            return self._make_sentence(INTERRUPTED)
        if self.reason == "late":
            return self._answer.content_at_stop(TOO_LATE)
        if answer.route == "stopped":
            return self._answer.content_at_stop(STOPPED)
        self._has_found = answer.found
        offered = self._deps.goals.offer_check(message, choice.question, answer)
        await self._keep_record(answer, choice.why, offered)
        sharing = message.private and message.kind == "command"
        shown = await self._find_freshness(answer)
        return self._answer.final_content(shown, sharing=sharing, verifying=offered is not None)

    async def _keep_record(self, answer: Answer, why: str, goal: GoalOrder | None = None) -> None:
        if answer.route == "failed" and await self._is_person_awaited():  # who may reply must not be forgotten
            return
        record = replace(
            self._stats.record(answer), why=why, person=self.entry.message.author, goal=goal, at=write_ref(self._ref)
        )
        await self._deps.records.keep(self.entry.run_id, self.entry.conversation, record)

    async def _find_freshness(self, answer: Answer) -> str:
        freshness = await find_freshness(answer, self._deps.repositories, self._deps.clock.now(), at=self._ref)
        return neutralize(freshness, self._deps.hosts)

    async def _propose(self, choice: RepositoryChoice, last: TurnRecord | None) -> MessageContent | None:
        """Propose the goal run that a message wants, or say why there is none; None where an answer is read."""
        goals, message = self._deps.goals, self.entry.message
        if self._is_overheard:  # nobody has asked citebot for anything
            return None
        said = await goals.reply(message, choice.question, last, choice.repositories)
        if said is None or said.is_read:
            self._answer.end_with(self._deps.mask(said.text) if said is not None else "")
            return None
        if said.order is None:
            return self._make_sentence(said.text)
        self._outcome = "paused"
        record = TurnRecord(
            repository=said.order.repository, commit=said.order.commit, route="paused", model=said.model, seconds=0.0,
            person=message.author, why=choice.why, goal=said.order,
        )  # fmt: skip
        await self._deps.records.keep(self.entry.run_id, self.entry.conversation, record)
        return make_goal_proposal(self._deps.mask(said.text), self.entry.run_id, self._deps.hosts)

    async def _decide(self, decision: str) -> MessageContent:
        """Decide, as a person says, about the goal run that the conversation proposes."""
        self.is_question, self._outcome = False, "command"
        self.decided = await self._deps.goals.decide(decision, self.entry.message, self.entry.conversation)
        if self.decided is None:
            return self._make_sentence(DECIDED)
        return self._make_sentence(APPROVED if decision == "approve" else ABORTED)

    async def _work_on_order(self, order: GoalOrder) -> MessageContent:
        """Work on a goal run that was approved to its verdict; one that was not approved is over."""
        goals, entry = self._deps.goals, self.entry
        self.repositories = (order.repository,)
        if not order.approver or goals.runs is None:
            self._outcome = "stopped" if not order.approver else "failed"
            return self._make_sentence(goals.problem if order.approver else NOT_STARTED)
        self._run = TurnRun(
            id=entry.run_id, conversation=self._name_goal_thread(), repositories=self.repositories, question=order.task,
            attachments=self._attached.to_attachments(),
        )  # fmt: skip
        self._runs = goals.runs
        async with goals.places.hold_place(self._show_place):
            await self._follow_order(goals.runs, order)
        answer = self._goal.answer
        self._outcome = self._find_outcome(answer)
        if answer is None or answer.route == "stopped":
            return self._goal.content_at_stop(STOPPED if answer is not None else INTERRUPTED)
        await self._keep_record(answer, f"`{order.approver}` had it begin")
        return self._goal.final_content(await self._find_freshness(answer))

    async def _follow_order(self, runs: GoalRuns, order: GoalOrder) -> None:
        """Let a goal run come to its verdict, however long it takes: it has limits of its own."""
        self._show(self._draft.partial_content())
        if await self._deps.inbox.begin_run(self.entry):
            # It may be under way for long, and so in many deaths of the process that others have caused.
            await self._deps.inbox.excuse([self.entry])
            was_begun = self.entry.state == "running"
            thread = self._name_goal_thread()
            await follow_goal(runs, order, self.entry.run_id, thread, self._take, was_begun=was_begun)

    def _name_goal_thread(self) -> str:
        return f"{self.entry.conversation}:goal:{self.entry.run_id}"

    async def _is_person_awaited(self) -> bool:
        """Whether the turn before asked a person something, which may wait still where this one has failed."""
        return await find_waiting_turn(self._deps.records, self._deps.inbox, self.entry.conversation) is not None

    def _find_outcome(self, answer: Answer | None) -> TurnOutcome:
        if self.reason in {"late", "stopped"}:
            return "late" if self.reason == "late" else "stopped"
        return _OUTCOMES.get(answer.route, "answered") if answer is not None else "failed"

    async def _is_still_held(self) -> bool:
        """Whether the message is still this process's to end: what another one answers now is left to that one."""
        if self.reason in {"superseded", "lost"}:
            return False
        if not await self._deps.inbox.still_holds(self.entry):
            log.warning("a message was lost to another process, or edited, before it was replied to")
            self.reason = "lost"
        return self.reason != "lost"

    async def _leave_overtaken(self) -> None:
        """Leave a run to the process that has gone on with it; take it up again where that one has lost the message."""
        if await self._is_still_held():
            log.warning("a process that has lost a message saved another step of its run; it is taken up from there")
            self._outcome = "unsaid"
            await self._deps.inbox.postpone(self.entry, OVERTAKEN_SECONDS)

    async def _send_final_content(self, content: MessageContent) -> None:
        """Show the final content, and note that the message is over."""
        try:
            if any(button.action == "share" for button in content.buttons):
                answer = ShareableAnswer(content=content, repositories=self.repositories)
                await self._deps.shareable.keep(self.entry.run_id, self.entry.conversation, answer)
            await self._reply.settle(content)
        except ChatError as error:
            await self._handle_send_failure(error)
        except InboxError:
            raise
        except Exception as error:
            # One reply that cannot be sent must not end all the others.
            log.exception("a message was not replied to")
            await self._handle_send_failure(PlatformUnreachable(describe_unexpected(error)))
        else:
            self.final = content
            self._timer.record_final_content()
            paused_or_settled: EndedState = "paused" if self._outcome == "paused" else "settled"
            await self._settle_for_good("closed" if self._gives_up else paused_or_settled)

    async def _settle_for_good(self, state: EndedState) -> None:
        """Note that the message is over, and drop how its author is reached, unless they are asked something."""
        if state != "paused" and self.entry.message.place.line:
            await self._deps.inbox.note_handles(self.entry, [handle.drop_line() for handle in self._reply.handles])
        is_over = await self._deps.inbox.settle(self.entry, state)
        if is_over and self._runs is self._deps.goals.runs and self._deps.goals.runs is not None:
            await forget_goal(self._deps.goals.runs, self._name_goal_thread())

    async def _end_silently(self) -> None:
        """Say nothing, and remember nothing of the question: a person may ask it anew, or somebody else answer it."""
        self.is_silent, self._outcome = True, "silent"
        try:
            if self._reply.handles:  # of what was found before an edit
                await self._reply.withdraw()
        except ChatError as error:
            log.warning("an answer was not withdrawn: %s", error)
        # Only after this nobody else takes the message up, and goes on with what is forgotten.
        if await self._deps.inbox.settle(self.entry, "closed") and self._run is not None:
            await self._deps.agent.forget(self._run.conversation, run_id=self._run.id)

    async def _withdraw_if_deleted(self) -> None:
        """Delete what was posted after somebody else has deleted the rest of the reply, as its question was."""
        try:
            entry = await self._deps.inbox.find(self.entry.message.key)
            if entry is not None and entry.state == "withdrawn":
                await self._reply.withdraw()
        except BotError as error:
            log.warning("an answer was not withdrawn: %s", error)

    @property
    def has_strays(self) -> bool:
        """Whether it has ended with messages that may be part of no reply: neither settled nor handed on."""
        return self.final is None and not self.is_handed_on and self._reply.posted != ()

    async def take_back_strays(self, platform: ChatPlatform) -> bool:
        """Delete what was posted here and is not part of the reply in the end; False while there is no end yet."""
        now, posted = await self._deps.inbox.get(self.entry.id), self._reply.posted
        if posted is None or (now is not None and now.state not in OVER):
            return False
        known = {handle.drop_line() for handle in (now.handles if now is not None else posted)}
        for handle in posted:
            if handle.drop_line() not in known:
                await _take_back(platform, handle)
        return True

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
        ends = self._run is not None and reason not in {"lost", "handed over"}
        is_under_way = ends and await self._runs.stop(self.entry.run_id)
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

    def _make_sentence(self, said: str | MessageContent) -> MessageContent:
        """Return what is said in a form that is safe to send; a file that goes with it goes as it is."""
        content = said if isinstance(said, MessageContent) else MessageContent(text=said)
        return replace(content, text=neutralize(self._deps.mask(content.text), self._deps.hosts))


def open_reply(
    entry: InboxEntry,
    transport: ReplyTransport,
    inbox: MessageInbox,
    *,
    on_stop: Callable[[], object] = lambda: None,
    on_shown: Callable[[MessageContent], None] = lambda _: None,
    may_grow: Callable[[], bool] = lambda: True,
) -> Reply:
    """Open the reply to a message, where an earlier try has left it; the inbox notes its messages."""

    async def is_taken(handle: MessageHandle) -> bool:
        other = await inbox.find_by_reply(handle)
        return other is not None and other.id != entry.id

    return Reply(
        transport,
        entry.message.place,
        nonce=entry.run_id,
        note=partial(_note_handles, entry, transport, inbox),
        handles=entry.handles,
        recovered=entry.token > (entry.state in HELD),  # an earlier claim was not brought to its end
        on_stop=on_stop,
        on_shown=on_shown,
        is_taken=is_taken,
        may_grow=may_grow,
    )


async def _note_handles(
    entry: InboxEntry, transport: ReplyTransport, inbox: MessageInbox, handles: Sequence[MessageHandle]
) -> None:
    """Note what a reply consists of; raises `MessageLost` where that is for another process to say.

    A process that stood still while it posted, and woke up after another one had begun the reply anew, takes back what
    the other one does not know of. Before that has noted any, it may be about to find what was posted here.
    """
    if await inbox.note_handles(entry, handles):
        return
    now = await inbox.get(entry.id)
    known = now.handles if now is not None else ()
    for handle in handles if known else ():
        if handle not in known:
            await _take_back(transport.platform, handle)
    raise MessageLost("Another process answers this message, or it was edited meanwhile.")


async def _take_back(platform: ChatPlatform, handle: MessageHandle) -> None:
    """Delete a message that was posted too late."""
    try:
        await platform.withdraw(handle)
    except ChatError as error:
        log.warning("a message that was posted too late was not taken back: %s", error)

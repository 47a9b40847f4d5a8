"""One turn from top to bottom: how a stored message becomes a settled reply, and what is known of it on the way.

    received    the dispatcher has stored the message, and lets it begin
    claimed     this process answers it, and renews the lease on it until the end       claim
    admitted    not quarantined, not too old, not too long; counted; allowed            _refuse, _admit
    queued      a placeholder is shown; earlier questions of the conversation go first  AnswerCourse.answer
                a front leaves it at that, and hands the message on                     _hand_on
    chosen      it is known which repositories it is about, and they are indexed        AnswerRun
                also where it names another branch, tag, commit or pull request
    answered    there was a free place, and the run has reached its answer              AnswerCourse
                or what a person has approved was done in the sandbox
    paused      or a person is asked first: which repository, or for an approval        AnswerCourse
    settled     the reply shows its final content, and the inbox knows that it is over  _settle_for_good

`ActiveTurn.run` goes through them in this order. A command is admitted, carried out and settled. `interrupt` ends a
turn in any state; an error becomes the sentence that the reply is settled with.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Self, cast

from agent import (
    INTERRUPTED,
    QUESTION_TOO_LONG,
    STOPPED,
    AgentError,
    CheckpointOvertaken,
    CheckpointUnreachable,
    is_undecided,
    parse_run_decision,
)
from bot.conversations.answer_course import AnswerCourse
from bot.conversations.commands import ParsedCommand, UnknownCommand
from bot.conversations.goal_turns import (
    ABORTED,
    APPROVED,
    DECIDED,
    find_wanted_goal,
    is_goal_proposed,
    remind,
)
from bot.conversations.opened_reply import open_reply, take_back_strays, withdraw_if_deleted
from bot.conversations.turn_deps import Break, TurnDeps
from bot.errors import (
    TOO_LATE,
    BotError,
    ChatError,
    InboxError,
    NotAllowed,
    OutsidersPresent,
    PlatformUnreachable,
    SilentlyThrottled,
    describe_unexpected,
)
from bot.markdown.formatting import neutralize
from bot.messages import MessageContent
from bot.monitoring import logs
from bot.monitoring.observer import ReplyTimer, TurnOutcome
from bot.ports import ChatPlatform
from bot.replies.send_budget import ReplyTransport
from bot.storage.answer_records import ShareableAnswer
from bot.storage.inbox import LEASE_SECONDS, InboxEntry
from bot.storage.leases import Lease
from bot.storage.message_states import MAX_DEATHS, MAX_TRIES, EndedState
from indexer import IndexerError

LATE_SECONDS = 3_600.0
RETRY_SECONDS = 5.0  # until a message is tried again whose conversation cannot be read or written
PATIENCE_SECONDS = 60.0  # with a platform that does not answer; four times that, and again, in later tries
OVERTAKEN_SECONDS = 1.0
SET_ASIDE = (
    "I could not finish this one: it crashed me twice, so it is quarantined. "
    "Ask again in other words, or leave out the pasted text."
)

log = logging.getLogger(__name__)


class ActiveTurn:
    """A claimed message, its reply, and its progress. Only the methods here set its fields.

    `reason` explains an interruption; `is_question` distinguishes it from a command; `final` is the
    content of the settled reply; `ended` is set at the end of `run`, whose task is `task`. A
    question without a mention is answered only if something was found, otherwise `is_silent`.
    `is_handed_on` means that another process must answer, as on a front. `decided` is the message
    whose goal run this one has decided about. `on_answered` is called with the final content,
    before its delivery.
    """

    def __init__(
        self,
        entry: InboxEntry,
        transport: ReplyTransport,
        deps: TurnDeps,
        group: asyncio.TaskGroup,
        *,
        is_answered_here: bool,
        on_answered: Callable[[], object],
    ) -> None:
        self.entry = entry
        self.reason: Break = ""
        self.is_question = False
        self.is_silent = False
        self.is_handed_on = False
        self.decided: InboxEntry | None = None
        self.final: MessageContent | None = None
        self.ended = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._deps = deps
        self._is_answered_here = is_answered_here
        self._on_answered = on_answered
        self._outcome: TurnOutcome = "unsaid"
        self._gives_up = False  # the reply is that there is none, and must not be tried again
        self.lease = Lease(name=f"message {entry.id}", token=entry.token, seconds=LEASE_SECONDS)
        self._timer = ReplyTimer(
            observer=deps.observer,
            clock=deps.clock,
            platform=entry.message.place.platform,
            since=deps.clock.now() - entry.age,
        )
        self._platform = transport.platform
        self._open_reply = partial(
            open_reply,
            transport=transport,
            inbox=deps.inbox,
            on_stop=lambda: group.create_task(self.interrupt("stopped")),
            on_shown=self._timer.record_content,
            may_grow=lambda: self.lease.is_sure,
        )
        self._reply = self._open_reply(entry)
        self._course = AnswerCourse(
            entry, transport.platform, deps, self._reply, limit_time=self._limit_time, get_reason=lambda: self.reason
        )

    @classmethod
    async def claim(
        cls,
        entry: InboxEntry,
        transport: ReplyTransport,
        deps: TurnDeps,
        group: asyncio.TaskGroup,
        *,
        is_answered_here: bool,
        on_answered: Callable[[], object],
    ) -> Self | None:
        """Claim a message for this process; None if another process has it or its conversation, or it is over."""
        is_command = entry.deaths < MAX_DEATHS and deps.commands.parse(entry.message) is not None
        asked_at = time.monotonic()
        claimed = await deps.inbox.claim(entry.id, beside=is_command or not is_answered_here, risky=is_answered_here)
        if claimed is None:
            return None
        turn = cls(claimed, transport, deps, group, is_answered_here=is_answered_here, on_answered=on_answered)
        turn.lease.prolong(asked_at)
        return turn

    async def run(self) -> None:
        """Bring the message to its settled reply. Release a turn that another process continues."""
        self.task = asyncio.current_task()
        try:
            with logs.log_turn(self.entry.run_id, self.entry.conversation):
                content = await self._make_final_content()
                if content is None or not await self._is_still_held(is_answered=not self._gives_up):
                    return
                self._on_answered()
                if self._course.is_overheard and not self._course.has_found:
                    await self._end_without_reply()
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
                    await withdraw_if_deleted(self.entry, self._reply, self._deps.inbox)
            finally:  # in any case: others wait for the end of the turn
                breaks: Mapping[Break, TurnOutcome] = {
                    "superseded": "superseded", "lost": "superseded", "handed over": "handed_over",
                }  # fmt: skip
                outcome = breaks.get(self.reason, self._outcome)
                self._deps.observer.count_outcome(self.entry.message.place.platform, outcome)
                self.ended.set()

    async def _make_final_content(self) -> MessageContent | None:
        """Return the final content; None if nothing may be said any more. Errors become sentences here."""
        try:
            return await self._go_through_states()
        except asyncio.CancelledError:
            if self.reason not in {"stopped", "late"}:
                raise
            cast("asyncio.Task[None]", asyncio.current_task()).uncancel()
            self._outcome = "stopped" if self.reason == "stopped" else "late"
            return self._deps.make_sentence(STOPPED if self.reason == "stopped" else TOO_LATE)
        except ChatError as error:
            await self._handle_send_failure(error)
        except OutsidersPresent as error:
            return await self._refuse_outsiders(error)
        except SilentlyThrottled as error:
            log.warning("%s: %s", self.entry.message.author, error)
            self._outcome = "refused"
            await self._deps.inbox.settle(self.entry, "closed")
        except (InboxError, CheckpointOvertaken):  # the message waits for its database, or is somebody else's
            raise
        except CheckpointUnreachable as error:
            log.warning("a message waits for the database: %s", error)
            await self._deps.inbox.postpone(self.entry, RETRY_SECONDS)  # where that fails, its lease ends on its own
        except (BotError, AgentError, IndexerError) as error:
            self._outcome = "refused" if isinstance(error, NotAllowed) else "failed"
            return self._deps.make_sentence(str(error))
        except Exception as error:
            log.exception("a message could not be answered")
            self._outcome = "failed"
            return self._deps.make_sentence(describe_unexpected(error))
        return None

    async def _refuse_outsiders(self, error: OutsidersPresent) -> MessageContent | None:
        """Tell the author privately, if the platform can, and once a day; always answer a command."""
        self._outcome, message = "refused", self.entry.message
        if message.kind != "command" and not self._reply.handles:
            if not self._deps.notices.is_due(message):
                await self._deps.inbox.settle(self.entry, "closed")
                return None
            if self._platform.capabilities.whispers and not message.private:
                place = message.place.make_private(message.author)
                self._reply = self._open_reply(replace(self.entry, message=replace(message, place=place)))
        return self._deps.make_sentence(str(error))

    async def _go_through_states(self) -> MessageContent | None:
        """Admit, and answer: commands immediately, everything else in its turn."""
        if self.reason == "stopped":
            self._outcome = "stopped"
            return self._deps.make_sentence(STOPPED)
        refusal = await self._refuse()
        if refusal:
            return self._deps.make_sentence(refusal)
        command = self._deps.commands.parse(self.entry.message)
        if command is not None:
            return await self._reply_to_command(command)
        await self._admit()
        last = await self._deps.records.last(self.entry.conversation)
        if self.entry.message.order is None and is_goal_proposed(last):
            decision, named = parse_run_decision(text := self.entry.message.text)
            if decision or (is_undecided(text) and find_wanted_goal(text, last) is None):
                return await (self._decide(decision, named) if decision else self._remind())
        if not self._is_answered_here:
            await self._hand_on()
            return None
        said = await self._course.answer()
        self._outcome = said.outcome
        return said.content

    async def _refuse(self) -> str:
        """Explain why a message is not read: quarantined, given up, or too long; empty if it is."""
        entry, message = self.entry, self.entry.message
        if entry.deaths >= MAX_DEATHS:
            self._gives_up, self._outcome = True, "set_aside"
            log.error("%s is quarantined: citebot died %d times while answering it", message.key, entry.deaths)
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

    async def _reply_to_command(self, command: ParsedCommand | UnknownCommand) -> MessageContent | None:
        """Carry out a command, and reply with its result unless it is already visible."""
        if said := await self._run_command(command):
            return self._deps.make_sentence(said)
        await self._deps.inbox.settle(self.entry, "closed")
        return None

    async def _run_command(self, command: ParsedCommand | UnknownCommand) -> str | MessageContent:
        """Carry out a command. It is counted, unless it makes citebot do less; indexing shows its progress."""
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
        async with self._reply.keep_growing():
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
        """Acknowledge the question, and leave the rest to any process with a free place."""
        await self._course.begin_reply(await self._deps.inbox.count_before(self.entry), may_stream=False)
        await self._deps.inbox.hand_on(self.entry)
        self.is_handed_on, self._outcome = True, "handed_over"

    async def _remind(self) -> MessageContent | None:
        """Say once that a message decides nothing about the proposed goal run."""
        self.is_question, self._outcome = False, "command"
        if said := await remind(self._deps.records, self.entry.conversation):
            return self._deps.make_sentence(said)
        self._outcome = "silent"
        await self._deps.inbox.settle(self.entry, "closed")
        return None

    async def _decide(self, decision: str, named: str) -> MessageContent:
        """Apply a person's decision about the conversation's proposed goal run."""
        self.is_question, self._outcome = False, "command"
        self.decided = await self._deps.goals.decide(decision, self.entry.message, self.entry.conversation, named=named)
        if self.decided is None:
            return self._deps.make_sentence(DECIDED)
        return self._deps.make_sentence(APPROVED if decision == "approve" else ABORTED)

    async def _is_still_held(self, *, is_answered: bool = False) -> bool:
        """Whether this process may still end the message; a new owner may be answering it.

        Once the answer is complete, no crash counts against the message any more.
        """
        if self.reason in {"superseded", "lost"}:
            return False
        if not await self._deps.inbox.still_holds(self.entry, is_answered=is_answered):
            log.warning("a message was lost to another process, or edited, before it was replied to")
            self.reason = "lost"
        return self.reason != "lost"

    async def _leave_overtaken(self) -> None:
        """Leave a run to the process that has continued it; resume it if that one has lost the message."""
        if await self._is_still_held():
            log.warning("a process that has lost a message saved another step of its run; it is taken up from there")
            self._outcome = "unsaid"
            await self._deps.inbox.postpone(self.entry, OVERTAKEN_SECONDS)

    async def _send_final_content(self, content: MessageContent) -> None:
        """Show the final content, and note that the message is settled."""
        try:
            if any(button.action == "share" for button in content.buttons):
                answer = ShareableAnswer(content=content, repositories=self._course.repositories)
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
            await self._course.keep_living()
            paused_or_settled: EndedState = "paused" if self._outcome == "paused" else "settled"
            await self._settle_for_good("closed" if self._gives_up else paused_or_settled)

    async def _settle_for_good(self, state: EndedState) -> None:
        """Settle the message, and drop its author's address, unless they are asked something."""
        if state != "paused" and self.entry.message.place.line:
            await self._deps.inbox.note_handles(self.entry, [handle.drop_line() for handle in self._reply.handles])
        is_over = await self._deps.inbox.settle(self.entry, state)
        if is_over:
            await self._course.forget_order()

    async def _end_without_reply(self) -> None:
        """Withdraw the reply, so that the question may be asked again, or answered by somebody else."""
        self.is_silent, self._outcome = True, "silent"
        try:
            if self._reply.handles:  # of what was found before an edit
                await self._reply.withdraw()
        except ChatError as error:
            log.warning("an answer was not withdrawn: %s", error)
        # Only after this, no other process can take the message and continue with deleted data.
        if await self._deps.inbox.settle(self.entry, "closed") and self._course.run.is_begun:
            await self._deps.agent.forget(self.entry.conversation, run_id=self.entry.run_id)

    @property
    def has_strays(self) -> bool:
        """Whether it ended with messages that may belong to no reply: neither settled nor handed on."""
        return self.final is None and not self.is_handed_on and self._reply.platform_messages != ()

    async def take_back_strays(self, platform: ChatPlatform) -> bool:
        """Delete messages posted here that are not part of the final reply; False until there is one."""
        return await take_back_strays(self.entry, self._reply, self._deps.inbox, platform)

    async def _handle_send_failure(self, error: ChatError) -> None:
        """Wait for a platform that is down; give up if the place accepts no messages."""
        log.warning("a message was not replied to: %s", error)
        self._outcome = "unsaid"
        if isinstance(error, PlatformUnreachable) and not self._gives_up:
            await self._deps.inbox.postpone(self.entry, PATIENCE_SECONDS * 4 ** (self.entry.tries - 1))
        else:
            await self._deps.inbox.settle(self.entry, "closed")

    async def interrupt(self, reason: Break) -> None:
        """Interrupt the turn in any state. The agent ends its run itself, unless another process continues it."""
        self.reason = self.reason or reason
        is_under_way = reason not in {"lost", "handed over"} and await self._course.stop()
        if self.task is not None and (not is_under_way or reason == "superseded"):
            self.task.cancel()

    @asynccontextmanager
    async def _limit_time(self) -> AsyncIterator[None]:
        """Interrupt the turn when its time is over."""

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

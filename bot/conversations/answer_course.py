"""The course of a question from its placeholder to the reply: an answer, a proposal, or a question."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent import (
    INTERRUPTED,
    STOPPED,
    AgentError,
    AgentEvent,
    Answer,
    CheckpointOvertaken,
    is_bare_question,
    is_verify_request,
    parse_decision,
    read_quotes,
    with_background,
)
from bot.conversations.goal_turns import (
    NOT_STARTED,
    TOO_EARLY,
    GoalReply,
    follow_order,
    forget_goal,
    name_goal_thread,
)
from bot.conversations.question_context import ReadAttachments, read_attachments, read_thread_quotes
from bot.conversations.turn_deps import Break, Said, TurnDeps
from bot.errors import TOO_LATE, InboxError, NotAllowed
from bot.living.edits import describe_renewal
from bot.markdown.formatting import neutralize
from bot.messages import LONGEST_QUOTED, GoalOrder, MessageContent
from bot.monitoring.observer import TurnOutcome
from bot.ports import ChatPlatform
from bot.questions.answer_run import AnswerRun, LimitTime
from bot.questions.descriptions import describe_progress
from bot.replies.answer_content import StreamingAnswer
from bot.replies.goal_content import GrowingGoal, make_goal_proposal
from bot.replies.reply import Reply
from bot.repositories.choice_store import AmbiguousRepository, RepositoryChoice, make_clarifying_question
from bot.storage.inbox import Inbox, InboxEntry
from bot.storage.turn_records import KeptTurn, TurnRecord, TurnRecordStore
from indexer import Progress

NOT_YOURS = "Only the person who asked can do that."
# The outcomes of answers that do not answer the question, by their routes.
_OUTCOMES: Mapping[str, TurnOutcome] = {
    "paused": "paused",
    "blocked": "blocked",
    "failed": "failed",
    "stopped": "stopped",
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimedMessage:
    """A message that this process has claimed, from the viewpoint of its run."""

    inbox: Inbox
    entry: InboxEntry

    async def may_begin(self) -> bool:
        """Note that the run begins; False if the message was edited, or taken by another process, meanwhile."""
        return await self.inbox.begin_run(self.entry)

    async def may_be_replied_to(self, run_id: str) -> bool:
        """Whether the message of another run was neither edited nor deleted."""
        return await self.inbox.is_current(self.entry.conversation, run_id)


class AnswerCourse:
    """The reply to one question, and its run. Only the methods here set its fields.

    `limit_time` ends its turn when the time is up, and `get_reason` returns the reason of an
    interruption. A question without a mention is answered only if `has_found` says that something
    was found, and nothing is shown before.
    """

    def __init__(
        self,
        entry: InboxEntry,
        platform: ChatPlatform,
        deps: TurnDeps,
        reply: Reply,
        *,
        limit_time: LimitTime,
        get_reason: Callable[[], Break],
    ) -> None:
        self.run = AnswerRun(deps, run_id=entry.run_id, conversation=entry.conversation)
        self.has_found = False
        self._entry = entry
        self._platform = platform
        self._deps = deps
        self._reply = reply
        self._limit_time = limit_time
        self._get_reason = get_reason
        self._attached = ReadAttachments()
        self._quotes: Sequence[str] = ()  # of the thread that citebot was called into
        self._answer = StreamingAnswer(entry.run_id, deps.hosts)
        self._goal = GrowingGoal(entry.run_id, deps.hosts, deps.mask)
        self._followed: MessageContent | None = None
        self._draft = self._answer if entry.message.goal_decision is None else self._goal

    @property
    def is_overheard(self) -> bool:
        """Whether the question names nobody."""
        return self._entry.message.kind == "overheard"

    @property
    def _is_alone(self) -> bool:
        """Whether the text is the whole request; other parts of the message are not kept."""
        return not (self._entry.message.files or self._entry.message.quoted or self._quotes)

    @property
    def repositories(self) -> tuple[str, ...]:
        """The repositories of the question, once they are chosen."""
        order = self._entry.message.order
        return self.run.repositories if order is None else (order.repository,)

    async def begin_reply(self, before: int, *, may_stream: bool) -> None:
        """Post the placeholder, which tells how many questions are answered first."""
        self._draft.wait(before)
        if not self.is_overheard:
            await self._reply.begin(self._draft.partial_content(), may_stream=may_stream)

    async def answer(self) -> Said:
        """Answer after the conversation's earlier questions, holding its lock until the answer is recorded."""
        queue, order = self._deps.queue, self._entry.message.goal_decision
        lock = queue.lock_conversation(self._entry.conversation)
        places = queue if order is None else self._deps.goals.places
        await self.begin_reply(places.before or int(lock.locked()), may_stream=True)
        async with self._reply.keep_growing(), lock:
            if order is not None:
                return await self._work_on_order(order)
            wanted = self._entry.message.order
            return await (self._answer_question() if wanted is None else self._propose_wanted(wanted))

    async def stop(self) -> bool:
        """End the run within two seconds; False if none is in progress."""
        if self._entry.message.goal_decision is None:
            return await self.run.stop()
        runs = self._deps.goals.runs
        return runs is not None and await runs.stop(self._entry.run_id)

    async def forget_order(self) -> None:
        """Forget the goal run of a shown verdict."""
        order, runs = self._entry.message.goal_decision, self._deps.goals.runs
        if order is not None and order.approver and runs is not None:
            await forget_goal(runs, name_goal_thread(self._entry))

    async def _answer_question(self) -> Said:
        last = await self._deps.records.last(self._entry.conversation)
        self._check_reply(await self._find_waiting_turn())
        async with self._limit_time():
            choice = await self._choose_repositories(last)
        if isinstance(choice, AmbiguousRepository):  # the answer to that is another try at this message
            return Said(content=make_clarifying_question(choice, self._entry.run_id), outcome="paused")
        if (unread := self._explain_unread()) is not None:
            return unread
        message = self._entry.message
        is_endless = message.private and message.kind == "command"  # one conversation for ever
        async with self._limit_time():
            at = await self.run.choose_ref(choice, None if is_endless else last)
        remarks = (choice.remark, at.remark, *self._attached.remarks, await self._describe_renewal())
        self._answer.begin_with("\n\n".join(filter(None, remarks)))
        question = at.question
        await self.run.ensure_indexed(choice.repositories, self._show_indexing)
        if (proposed := await self._propose(choice, last)) is not None:
            return proposed
        names = await self.run.hold(self._show_indexing)
        self._show(self._draft.partial_content())
        answer = await self.run.follow(
            with_background(question, self._quotes), names, self._take, limit=self._limit_time,
            show_place=self._show_place, permit=ClaimedMessage(inbox=self._deps.inbox, entry=self._entry),
            attachments=self._attached.to_attachments(), was_begun=self._entry.state == "running",
            alone=self._entry.message if last is None and self._is_alone else None,
        )  # fmt: skip
        return await self._conclude(answer, choice)

    async def _choose_repositories(self, last: TurnRecord | None) -> RepositoryChoice | AmbiguousRepository:
        """Choose the repositories by the question and its files, and by the thread if they say nothing."""
        message, deps, text = self._entry.message, self._deps, self._entry.message.text
        if last is not None and last.goal is not None and is_verify_request(text):
            deps.access.check_repository(message, last.goal.repository)
            why = "the answer that is verified is about it"
            return RepositoryChoice(repositories=(last.goal.repository,), why=why, question=text)
        self._attached = await read_attachments(message, self._platform, takes_images=deps.takes_images, mask=deps.mask)
        self._quotes = await read_thread_quotes(message, self._platform, deps.mask)
        asked = [text, *(one.text[:LONGEST_QUOTED] for one in self._attached.texts)]
        around = read_quotes(self._quotes) if is_bare_question(text) else ()
        return await deps.chooser.choose(
            message, "\n".join([*asked, *around]), conversation=self._entry.conversation, run_id=self._entry.run_id
        )

    def _explain_unread(self) -> Said | None:
        """Say that an attachment or link was not read, because the question means something else without it."""
        attached = self._attached
        if not (attached.remarks and is_bare_question(self._entry.message.text)) or attached.texts or attached.images:
            return None
        said = "\n\n".join((*attached.remarks, "Paste the lines that matter, and I will look at them."))
        return Said(content=self._deps.make_sentence(said), outcome="refused")

    def _check_reply(self, waiting: KeptTurn | None) -> None:
        """Raise `NotAllowed` if a message would continue another person's question without permission.

        Only the asker approves, after seeing the request; anyone who may ask about a repository may
        choose it.
        """
        message = self._entry.message
        if waiting is None or waiting.record.goal:
            return
        decision = parse_decision(message.text)
        if waiting.record.person == message.author:
            if decision == "approve" and message.sent_at < waiting.at:
                raise NotAllowed(TOO_EARLY)
            return
        if decision:
            raise NotAllowed(NOT_YOURS)
        for repository in waiting.record.names:
            self._deps.access.check_repository(message, repository)

    async def _propose(self, choice: RepositoryChoice, last: TurnRecord | None) -> Said | None:
        """Propose the goal run that a message wants, or give the reason why there is none; None to answer normally."""
        goals = self._deps.goals
        if self.is_overheard:  # nobody has asked citebot for anything
            return None
        said = await goals.reply(self._entry, choice.question, last, choice.repositories)
        if said is None or said.is_read:
            self._answer.end_with(self._deps.mask(said.text) if said is not None else "")
            return None
        return await self._show_proposal(said, choice.why)

    async def _propose_wanted(self, wanted: GoalOrder) -> Said:
        """Propose a goal run requested by kind and arguments, or explain why there is none."""
        await self.run.ensure_indexed((wanted.repository,), self._show_indexing)
        said = await self._deps.goals.propose(self._entry.message, wanted, (wanted.repository,))
        return await self._show_proposal(said, "it was named")

    async def _show_proposal(self, said: GoalReply, why: str) -> Said:
        if said.order is None:
            return Said(content=self._deps.make_sentence(said.text), outcome="refused")
        await self.run.keep(said.to_record(said.order, self._entry.message.author, why), held=self._entry)
        content = make_goal_proposal(self._deps.mask(said.text), self._entry.run_id, self._deps.hosts)
        return Said(content=content, outcome="paused")

    async def _work_on_order(self, order: GoalOrder) -> Said:
        """Carry out an approved goal run up to its verdict; end an unapproved one."""
        goals, runs, entry = self._deps.goals, self._deps.goals.runs, self._entry
        if not order.approver:
            return Said(content=self._deps.make_sentence(NOT_STARTED), outcome="stopped")
        if runs is None:
            return Said(content=self._deps.make_sentence(goals.problem), outcome="failed")
        async with goals.places.hold_place(self._show_place):
            self._show(self._draft.partial_content())
            await self.run.take_all(follow_order(runs, order, entry, self._deps.inbox), self._take)
        answer = self.run.answer
        outcome = self._find_outcome(answer)
        if answer is None or answer.route == "stopped":
            sentence = STOPPED if answer is not None else INTERRUPTED
            return Said(content=self._goal.content_at_stop(sentence), outcome=outcome)
        await self._keep_record(answer, f"`{order.approver}` had it begin")
        await self._remember(answer, order)
        return Said(content=self._goal.final_content(await self._find_freshness(answer)), outcome=outcome)

    async def _remember(self, answer: Answer, order: GoalOrder) -> None:
        """Let later questions of the conversation know the run's result; its verdict is shown even if that fails."""
        verdict = self._goal.verdict
        if verdict is None:
            return
        known = replace(answer, text=verdict.to_memory(self._deps.mask))
        thread, run_id = self._entry.conversation, self._entry.run_id
        try:
            await self._deps.agent.remember(order.task, known, thread=thread, run_id=run_id)
        except CheckpointOvertaken:  # another process may be continuing it
            raise
        except AgentError as error:
            log.warning("a conversation does not know of its goal run: %s", error)

    def _take(self, event: AgentEvent) -> None:
        """Show an event's effect on the run."""
        if self._draft.take(event) and event.kind != "answer":
            self._show(self._draft.partial_content)

    def _show(self, content: MessageContent | Callable[[], MessageContent]) -> None:
        """Show the newest content of a growing reply."""
        if not self.is_overheard:
            self._reply.show(content)

    def _show_place(self, before: int) -> None:
        """Show how many answers come first."""
        self._draft.wait(before)
        self._show(self._draft.partial_content())

    def _show_indexing(self, name: str, progress: Progress, why: str) -> None:
        """Show the indexing progress of the code in question."""
        status = neutralize(why + describe_progress(name, progress), self._deps.hosts)
        self._show(replace(self._draft.partial_content(), status=status))

    async def _conclude(self, answer: Answer, choice: RepositoryChoice) -> Said:
        """Record how the answer was found, and return it; a sentence if there is none."""
        message, outcome = self._entry.message, self._find_outcome(answer)
        if self._get_reason() == "late":
            return Said(content=self._answer.content_at_stop(TOO_LATE), outcome=outcome)
        if answer.route == "stopped":
            return Said(content=self._answer.content_at_stop(STOPPED), outcome=outcome)
        # Overheard, a question that names no code may be one of the office.
        self.has_found = answer.found and not (self.is_overheard and answer.is_pointing)
        offered = self._deps.goals.offer_check(message, choice.question, answer)
        await self._keep_record(answer, choice.why, offered, question=choice.question)
        sharing = message.private and message.kind == "command"
        shown = await self._find_freshness(answer)
        is_followed = outcome == "answered" and (sharing or not message.place.line)
        is_renewed = is_followed and not sharing and self.run.ref is None and self._deps.living is not None
        content = self._answer.final_content(
            shown, sharing=sharing, verifying=offered is not None, asking=True,
            renewing=is_renewed and self.run.reused is not None,
        )  # fmt: skip
        self._followed = content if is_followed else None
        return Said(content=content, outcome=outcome)

    async def keep_living(self) -> None:
        """Store the shown answer for reuse, and follow it through pushes, if it qualifies."""
        await self.run.keep_reusable()
        if self._followed is not None:  # attachments are not kept
            question = self._entry.message.text if self._is_alone else ""
            await self.run.keep_living(self._followed, question, entry=self._entry.id)

    async def _describe_renewal(self) -> str:
        """Describe the changes since the reply was first written; empty unless it is answered again."""
        store = self._deps.living
        before = await store.find(self._entry.run_id) if store is not None else None
        return describe_renewal(before) if before is None or before.run_id != self._entry.run_id else ""

    def _find_outcome(self, answer: Answer | None) -> TurnOutcome:
        reason = self._get_reason()
        if reason in {"late", "stopped"}:
            return "late" if reason == "late" else "stopped"
        return _OUTCOMES.get(answer.route, "answered") if answer is not None else "failed"

    async def _keep_record(
        self, answer: Answer, why: str, goal: GoalOrder | None = None, *, question: str = ""
    ) -> None:
        """Record how the answer was found; if another process has the message by now, that is noticed later."""
        if answer.route == "failed" and await self._find_waiting_turn() is not None:
            return  # the permitted repliers of the previous turn must be kept
        person = self._entry.message.author
        record = self.run.make_record(answer, person=person, question=question, why=why, goal=goal)
        try:
            await self.run.keep(record, held=self._entry)
        except InboxError as error:  # the answer is worth showing; where it cannot be settled, all of this comes again
            log.warning("the record of an answer was not kept: %s", error)

    async def _find_freshness(self, answer: Answer) -> str:
        return neutralize(await self.run.find_freshness(answer), self._deps.hosts)

    async def _find_waiting_turn(self) -> KeptTurn | None:
        return await find_waiting_turn(self._deps.records, self._deps.inbox, self._entry.conversation)


async def find_waiting_turn(records: TurnRecordStore, inbox: Inbox, conversation: str) -> KeptTurn | None:
    """Return the newest turn of a conversation if it waits for a person, and its question still exists."""
    for last in await records.list_newest(conversation, most=1):
        if last.record.route == "paused" and await inbox.is_current(conversation, last.run_id):
            return last
    return None

"""Goal runs as people in a chat meet them: proposed for a message, decided about by a person, followed to a verdict.

A proposal is a reply that waits for a person, like a plan that needs an approval. Who decides puts the message that was
proposed to back to the beginning, with the order in it; its turn works on that in the same reply.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from agent import (
    UNDECIDED,
    AgentError,
    AgentEvent,
    Answer,
    GoalRequest,
    WantedGoal,
    claim_answer,
    is_inference,
    is_verify_request,
    parse_decision,
    parse_goal_request,
)
from bot.access import AccessPolicy
from bot.errors import NotAllowed, NotProposed
from bot.messages import GoalOrder, IncomingMessage
from bot.ports import GoalRuns
from bot.questions.answer_run import AnswerQueue, continue_run
from bot.storage.inbox import Inbox, InboxEntry
from bot.storage.turn_records import KeptTurn, TurnRecord, TurnRecordStore
from indexer import IndexerError

AT_ONCE = 2  # runs in one process; each may keep a core busy
OFF = (
    "Goal runs are off here. The operator allows people to start them by naming their ids as `run` in the table "
    "[access] of citebot.toml."
)
NO_SANDBOX = "Goal runs are off here: no sandbox works on this machine. `citebot doctor` says what to install."
NOT_STARTED = "Nothing was run: it was not approved."
APPROVED = "Approved. It continues in the message with the proposal."
ABORTED = "Nothing is run."
DECIDED = "This was already decided, or its question is gone. `stop` ends a run in progress."
CHANGED = "This proposal has changed. Look at it again, and approve it by its button."
TOO_EARLY = "You wrote that before this was shown. Check it, and write it again."
NAME_IT = "There are several proposals here. To start the newest one, write `approve {name}`."
UNKNOWN_RUN = "No proposal named `{name}` is waiting. Approve the newest one by its button."
HOW_TO_DECIDE = "Write `{word}` to start it, or `abort` to drop it."
NOTHING_TO_VERIFY = "There is nothing here to verify. Write `verify` and a claim."
ONE_REPOSITORY = "A goal run works in one repository. Write which one you mean."
ASK = "Shall I start it? Press the button, react with ✅, or write `{word}` to me."
ASK_OTHERS = (
    "Anyone listed as `run` in the table [access] of citebot.toml may start it: with the button, with ✅, or by "
    "writing `{word}` to me."
)
ASK_SURFACE = "Shall it start? Anyone whom the operator has allowed to may approve it; you may abort it."

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalReply:
    """The reply to a request for a run; with an order it is a waiting proposal.

    Without one, `is_read` says that the message is answered from the code instead.
    """

    text: str
    order: GoalOrder | None = None
    model: str = ""
    is_read: bool = False

    def to_record(self, order: GoalOrder, person: str, why: str) -> TurnRecord:
        """Record a pending decision about the order."""
        return TurnRecord(
            repository=order.repository, commit=order.commit, route="paused", model=self.model, seconds=0.0,
            person=person, why=why, goal=order,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ChatGoals:
    """Proposes goal runs, and takes people's decisions about them.

    If `runs` is None, there are none in this process, and `problem` says why.
    """

    access: AccessPolicy
    inbox: Inbox
    records: TurnRecordStore
    runs: GoalRuns | None = None
    problem: str = OFF
    places: AnswerQueue = field(default_factory=lambda: AnswerQueue(AT_ONCE))

    async def reply(
        self, entry: InboxEntry, question: str, last: TurnRecord | None, repositories: Sequence[str]
    ) -> GoalReply | None:
        """Propose the run that a message wants, or give the reason why there is none; None if it wants none."""
        wanted = find_wanted_goal(question, last)
        if wanted is not None:
            word = f"approve {name_run(entry.run_id)}" if is_goal_proposed(last) else "approve"
            return await self.propose(entry.message, wanted, repositories, word)
        if self.runs is not None and last is not None and is_verify_request(question):
            return GoalReply(text=NOTHING_TO_VERIFY)
        return None

    async def propose(
        self, message: IncomingMessage, wanted: WantedGoal | GoalOrder, repositories: Sequence[str], word: str = ""
    ) -> GoalReply:
        """Propose a run, or explain why there is none; `word` approves it in text."""
        is_read = wanted.goal == "claim"  # a doubted claim can be looked up as well
        if self.runs is None:
            return GoalReply(text=self.problem, is_read=is_read)
        if len(repositories) != 1:
            return GoalReply(text=ONE_REPOSITORY)
        (repository,) = repositories
        try:
            if message.private and word:  # nobody else could approve it
                self.access.check_run(message, repository)
            proposal = await self.runs.propose(_make_request(wanted, repository))
        except (AgentError, IndexerError, NotAllowed) as error:
            return GoalReply(text=str(error), is_read=is_read)
        ask = (ASK if self.access.may_run(message, repository) else ASK_OTHERS) if word else ASK_SURFACE
        order = GoalOrder(
            goal=wanted.goal, arguments=wanted.arguments, task=wanted.task, repository=repository,
            commit=proposal.commit, message=message.id,
        )  # fmt: skip
        return GoalReply(text=f"{proposal.to_text()}\n\n{ask.format(word=word)}", order=order, model=proposal.model)

    def offer_check(self, message: IncomingMessage, question: str, answer: Answer) -> GoalOrder | None:
        """Return the claim to verify for an answer that rests on inference, if its asker may run it."""
        is_whole = answer.model is not None and answer.found and answer.repository and not answer.commits
        # A repetition of earlier text, such as a run's own output, is no claim to verify.
        is_whole = is_whole and answer.intent not in {"follow_up", "history_request"}
        if self.runs is None or not is_whole or not is_inference(question, answer.text):
            return None
        if not self.access.may_run(message, answer.repository):
            return None
        claim = claim_answer(question, answer.text)
        if claim is None:
            return None
        return GoalOrder(goal=claim.goal, arguments=claim.arguments, task=claim.task, repository=answer.repository)

    async def decide(
        self, decision: str, person: IncomingMessage, conversation: str, *, seen: str = "", named: str | None = None
    ) -> InboxEntry | None:
        """Start or abort the run proposed in a conversation, in the reply with the proposal.

        `seen` is the run of a button; words and reactions have none. `named` is the run written
        after a word, None if nothing was written. Returns None if that was decided already. Raises
        `NotAllowed` if the person may not, or may have seen an earlier proposal; the asker may
        always abort.
        """
        newest = await self.records.list_newest(conversation, most=2)
        last, run_id = (newest[0].record, newest[0].run_id) if newest else (None, "")
        if last is None or last.goal is None or not is_goal_proposed(last):
            return None
        if decision == "approve" and named is not None:
            _check_word(named, person, newest)
        if decision == "approve" or person.author != last.person:
            self.access.check_run(person, last.goal.repository)
        asked = await self.inbox.find(replace(person.key, message=last.goal.message))
        if asked is None or asked.run_id != run_id:
            return None
        # The asker could edit the message, and so the proposal, while somebody else is about to approve it.
        was_changed = bool(asked.message.edited_at) and person.author != asked.message.author
        if decision == "approve" and (seen != run_id if seen else was_changed):
            raise NotProposed(CHANGED)
        order = replace(last.goal, approver=person.author if decision == "approve" else "")
        place = replace(asked.message.place, line=person.place.line or asked.message.place.line)
        message = replace(asked.message, text=order.task, about=(order.repository,), order=order, place=place)
        log.info("a goal run: %s by %s", decision, person.author)
        return await self.inbox.revise(message, run_id=run_id)


async def remind(records: TurnRecordStore, conversation: str) -> str:
    """Say once that a proposal waits for a decision; empty if that was said already."""
    last, *before = await records.list_newest(conversation, most=2)
    if last.record.is_reminded:
        return ""
    await records.keep(last.run_id, conversation, replace(last.record, is_reminded=True))
    word = f"approve {name_run(last.run_id)}" if before and is_goal_proposed(before[0].record) else "approve"
    return f"{UNDECIDED} {HOW_TO_DECIDE.format(word=word)}"


def name_run(run_id: str) -> str:
    """Return the short name that distinguishes a run for people."""
    return run_id[:8]


def is_goal_proposed(last: TurnRecord | None) -> bool:
    """Whether the newest reply of a conversation is a waiting goal run."""
    return last is not None and last.route == "paused" and last.goal is not None


def find_wanted_goal(text: str, last: TurnRecord | None) -> WantedGoal | None:
    """Return the requested run: that of the message, or the verification offered by the previous answer."""
    offered = last.goal if last is not None and last.route != "paused" else None
    if offered is not None and (is_verify_request(text) or parse_decision(text) == "approve"):
        return WantedGoal(goal=offered.goal, arguments=offered.arguments, task=offered.task)
    return parse_goal_request(text)


async def follow_order(
    runs: GoalRuns, order: GoalOrder, entry: InboxEntry, inbox: Inbox
) -> AsyncGenerator[AgentEvent, None]:
    """Yield the events of an approved run up to its verdict, however long it takes: it has its own limits.

    A run of an earlier process is continued; nothing begins for a message that was edited or lost meanwhile.
    """
    thread = name_goal_thread(entry)

    async def begin() -> AsyncGenerator[AgentEvent, None]:
        wanted = WantedGoal(goal=order.goal, arguments=order.arguments, task=order.task)
        proposal = await runs.propose(_make_request(wanted, order.repository))
        # The approval is for a run at the commit of the proposal.
        async for event in runs.start(replace(proposal, commit=order.commit), thread=thread, run_id=entry.run_id):
            yield event

    if await inbox.begin_run(entry):
        # It may run for long, and so see many deaths of the process that others have caused.
        await inbox.excuse([entry])
        was_begun = entry.state == "running"
        events = continue_run(lambda: runs.resume(entry.run_id, thread=thread), begin) if was_begun else begin()
        async with aclosing(events) as following:
            async for event in following:
                yield event


def name_goal_thread(entry: InboxEntry) -> str:
    """Name the separate thread of a message's goal run."""
    return f"{entry.conversation}:goal:{entry.run_id}"


async def forget_goal(runs: GoalRuns, thread: str) -> None:
    """Forget a run whose verdict is shown; if that fails, it goes with idle conversations."""
    try:
        await runs.forget(thread)
    except AgentError as error:
        log.warning("a goal run that is over was not forgotten: %s", error)


def _check_word(named: str, person: IncomingMessage, newest: Sequence[KeptTurn]) -> None:
    """Raise `NotAllowed` if an `approve` may mean another proposal than the newest one."""
    last, *before = newest
    if named and named != name_run(last.run_id):
        raise NotAllowed(UNKNOWN_RUN.format(name=named))
    if not named and before and is_goal_proposed(before[0].record):
        raise NotAllowed(NAME_IT.format(name=name_run(last.run_id)))
    if person.sent_at < last.at:
        raise NotAllowed(TOO_EARLY)


def _make_request(wanted: WantedGoal | GoalOrder, repository: str) -> GoalRequest:
    return GoalRequest(goal=wanted.goal, arguments=wanted.arguments, task=wanted.task, repository=repository)

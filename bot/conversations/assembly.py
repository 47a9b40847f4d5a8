"""Opens the conversation core: its database, its policies and the agent that answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field

from agent import Database
from bot.access import AccessPolicy, Manners
from bot.clock import Clock, SystemClock
from bot.conversations.commands import CommandHandlers
from bot.conversations.dispatcher import Conversations
from bot.conversations.goal_turns import OFF, ChatGoals
from bot.conversations.turn_deps import DailyNotices, TurnDeps
from bot.messages import IncomingMessage
from bot.monitoring.observer import ConversationObserver, NullObserver
from bot.ports import Answerer, AnswerJobs, GoalRuns, RefSource, Repositories
from bot.questions.answer_run import AnswerQueue
from bot.questions.reuse import AnswerReuse
from bot.repositories.choice_store import ChoiceStore
from bot.repositories.chooser import RepositoryChooser
from bot.repositories.names import RepositoryProfile
from bot.repositories.ref_chooser import RefChooser
from bot.settings import LivingTable, PriceTable
from bot.storage.answer_records import AnswerRecordStore, ShareableAnswerStore, SharedAnswerStore
from bot.storage.inbox import Inbox, make_process_name
from bot.storage.living_answers import LivingAnswerStore
from bot.storage.rate_limits import QuestionCounter, QuestionLimits
from bot.storage.threads import ThreadStore
from bot.storage.turn_records import TurnRecordStore


@dataclass(frozen=True, kw_only=True)
class ChatPolicy:
    """The operator's decisions: access, limits, concurrency, and the hosts that answers may link to.

    `max_concurrent` is 0 for a process that answers nothing itself. `signs` are the profiles of the
    repositories by name, `manners` the reply modes of channels by id; `mask` removes secrets from
    text, and `mask_question` names from a kept question. `goals_problem` gives the reason if there
    are no goal runs.
    """

    hosts: Collection[str] = ()
    access: AccessPolicy = field(default_factory=AccessPolicy)
    limits: QuestionLimits = field(default_factory=QuestionLimits)
    max_concurrent: int = 8
    deadline: float = 150.0
    takes_images: bool = False
    prices: Mapping[str, PriceTable] = field(default_factory=dict)
    signs: Mapping[str, RepositoryProfile] = field(default_factory=dict)
    manners: Mapping[str, Manners] = field(default_factory=dict)
    mask: Callable[[str], str] = str
    mask_question: Callable[[str], str] | None = None
    goals_problem: str = OFF
    versions: Mapping[str, str] = field(default_factory=dict)
    living: LivingTable = field(default_factory=LivingTable)
    writer: str = ""  # the model that writes the answers


@asynccontextmanager
async def open_conversations(
    agent: Answerer,
    repositories: Repositories,
    *,
    store: AbstractAsyncContextManager[Database],
    policy: ChatPolicy,
    clock: Clock | None = None,
    owner: str = "",
    observer: ConversationObserver | None = None,
    jobs: AnswerJobs | None = None,
    goals: GoalRuns | None = None,
    refs: Mapping[str, RefSource] | None = None,
) -> AsyncIterator[Conversations]:
    """Open the database, and the conversations over it; they answer once they are opened themselves.

    With `jobs`, other processes answer too; with `goals`, approved runs are executed here. `refs`
    are the repositories that can be read at other commits.
    """
    clock = clock or SystemClock()
    async with store as database:
        inbox = Inbox(database, clock, owner or make_process_name())
        threads = ThreadStore(database, clock)
        records = TurnRecordStore(database, clock, mask_question=policy.mask_question)
        shareable, living = ShareableAnswerStore(database, clock), LivingAnswerStore(database, clock)
        answers = AnswerRecordStore(database, clock, mask=policy.mask)
        reuse = AnswerReuse(
            answers=answers, repositories=repositories, access=policy.access, versions=policy.versions,
            writer=policy.writer, mask=policy.mask, now=clock.now,
        )  # fmt: skip
        counter, choices = QuestionCounter(database, clock, policy.limits), ChoiceStore(database, clock)
        await counter.forget_old()

        async def stop(conversation: str, asked_like: IncomingMessage | None) -> bool:
            return await conversations.stop(conversation, asked_like=asked_like)

        chooser = RepositoryChooser(
            repositories=repositories, access=policy.access, threads=threads, ledger=choices, signs=policy.signs,
            clock=clock,
        )  # fmt: skip
        commands = CommandHandlers(
            repositories=repositories, agent=agent, threads=threads, records=records, chooser=chooser,
            shareable=shareable, living=living, access=policy.access, clock=clock, stop=stop,
        )  # fmt: skip
        chat_goals = ChatGoals(
            access=policy.access, inbox=inbox, records=records, runs=goals, problem=policy.goals_problem
        )
        deps = TurnDeps(
            open_agent=lambda: nullcontext(agent), agent=agent, repositories=repositories,
            queue=AnswerQueue(policy.max_concurrent), inbox=inbox, commands=commands, chooser=chooser, records=records,
            answers=answers, reuse=reuse if policy.living.reuse else None, versions=policy.versions,
            shareable=shareable, living=living if policy.living.days else None,
            shared=SharedAnswerStore(database, clock), access=policy.access, counter=counter, clock=clock,
            notices=DailyNotices(clock), goals=chat_goals,
            hosts=frozenset(policy.hosts), deadline=policy.deadline, takes_images=policy.takes_images, mask=policy.mask,
            observer=observer or NullObserver(), refs=RefChooser(refs, policy.signs), prices=policy.prices,
        )  # fmt: skip
        conversations = Conversations(
            deps, threads, manners=policy.manners, max_concurrent=policy.max_concurrent, jobs=jobs
        )
        yield conversations

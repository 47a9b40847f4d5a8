"""The runs that answer a turn: one for each repository, followed side by side to their answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from agent import AgentError, AgentEvent, UnknownRun
from bot.messages import MessageContent
from bot.ports import Answerer
from bot.replies.answer_content import AnswerSection, AnswerSections, StreamingAnswer
from bot.repositories.choice import RepositoryChoice, label_section
from bot.storage.inbox import InboxEntry
from indexer import IndexerError

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnRun:
    """One run of a turn: its id, and the question with its conversation and its repository."""

    id: str
    conversation: str
    repository: str
    question: str


def plan_runs(entry: InboxEntry, route: RepositoryChoice, question: str) -> Sequence[TurnRun]:
    """Plan the runs of a turn, the same ones after a restart.

    What is asked about several repositories has a conversation for each of them: an answer about one must not be taken
    for one about another.
    """
    names = route.repositories
    if len(names) == 1:
        return [TurnRun(id=entry.run_id, conversation=entry.conversation, repository=names[0], question=question)]
    return [
        TurnRun(
            id=f"{entry.run_id}.{number}",
            conversation=label_section(entry.conversation, name),
            repository=name,
            question=question,
        )
        for number, name in enumerate(names)
    ]


def make_sections(
    runs: Sequence[TurnRun], entry: InboxEntry, route: RepositoryChoice, hosts: Collection[str]
) -> AnswerSections:
    """Begin a section for each run."""
    sections = [AnswerSection(repository=run.repository, draft=StreamingAnswer(run.id, hosts)) for run in runs]
    return AnswerSections(sections, run_id=entry.run_id, remark=route.remark, hosts=hosts)


class RunFollower:
    """Lets sections follow their runs; `show` is called with what makes the content whenever that changes."""

    def __init__(
        self, agent: Answerer, sections: AnswerSections, show: Callable[[Callable[[], MessageContent]], None]
    ) -> None:
        self._agent = agent
        self._sections = sections
        self._show = show

    async def follow(self, runs: Sequence[TurnRun], *, recovered: bool) -> None:
        """Follow all runs to their ends; where one of several fails, its section says why."""
        sections = list(self._sections)
        if len(runs) == 1:
            await self._follow(runs[0], sections[0], recovered=recovered)
            return
        async with asyncio.TaskGroup() as group:
            for run, section in zip(runs, sections, strict=True):
                group.create_task(self._follow_beside(run, section, recovered=recovered))

    async def _follow_beside(self, run: TurnRun, section: AnswerSection, *, recovered: bool) -> None:
        try:
            await self._follow(run, section, recovered=recovered)
        except (AgentError, IndexerError) as error:
            log.info("%s was not answered about: %s", run.repository, error)
            section.failure = str(error)
        self._show(self._sections.partial_content)

    async def _follow(self, run: TurnRun, section: AnswerSection, *, recovered: bool) -> None:
        async with aclosing(self._stream_events(run, recovered=recovered)) as events:
            async for event in events:
                if section.take(event) and event.kind != "answer":
                    self._show(self._sections.partial_content)

    async def _stream_events(self, run: TurnRun, *, recovered: bool) -> AsyncGenerator[AgentEvent, None]:
        """Take the run up again where an earlier process left it; where it had not begun, begin it."""
        if recovered:
            try:
                async for event in self._agent.resume(run.id):
                    yield event
            except UnknownRun:
                log.info("the run of a message had not begun")
            else:
                return
        events = self._agent.ask(run.question, thread=run.conversation, repository=run.repository, run_id=run.id)
        async for event in events:
            yield event

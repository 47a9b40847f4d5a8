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
from bot.replies.streaming_answer import AnswerSection, AnswerSections, StreamingAnswer
from bot.repositories.choice import RepositoryChoice, label_section
from bot.storage.inbox import InboxEntry
from indexer import IndexerError

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnRun:
    """One run of a turn: what it is called, and what is asked in which conversation about which repository."""

    id: str
    conversation: str
    repository: str
    question: str


def plan_runs(entry: InboxEntry, route: RepositoryChoice, question: str) -> Sequence[TurnRun]:
    """Plan the runs of a turn, the same ones after a restart.

    What is asked about several repositories is remembered apart for each of them: one answer must not be taken for
    something that was said about the other.
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
    begun = [AnswerSection(repository=run.repository, draft=StreamingAnswer(run.id, hosts)) for run in runs]
    return AnswerSections(begun, run_id=entry.run_id, remark=route.remark, hosts=hosts)


class RunFollower:
    """Lets sections follow their runs; `show` is told what makes the content whenever that would be another one."""

    def __init__(
        self, agent: Answerer, sections: AnswerSections, show: Callable[[Callable[[], MessageContent]], None]
    ) -> None:
        self._agent = agent
        self._sections = sections
        self._show = show

    async def follow(self, runs: Sequence[TurnRun], *, recovered: bool) -> None:
        """Follow all runs to their ends; what fails one of several is told in its section."""
        sections = list(self._sections)
        if len(runs) == 1:
            await self._follow(runs[0], sections[0], recovered=recovered)
            return
        async with asyncio.TaskGroup() as group:
            for run, section in zip(runs, sections, strict=True):
                group.create_task(self._beside(run, section, recovered=recovered))

    async def _beside(self, run: TurnRun, section: AnswerSection, *, recovered: bool) -> None:
        try:
            await self._follow(run, section, recovered=recovered)
        except (AgentError, IndexerError) as error:
            log.info("%s was not answered about: %s", run.repository, error)
            section.failure = str(error)
        self._show(self._sections.partial_content)

    async def _follow(self, run: TurnRun, section: AnswerSection, *, recovered: bool) -> None:
        async with aclosing(self._events(run, recovered=recovered)) as events:
            async for event in events:
                if section.take(event) and event.kind != "answer":
                    self._show(self._sections.partial_content)

    async def _events(self, run: TurnRun, *, recovered: bool) -> AsyncGenerator[AgentEvent, None]:
        """Take the run up again where an earlier process left it; where it had not begun, begin it."""
        if recovered:
            try:
                async for event in self._agent.resume(run.id):
                    yield event
            except UnknownRun:
                log.info("the run of a message had not begun")
            else:
                return
        asked = self._agent.ask(run.question, thread=run.conversation, repository=run.repository, run_id=run.id)
        async for event in asked:
            yield event

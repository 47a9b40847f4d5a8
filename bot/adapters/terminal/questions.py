"""Questions at the terminal: followed on the screen, answered with a note on unread changes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bot.errors import AnswerFailed, SettingsError
from bot.markdown import to_one_line
from bot.questions.answer_run import AnswerQueue, AnswerRun, RunDeps
from bot.questions.descriptions import describe_ref_read
from bot.repositories.choice_store import RepositoryChoice
from bot.repositories.local_repositories import LocalRepositories
from bot.repositories.names import RepositoryProfile, find_named
from bot.repositories.ref_chooser import RefChooser
from bot.repositories.refresh import PATIENCE_SECONDS

if TYPE_CHECKING:
    from agent import Answer
    from bot.adapters.terminal.display import Terminal
    from bot.adapters.terminal.trace import RunTrace
    from bot.ports import Answerer, RefSource, RepositoryIndex
    from bot.settings import PriceTable
    from bot.storage.turn_records import TurnRecord


SAME_NAME = "Two of these repositories have the same name. Set a different `name` for one of them in citebot.toml."


@dataclass(frozen=True, kw_only=True)
class ShownAnswer:
    """A shown answer, and how it was found; `dollars` is None if a model's price is unknown."""

    answer: Answer
    record: TurnRecord
    dollars: float | None


@dataclass(frozen=True, kw_only=True)
class TerminalQuestions:
    """Asks about all of the repositories together, skipping unreadable ones."""

    terminal: Terminal
    indexes: Sequence[RepositoryIndex]
    open_agent: Callable[[Mapping[str, RepositoryIndex]], AbstractAsyncContextManager[Answerer]]
    refs: Mapping[str, RefSource] = field(default_factory=dict)
    remembers: bool = True
    prices: Mapping[str, PriceTable] = field(default_factory=dict)

    async def ask(
        self,
        question: str,
        *,
        conversation: str,
        last: TurnRecord | None = None,
        at: str = "",
        trace: RunTrace | None = None,
        is_shown: bool = True,
    ) -> ShownAnswer:
        """Answer a question, and show it unless a program reads it; `AnswerFailed` if it has no answer.

        It is read `at` a branch, tag, commit or pull request, else at the one that it names, or
        `last` was read at.
        """
        by_name = {(await index.status()).repository: index for index in self.indexes}
        if len(by_name) < len(self.indexes):
            raise SettingsError(SAME_NAME)
        refs, repositories = RefChooser(self.refs), LocalRepositories(by_name, self.terminal, self.refs)
        deps = RunDeps(
            open_agent=partial(self.open_agent, by_name), repositories=repositories, queue=AnswerQueue(1), refs=refs,
            remembers=self.remembers, prices=self.prices,
        )  # fmt: skip
        run = AnswerRun(deps, run_id=uuid.uuid4().hex, conversation=conversation)
        choice = RepositoryChoice(repositories=tuple(by_name), why="", question=_leave_out_names(question, [*by_name]))
        try:
            await run.ensure_indexed(choice.repositories, lambda *_: None)  # each shows on its own how far it is
            chosen = await run.choose_ref(choice, last, at=at)
            with self.terminal.show_indexing(patience=PATIENCE_SECONDS) as show:
                held = await run.hold(lambda _, step, __: show(step))
            root = await self._find_tree(run)
            with self.terminal.watch(trace, root) as take:
                answer = await run.follow(chosen.question, held, take)
        finally:
            await repositories.close()
        if answer.route == "failed":
            raise AnswerFailed(answer.text)
        if chosen.remark:
            self.terminal.note(chosen.remark)
        if is_shown:
            self.terminal.show(answer, root)
            await self._note_unread(run, answer, by_name)
        return ShownAnswer(answer=answer, record=run.make_record(answer), dollars=run.stats.dollars)

    async def _find_tree(self, run: AnswerRun) -> Path | None:
        """Find the working tree for file links; None if links would not show."""
        is_seen = self.terminal.out.is_terminal or self.terminal.err.is_terminal
        is_head = run.ref is None and len(self.indexes) == 1
        return Path((await self.indexes[0].status()).path) if is_seen and is_head else None

    async def _note_unread(self, run: AnswerRun, answer: Answer, by_name: Mapping[str, RepositoryIndex]) -> None:
        """List the cited files with uncommitted changes, and the missing repositories.

        For a repository read at a ref, say that instead.
        """
        note = self.terminal.note
        if run.ref is not None:
            if answer.commit:
                status = await by_name[answer.repository].status()
                note(f"{describe_ref_read(answer.repository, answer.commit, run.ref, status)}.")
            return
        for name, commit in answer.read_at.items():
            cited = sorted({one.path for one in answer.citations if one.path and one.repository in {"", name}})
            uncommitted = (await by_name[name].drift(commit, cited)).uncommitted if cited else ()
            if uncommitted:
                label = f"{name}/" if answer.commits else ""
                paths = ", ".join(to_one_line(f"{label}{path}") for path in uncommitted)
                note(f"Not read: the uncommitted changes in {paths}.")
        for name, reason in answer.missing.items():
            note(f"{to_one_line(name)} is missing from this answer: {to_one_line(reason)}")


def _leave_out_names(question: str, names: Sequence[str]) -> str:
    """Drop the repositories' names from a question ("across shop and website, ..."), as in a chat."""
    naming = find_named(question, dict.fromkeys(names, RepositoryProfile()))
    return naming.question if set(naming.repositories) == set(names) else question

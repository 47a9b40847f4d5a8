"""Questions of one person through a surface, with the gates that chats have: access, limits, masking, a place."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Literal

from agent import QUESTION_TOO_LONG, AgentEvent, fit_text
from bot.errors import LimitReached, NotAllowed, UnknownRepository
from bot.messages import Place
from bot.surfaces.answer_run import AnswerRun, AskedQuestion, QuestionDeps, Watch
from bot.surfaces.ask_events import AskEvent, NotAnswered, RunBegun
from bot.surfaces.principals import Principal
from bot.surfaces.visible_code import explain_choice

Surface = Literal["mcp", "api", "web"]

NO_QUESTION = "The question is empty. Ask about the code."
NO_CONVERSATION = "This names no conversation. Leave it out, or give the one that an answer came with."
_CONVERSATION = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _watch_nothing(_: AgentEvent) -> None:
    """Take no notice."""


class Questions:
    """Asks the agent on behalf of people; each may continue with, and stop, what is their own."""

    def __init__(self, deps: QuestionDeps) -> None:
        self._deps = deps
        self._running: dict[str, tuple[str, AnswerRun]] = {}  # whose, by its id

    async def ask(
        self,
        principal: Principal,
        question: str,
        *,
        surface: Surface,
        repository: str | None = None,
        at: str | None = None,
        conversation: str | None = None,
        background: Sequence[str] = (),
        watch: Watch = _watch_nothing,
    ) -> AsyncGenerator[AskEvent, None]:
        """Yield what happens up to the answer. Where the first event is `NotAnswered`, nothing was begun.

        `repository` is the one that is meant, and `at` the branch, tag, commit or pull request that it is read at, else
        the question or its conversation tells. `conversation` is a name
        that the asker gives it; without one the question begins a new one. `background` are lines of `quote_line`:
        what was said before, where no conversation remembers it. `watch` is called with all that the agent does.
        Closing the iterator stops the run.
        """
        try:
            admitted = await self._admit(principal, question, surface, repository, conversation)
            asked = replace(admitted, background=tuple(background), at=(at or "").strip())
        except NotAllowed as error:
            yield refuse(error)
            return
        except ValueError as error:
            yield NotAnswered(reason="bad_question", text=str(error))
            return
        run = AnswerRun(asked, self._deps, watch)
        self._running[asked.run_id] = principal.key, run
        try:
            yield RunBegun(run_id=asked.run_id, conversation=asked.label)
            async with aclosing(run.stream()) as events:
                async for event in events:
                    yield event
        finally:
            del self._running[asked.run_id]

    async def stop(self, principal: Principal, run_id: str) -> bool:
        """End a run of a person's own; False where there is none."""
        owner, run = self._running.get(run_id, ("", None))
        if run is None or owner != principal.key:
            return False
        await run.stop()
        return True

    async def forget(self, principal: Principal, conversation: str, *, surface: Surface) -> None:
        """Forget a conversation of a person's own, once its running question is over."""
        if not _CONVERSATION.fullmatch(conversation):
            raise ValueError(NO_CONVERSATION)
        key = name_conversation(surface, principal, conversation)
        async with self._deps.open_agent() as agent:
            await agent.forget(key)
        if self._deps.records is not None:
            await self._deps.records.forget(key)

    async def _admit(
        self, principal: Principal, question: str, surface: Surface, repository: str | None, conversation: str | None
    ) -> AskedQuestion:
        """Count a question, and check that it may be asked: `NotAllowed`, or `ValueError` where it is none."""
        deps = self._deps
        text = fit_text(question)
        about = () if repository is None else (repository,)
        message = principal.write(deps.mask(text or ""), about=about)
        if deps.counter is not None:  # also what is refused: that takes a reply, too
            await deps.counter.count(message)
        if text is None:
            raise ValueError(QUESTION_TOO_LONG)
        if not text.strip():
            raise ValueError(NO_QUESTION)
        if conversation is not None and (not deps.remembers or not _CONVERSATION.fullmatch(conversation)):
            raise ValueError(NO_CONVERSATION)
        deps.router.check(message)
        visible = deps.access.list_visible(message, deps.repositories.list_names())
        if repository is not None and repository not in visible:
            raise UnknownRepository(explain_choice(repository, visible))
        label = conversation or uuid.uuid4().hex
        return AskedQuestion(
            message=message,
            conversation=name_conversation(surface, principal, label),
            run_id=uuid.uuid4().hex,
            surface=surface,
            label=label if deps.remembers else "",
        )


def name_conversation(surface: str, principal: Principal, label: str) -> str:
    """Name a conversation so that nobody else's can be meant: `mcp:slack:U0123:LABEL`."""
    return Place(platform=surface, workspace=principal.platform, channel=principal.person, thread=label).key()


def refuse(error: NotAllowed) -> NotAnswered:
    """Return what is said of a question that may not be asked."""
    if isinstance(error, LimitReached):
        return NotAnswered(reason="limit", text=str(error), retry_after=error.retry_after)
    is_unknown = isinstance(error, UnknownRepository)
    return NotAnswered(reason="unknown_repository" if is_unknown else "not_allowed", text=str(error))

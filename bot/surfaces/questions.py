"""Questions of one person through a surface, with the gates that chats have: access, limits, masking, a place."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from agent import QUESTION_TOO_LONG, AgentEvent, fit_text
from bot.errors import BadQuestion, UnknownRepository
from bot.living.edits import describe_renewal
from bot.messages import Place
from bot.questions.answer_run import QuestionDeps, TakeEvent
from bot.storage.living_answers import LivingAnswer
from bot.surfaces.answer_states import AnswerState, read_state
from bot.surfaces.asked_run import AskedQuestion, AskedRun
from bot.surfaces.principals import Principal
from bot.surfaces.visible_code import explain_choice

Surface = Literal["mcp", "api", "web"]

NO_QUESTION = "The question is empty. Ask about the code."
NO_CONVERSATION = "There is no such conversation. Leave it out, or send the `conversation` of an answer."
_CONVERSATION = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _watch_nothing(_: AgentEvent) -> None:
    """Take no notice."""


class Questions:
    """Asks the agent on behalf of people; each may continue with, and stop, what is their own."""

    def __init__(self, deps: QuestionDeps) -> None:
        self._deps = deps
        self._running: dict[str, tuple[str, AskedRun]] = {}  # whose, by its id

    def begin(
        self,
        principal: Principal,
        question: str,
        *,
        surface: Surface,
        repository: str | None = None,
        at: str | None = None,
        conversation: str | None = None,
        background: Sequence[str] = (),
        remark: str = "",
        anew: bool = False,
        watch: TakeEvent = _watch_nothing,
    ) -> AskedRun:
        """Start a question, which runs on its own. If its first event is `NotAnswered`, it was refused.

        `repository` is the one that is meant, and `at` the branch, tag, commit or pull request that it is read at, else
        the question or its conversation tells. `conversation` is a name that the asker gives it; without one the
        question begins a new one. `background` are lines of `quote_line`: what was said before, where no conversation
        remembers it. `remark` comes before the answer; what is asked `anew` gets no
        earlier answer. `watch` is called with all that the agent does.
        """
        text, run_id, label = fit_text(question), uuid.uuid4().hex, conversation or uuid.uuid4().hex
        problem = QUESTION_TOO_LONG if text is None else NO_QUESTION * (not text.strip())
        if conversation is not None and not (self._deps.remembers and _CONVERSATION.fullmatch(conversation)):
            problem = problem or NO_CONVERSATION
        about = () if repository is None else (repository,)
        asked = AskedQuestion(
            message=replace(principal.write(self._deps.mask(text or ""), about=about), anew=anew),
            conversation=name_conversation(surface, principal, label),
            run_id=run_id,
            label=label if self._deps.remembers else "",
            background=tuple(background),
            at=(at or "").strip(),
            remark=remark,
        )
        run = AskedRun(surface, partial(self._admit, asked, problem), self._deps, watch)
        self._running[run_id] = principal.key, run
        run.task.add_done_callback(lambda _: self._running.pop(run_id))
        return run

    async def stop(self, principal: Principal, run_id: str) -> bool:
        """End a run of a person's own; False if there is none."""
        owner, run = self._running.get(run_id, ("", None))
        if run is None or owner != principal.key:
            return False
        await run.stop()
        return True

    async def find_state(self, principal: Principal, run_id: str) -> AnswerState | None:
        """Return the state of an answer; None where it is not followed, or a person may not ask about it now."""
        answer = await self._find_living(principal, run_id)
        return await read_state(self._deps.living, answer, self._deps.hosts) if self._deps.living and answer else None

    async def describe_renewal(self, principal: Principal, run_id: str) -> str:
        """Describe the changes since an earlier answer, for a renewed one; empty if there are none."""
        return describe_renewal(await self._find_living(principal, run_id))

    async def _find_living(self, principal: Principal, run_id: str) -> LivingAnswer | None:
        living, message = self._deps.living, principal.write()
        answer = await living.find(run_id) if living is not None else None
        if answer is None or answer.run_id != run_id:
            return None
        visible = self._deps.access.list_visible(message, self._deps.repositories.list_names())
        return answer if answer.commits.keys() <= set(visible) else None

    async def _admit(self, asked: AskedQuestion, problem: str) -> AskedQuestion:
        """Count a question, and check that it may be asked: `NotAllowed`, or `BadQuestion` where it is none."""
        deps, message = self._deps, asked.message
        if deps.counter is not None:  # also what is refused: that takes a reply, too
            await deps.counter.count(message)
        if problem:
            raise BadQuestion(problem)
        deps.chooser.check(message)
        visible = deps.access.list_visible(message, deps.repositories.list_names())
        for repository in message.about:
            if repository not in visible:
                raise UnknownRepository(explain_choice(repository, visible))
        return asked


def name_conversation(surface: str, principal: Principal, label: str) -> str:
    """Name a conversation so that nobody else's can be meant: `mcp:slack:U0123:LABEL`."""
    return Place(platform=surface, workspace=principal.platform, channel=principal.person, thread=label).key()

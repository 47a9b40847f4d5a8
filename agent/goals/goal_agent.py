"""The interface of goal runs: a proposal first, then a stream of events, the last of them the answer."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent.errors import AgentError, CheckpointError, CheckpointOvertaken, GoalUnreachable
from agent.events import AgentEvent, AsyncEventBus, EventKind
from agent.goals.goal import (
    LONGEST_TASK,
    MAX_ITERATIONS,
    Goal,
    GoalDeps,
    GoalProposal,
    GoalRequest,
    GoalState,
    read_stored_changes,
)
from agent.goals.goal_graph import GoalRun, GoalRunner
from agent.goals.goal_nodes import NO_MODEL
from agent.goals.goal_verdict import GoalVerdict, make_verdict
from agent.goals.sandbox_tools import SANDBOX_TOOLS, make_copy_tools
from agent.goals.workspace import CommandRecord, open_workspace
from agent.limits import Budget, TokenUsage, TurnLimits
from agent.persistence.evidence_store import EvidenceStore
from agent.ports import Answer, Citation, CodeLibrary, CodeSearch, Deps, ModelSource, ToolMenu
from agent.prompts.answer_prompts import make_nonce
from agent.runs.run_tasks import RunTasks
from agent.runs.turn_answers import make_unanswered
from agent.sandbox.sandbox import Sandbox, SandboxLimits
from agent.sandbox.working_copy import WorkingCopy
from agent.text.escaping import format_code_span
from agent.text.storable import MaskedValues, make_storable
from indexer.errors import IndexerError

if TYPE_CHECKING:
    from agent.persistence.conversation_saver import ConversationSaver
    from agent.persistence.evidence_store import RunClaim

GOAL_LIMITS = TurnLimits(seconds=1800.0, tokens=1_000_000, calls=100)

log = logging.getLogger(__name__)


class GoalAgent:
    """Works towards goals in the repositories of a library, each run in a separate thread.

    `open_copy` makes a working copy of a repository at a commit, by their names; `goals` makes a
    goal of its name and arguments.
    """

    def __init__(
        self,
        library: CodeLibrary,
        saver: ConversationSaver,
        redact: Callable[[str], str],
        *,
        sandbox: Sandbox,
        open_copy: Callable[[str, str], AbstractAsyncContextManager[WorkingCopy]],
        goals: Callable[[str, Mapping[str, Any]], Goal[Any]],
        tools: ToolMenu,
        models: ModelSource,
        limits: TurnLimits = GOAL_LIMITS,
        sandbox_limits: SandboxLimits | None = None,
        events: AsyncEventBus | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.events = events if events is not None else AsyncEventBus()
        self._library = library
        self._saver = saver
        self._redact = redact
        self._sandbox = sandbox
        self._open_copy = open_copy
        self._goals = goals
        self._tools = tools
        self._copy_tools = make_copy_tools()
        self._models = models
        self._limits = limits
        self._sandbox_limits = sandbox_limits or SandboxLimits()
        self._runner = GoalRunner(saver)
        self._evidence = EvidenceStore(saver)
        self._tasks = RunTasks(self.events, clock)

    async def propose(self, request: GoalRequest) -> GoalProposal:
        """Describe a possible run; nothing runs. Raises `GoalUnreachable` if it cannot succeed."""
        goal = self._goals(request.goal, request.arguments)
        if not request.task.strip() or not 1 <= request.max_iterations <= MAX_ITERATIONS:
            raise GoalUnreachable(f"Say what you want, in 1 to {MAX_ITERATIONS} iterations.")
        main = self._models.make_turn_models(Budget(self._limits), _ignore).main
        if main is None:
            raise GoalUnreachable(NO_MODEL)
        code = await self._library.pin(request.repository)
        return GoalProposal(
            request=request,
            repository=code.repository,
            commit=code.commit.sha,
            condition=goal.condition,
            command=self._redact(goal.describe_command()),
            model=main.name,
            mechanism=self._sandbox.mechanism,
            limits=self._limits,
            sandbox_limits=self._sandbox_limits,
        )

    async def start(
        self, proposal: GoalProposal, *, thread: str, run_id: str | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Start an approved proposal in an exclusive thread; the last event has the answer.

        A failure ends in an `error` event and an answer with the route `failed`; the routes
        `paused` and `stopped` mean that a run waits for a person or was ended. Before the answer, a
        `goal_end` event has the `GoalVerdict`. Raises `CheckpointOvertaken` once another process
        has continued the run.
        """
        name = run_id or uuid.uuid4().hex
        run = GoalRun(
            state=self._make_initial_state(proposal, name),
            repository=proposal.repository,
            commit=proposal.commit,
            is_new=True,
        )

        async def begin() -> GoalRun:
            return run

        async with aclosing(self._tasks.stream(name, thread, partial(self._take, name, thread, begin))) as events:
            async for event in events:
                yield event

    async def resume(self, run_id: str, *, thread: str, reply: str | None = None) -> AsyncGenerator[AgentEvent, None]:
        """Continue an interrupted run, or one that waits for a person; the events are those of `start`.

        A finished run gives its verdict again. Raises `UnknownRun` if there is nothing to continue.
        """

        async def take(find: Callable[[], Awaitable[GoalRun]]) -> Answer:
            async def begin() -> GoalRun:
                run = await find()
                return replace(run, reply=reply[:200]) if reply is not None and run.request is not None else run

            return await self._take(run_id, thread, begin)

        find = partial(self._find_run, run_id, thread)
        resumed = self._tasks.resume(run_id, thread, find, take, noun="goal run", remedy="Propose it again.")
        async with aclosing(resumed) as events:
            async for event in events:
                yield event

    async def stop(self, run_id: str) -> bool:
        """End a run within two seconds, with all its running commands; False if it is not in progress."""
        return await self._tasks.stop(run_id)

    async def forget(self, thread: str) -> None:
        """Delete everything stored for a run, once it is over."""
        async with self._tasks.lock(thread):
            await self._saver.forget(thread)

    async def _find_run(self, run_id: str, thread: str) -> GoalRun | None:
        run = await self._runner.find_run(thread)
        return run if run is not None and run.state.get("run_id") == run_id else None

    async def _take(self, run_id: str, thread: str, begin: Callable[[], Awaitable[GoalRun]]) -> Answer:
        started = time.perf_counter()
        claim: RunClaim | None = None
        try:
            claim = await self._saver.claim_run(thread)
            return await self._work(run_id, claim, await begin(), started)
        except CheckpointOvertaken:  # only another process's run could be abandoned here
            raise
        except (AgentError, IndexerError) as error:
            # Only the author of a request learns that it cannot succeed.
            log.log(
                logging.INFO if isinstance(error, GoalUnreachable) else logging.WARNING, "a goal run failed: %s", error
            )
            sentence = self._redact(str(error))
            self._tasks.publish(run_id, "error", message=sentence, error=type(error).__name__)
            await self._abandon(claim)
            return make_unanswered(sentence, "failed", seconds=time.perf_counter() - started)
        except asyncio.CancelledError:
            if self._tasks.is_stopped(run_id):
                await self._abandon(claim)
            raise

    async def _work(self, run_id: str, claim: RunClaim, run: GoalRun, started: float) -> Answer:
        """Take a run as far as it goes, in a working copy with its changes."""
        state = run.state
        goal = self._goals(state.get("goal", ""), state.get("arguments", {}))
        code = await self._library.pin(run.repository)
        code.follow(None)  # a run keeps to its commit
        deps = self._make_deps(run_id, claim, run, code)
        async with open_workspace(
            self._sandbox,
            partial(self._open_copy, code.repository, run.commit),
            CommandRecord(deps.emit, deps.redact),
            self._sandbox_limits,
            read_stored_changes(state.get("changes", [])),
        ) as workspace:
            known = {field.name: getattr(deps, field.name) for field in fields(deps)}
            deps = GoalDeps(**known, commit=run.commit, goal=goal, workspace=workspace)
            outcome = await self._runner.take(run, claim, deps)
        await self._saver.check_claim(claim)
        seconds = time.perf_counter() - started
        if outcome.request is not None:
            self._tasks.publish(run_id, "human_check_required", **outcome.request)
            return make_unanswered(_ask_person(outcome.request), "paused", code, seconds=seconds)
        verdict = make_verdict(replace(run, state=outcome.state), goal, self._redact)
        self._tasks.publish(run_id, "goal_end", verdict=verdict)
        return self._make_answer(verdict, code, seconds)

    def _make_deps(self, run_id: str, claim: RunClaim, run: GoalRun, code: CodeSearch) -> Deps:
        state = run.state

        def emit(kind: EventKind, /, iteration: int = 0, **payload: Any) -> None:
            self._tasks.publish(run_id, kind, iteration, **payload)

        budget = Budget(self._limits)
        if (spent := state.get("usage")) is not None:
            budget.calls = spent["calls"]
            budget.spend(TokenUsage(input_tokens=spent["input_tokens"], output_tokens=spent["output_tokens"]))
        masked = MaskedValues()
        return Deps(
            code=code,
            redact=masked.watch(self._redact),
            masked=masked,
            emit=emit,
            # The index may be newer than the run's copy; then only the copy is read.
            tools=self._tools if code.commit.sha == run.commit else self._copy_tools,
            evidence=self._evidence.of(claim.thread, claim),
            budget=budget,
            models=self._models.make_turn_models(budget, emit),
            asked=state.get("task", ""),
            nonce=state.get("nonce", ""),
        )

    def _make_initial_state(self, proposal: GoalProposal, run_id: str) -> GoalState:
        request = proposal.request
        return {
            "run_id": run_id,
            "goal": request.goal,
            "arguments": dict(request.arguments),
            "task": make_storable(self._redact(request.task[:LONGEST_TASK])),
            "hitl": request.hitl,
            "approved": [*SANDBOX_TOOLS],
            "nonce": make_nonce(),
            "iteration": 0,
            "max_iterations": request.max_iterations,
        }

    def _make_answer(self, verdict: GoalVerdict, code: CodeSearch, seconds: float) -> Answer:
        """Answer with the verdict; its citations have no marks, and lead to the commit of the run."""
        citations = [
            Citation(
                mark=number, path=at.path, start_line=at.start_line, end_line=at.end_line, commit=verdict.commit,
                url=code.permalink(at, verdict.commit),
            )
            for number, at in enumerate(verdict.places, 1)
        ]  # fmt: skip
        return Answer(
            text=self._redact(verdict.to_text(self._redact)),
            citations=tuple(citations),
            repository=verdict.repository,
            commit=verdict.commit,
            intent="goal",
            route="goal",
            model=verdict.model or None,
            seconds=seconds,
            found=verdict.achieved,
        )

    async def _abandon(self, claim: RunClaim | None) -> None:
        """Delete a run's checkpoints; if that fails, its author still learns how it ended.

        Leave a run that was not claimed, or now belongs to another process.
        """
        try:
            if claim is not None:
                await self._saver.forget(claim.thread, claim)
        except CheckpointError as error:
            log.warning("the clean-up after a goal run failed: %s", error)


def _ask_person(request: Mapping[str, Any]) -> str:
    changed = ", ".join(format_code_span(str(path)) for path in request["changed"]) or "nothing"
    return (
        f"Iteration {request['iteration']} of {request['max_iterations']} is over. Changed so far: {changed}. "
        "Continue? Reply `approve` or `abort`."
    )


def _ignore(kind: EventKind, /, **payload: Any) -> None:
    """Discard the events while models are examined."""

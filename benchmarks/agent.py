"""Measures what a turn costs beside its model: `python -m benchmarks.agent`.

A model of our own answers at once, so that the time of a turn is the agent's: gateway, router, search, checkpoints,
citations. Then fifty conversations ask at once a model that takes its time to the first token, of the agent and of a
graph whose nodes do nothing, which is what there is left to win. The repository is the standard library of the Python
that runs it, or `--source`; `--home` keeps the index for the next time.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import itertools
import re
import resource
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

from agent.agent import Agent
from agent.limits import Budget
from agent.persistence.checkpointer import open_saver
from agent.ports import Answer, CodeSearch, Emit, GrowingText, TurnModels
from agent.prompts.output_schemas import MAKE_PLAN
from agent.runs.graph_runner import open_graph
from agent.state import AgentState
from benchmarks.index import put_in_git
from indexer.index import CodeIndex
from indexer.secrets import redact_secrets
from indexer.secrets.cached_redactor import CachedRedactor

Form = TypeVar("Form", bound=BaseModel)

TURNS = 60
AT_ONCE = 50
ROUNDS = 5
FIRST_TOKEN = 0.3  # seconds
STEPS = ("Find where it begins", "Find who calls it", "Find its tests")
SUBJECTS = ("parse", "format", "read", "write", "open", "close", "send", "load", "cache", "error", "date", "path")
_EXHIBIT = re.compile(r"\[E1\] (\S+) lines")
_RSS_UNIT = 1e6 if sys.platform == "darwin" else 1e3  # macOS counts bytes, Linux kilobytes


@dataclass
class Tally:
    """What a model was asked: how often, and how many characters it was sent."""

    calls: int = 0
    sent: int = 0


class Model:
    """A `ChatModel` that goes one way with every question, and counts what it is sent."""

    name = "benchmark:model"
    calls_tools = True

    def __init__(self, route: str, delay: float = 0.0) -> None:
        self._route = route
        self._delay = delay
        self._subjects = itertools.cycle(itertools.permutations(SUBJECTS, 3))  # nothing is asked for twice
        self._emit: Emit | None = None
        self.tally = Tally()

    def telling(self, emit: Emit) -> Model:
        """The same model, whose calls are told to a turn."""
        model = copy.copy(self)
        model._emit = emit  # noqa: SLF001 - its own
        return model

    async def generate_structured(self, messages: Sequence[BaseMessage], form: type[Form], *, task: str) -> Form:
        """Fill in the form of a task."""
        await self._think(messages, task)
        filled: Mapping[str, Mapping[str, Any]] = {
            "input_preprocessor": {"intent": "new_question"},
            "router": {"route": self._route, "requests": [{"query": self._query()}]},
            "grade_documents": {"verdict": "enough", "relevant": [1, 2]},
            "planner": {"steps": STEPS},
            "refinery": {"decision": "FINISH"},
        }
        return form.model_validate(filled[task])

    async def reply_with_tools(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], *, task: str
    ) -> AIMessage:
        """Search in the first round of a step, sum up in the second."""
        await self._think(messages, task)
        if any(message.type == "tool" for message in messages):
            return AIMessage("It begins there, and ends there too.")
        call = {"name": "search_codebase", "args": {"query": self._query()}, "id": "1", "type": "tool_call"}
        return AIMessage("", tool_calls=[call])

    async def stream_with_tools(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[Mapping[str, Any]],
        text: GrowingText,
        *,
        task: str,
    ) -> AIMessage:
        """Have a plan made where the question is to be investigated; else write two sentences, word by word."""
        is_planned = any("Notes of the research" in str(message.content) for message in messages)
        if self._route == "investigate" and not is_planned and any(tool["name"] == MAKE_PLAN for tool in tools):
            await self._think(messages, task)
            call = {"name": MAKE_PLAN, "args": {"steps": list(STEPS)}, "id": "1", "type": "tool_call"}
            return AIMessage("", tool_calls=[call])
        await self._think(messages, task)
        shown = _EXHIBIT.search(str(messages[-1].content))
        answer = f"It begins in `{shown[1] if shown else ''}` [E1]. Nothing more was found."
        text.begin()
        for word in answer.split(" "):
            text.write(f"{word} ")
        return AIMessage(answer)

    def _query(self) -> str:
        return " ".join(next(self._subjects))

    async def _think(self, messages: Sequence[BaseMessage], task: str) -> None:
        self.tally.calls += 1
        self.tally.sent += sum(len(str(message.content)) for message in messages)
        await asyncio.sleep(self._delay)
        if self._emit is not None:
            spent = {"input_tokens": 0, "output_tokens": 0, "seconds": self._delay, "error": ""}
            self._emit("model_end", model=self.name, task=task, **spent)


@dataclass(frozen=True, kw_only=True)
class Models:
    """The source of one model."""

    model: Model

    def budget(self) -> Budget:
        """Return a fresh budget."""
        return Budget()

    def make_turn_models(self, budget: Budget, emit: Emit) -> TurnModels:
        """Return the model for everything; each of its calls is told, as those of a real one are."""
        model = self.model.telling(emit)
        return TurnModels(main=model, small=model)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of question: how it is put, and which way the model chooses for it."""

    name: str
    question: str
    route: str = "retrieve"


KINDS = (
    Kind(name="fast path", question="where is {} defined?"),
    Kind(name="search", question="in which way does the code {} when the network is slow?"),
    Kind(name="investigate", question="in which way does the code {} when the network is slow?", route="investigate"),
)


@dataclass(frozen=True, kw_only=True)
class Library:
    """One pinned repository."""

    code: CodeSearch

    async def pin(self, repository: str | None = None) -> CodeSearch:
        """Return it."""
        return self.code


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, help="unpacked source release, or its .tar.gz")
    parser.add_argument("--home", type=Path, help="where the index is kept; a temporary folder unless given")
    arguments = parser.parse_args()
    source = arguments.source or Path(sysconfig.get_path("stdlib"))
    if arguments.home is not None:
        print(table(asyncio.run(measure(source, arguments.home))))
        return
    with tempfile.TemporaryDirectory() as temporary:
        print(table(asyncio.run(measure(source, Path(temporary)))))


async def measure(source: Path, home: Path) -> dict[str, str]:
    """All figures, by name."""
    repository = home / "repository"
    if not repository.exists():
        put_in_git(source, repository, 1)
    index = await CodeIndex.open(repository, home=home)
    try:
        if not await index.is_current():
            await index.refresh()
        chunks = (await index.status()).chunks
        bench = Bench(code=await index.pin(), folder=Path(tempfile.mkdtemp(dir=home)))
        figures = {"chunks": f"{chunks:,}"}
        for kind in KINDS:
            figures |= await bench.alone(kind)
        for kind in KINDS[:2]:
            figures |= await bench.at_once(kind)
        figures |= await bench.bare()
        figures |= await bench.growth()
    finally:
        await index.aclose()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _RSS_UNIT
    return figures | {"peak memory": f"{peak:.0f} MB"}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Agents over one repository, and a folder for their databases."""

    code: CodeSearch
    folder: Path

    @asynccontextmanager
    async def _agent(self, kind: Kind, delay: float = 0.0) -> AsyncGenerator[tuple[Agent, Model]]:
        model = Model(kind.route, delay)
        async with open_saver(self.folder / f"{kind.name}-{delay:g}.db") as saver:
            yield (
                Agent(Library(code=self.code), saver, CachedRedactor(redact_secrets), models=Models(model=model)),
                model,
            )

    async def alone(self, kind: Kind) -> dict[str, str]:
        """Turns one after the other, ten in a conversation, with a model that answers at once."""
        questions = await self._questions(kind)
        async with self._agent(kind) as (agent, model):
            await _seconds(agent, questions[0], "warm up")
            model.tally.calls = model.tally.sent = 0
            rounds = [
                [await _seconds(agent, text, f"{number}-{at // 10}") for at, text in enumerate(questions)]
                for number in range(ROUNDS)
            ]
        turns = ROUNDS * len(questions)
        medians = sorted(map(statistics.median, rounds))
        return {
            f"{kind.name}: turn p50, median of {ROUNDS} rounds": _ms(statistics.median(medians)),
            f"{kind.name}: turn p50, best and worst round": f"{_ms(medians[0])}, {_ms(medians[-1])}",
            f"{kind.name}: model calls": f"{model.tally.calls / turns:.1f}",
            f"{kind.name}: tokens sent, by 4 characters": f"{model.tally.sent / turns / 4:,.0f}",
        }

    async def at_once(self, kind: Kind) -> dict[str, str]:
        """Conversations that all ask at the same time, and wait for a model."""
        questions = await self._questions(kind)
        firsts: list[list[float]] = []
        async with self._agent(kind, FIRST_TOKEN) as (agent, model):
            for number in range(ROUNDS + 1):
                model.tally.calls = 0
                asked = (_first_token(agent, questions[at], f"{number}-{at}") for at in range(AT_ONCE))
                firsts.append(sorted(await asyncio.gather(*asked)))
        ideal = FIRST_TOKEN * model.tally.calls / AT_ONCE
        p95 = statistics.median(round_[int(0.95 * AT_ONCE)] for round_ in firsts[1:])
        p50 = statistics.median(statistics.median(round_) for round_ in firsts[1:])
        return {
            f"{kind.name}: {AT_ONCE} at once, first token p50": _ms(p50),
            f"{kind.name}: {AT_ONCE} at once, first token p95": f"{_ms(p95)}, {p95 / ideal:.1f} x ideal ({_ms(ideal)})",
        }

    async def bare(self) -> dict[str, str]:
        """The same for a graph of as many nodes as a lookup goes through, which do nothing but wait for the model."""
        rounds: list[list[float]] = []
        async with open_saver(self.folder / "bare.db") as saver:
            graph = _bare_graph().compile()

            async def first_token(thread: str) -> float:
                config: RunnableConfig = {"configurable": {"thread_id": thread}}
                began = time.perf_counter()
                async with open_graph(graph, saver) as saving:
                    steps = saving.astream({"user_query": "?"}, config, durability="sync", stream_mode="updates")
                    told = [changes async for changes in steps]
                return float(next(one["waiting"]["asked_at"] for one in told if "waiting" in one)) - began

            for number in range(ROUNDS + 1):
                asked = (first_token(f"{number}-{at}") for at in range(AT_ONCE))
                rounds.append(sorted(await asyncio.gather(*asked)))
        p95 = statistics.median(round_[int(0.95 * AT_ONCE)] for round_ in rounds[1:])
        return {f"empty graph: {AT_ONCE} at once, first token p95": f"{_ms(p95)}, {p95 / FIRST_TOKEN:.1f} x ideal"}

    async def growth(self) -> dict[str, str]:
        """What ten turns of all kinds leave in the database."""
        path = self.folder / "growth.db"
        async with open_saver(path):
            pass
        empty = path.stat().st_size
        for kind in KINDS:
            questions = await self._questions(kind)
            async with open_saver(path) as saver:
                agent = Agent(
                    Library(code=self.code),
                    saver,
                    CachedRedactor(redact_secrets),
                    models=Models(model=Model(kind.route)),
                )
                for text in questions[: 4 if kind is KINDS[0] else 3]:
                    await _seconds(agent, text, "growth")
        return {"database growth of 10 turns": f"{(path.stat().st_size - empty) / 1000:.0f} KB"}

    async def _questions(self, kind: Kind) -> list[str]:
        """Put names or words of the repository into the question."""
        if kind.route == "retrieve" and kind.name == "fast path":
            hits = [hit for subject in SUBJECTS for hit in await self.code.search(subject, limit=20)]
            words = list(dict.fromkeys(symbol.qualified_name for hit in hits for symbol in hit.symbols))
        else:
            words = [" and ".join(pair) for pair in itertools.permutations(SUBJECTS, 2)]
        return [kind.question.format(word) for word in words[:TURNS]]


def _bare_graph() -> StateGraph[AgentState]:
    async def nothing(state: AgentState) -> AgentState:  # noqa: ARG001 - the graph's
        return {"intent": "new_question"}

    async def waiting(state: AgentState) -> AgentState:  # noqa: ARG001 - the graph's
        await asyncio.sleep(FIRST_TOKEN)
        return {"asked_at": time.perf_counter()}

    graph = StateGraph(AgentState)
    names = ["gateway", "preprocessor", "router", "retrieval", "waiting", "citations", "memory"]
    for name in names:
        graph.add_node(name, waiting if name == "waiting" else nothing)
    for start, end in itertools.pairwise([START, *names, END]):
        graph.add_edge(start, end)
    return graph


async def _seconds(agent: Agent, question: str, thread: str) -> float:
    began = time.perf_counter()
    answer = [event async for event in agent.ask(question, thread=thread)][-1].payload["answer"]
    took = time.perf_counter() - began
    _check(answer)
    return took


async def _first_token(agent: Agent, question: str, thread: str) -> float:
    began = time.perf_counter()
    first = 0.0
    async for event in agent.ask(question, thread=thread):
        if event.kind == "token" and not first:
            first = time.perf_counter() - began
        if event.kind == "answer":
            _check(event.payload["answer"])
    return first


def _check(answer: Answer) -> None:
    """Stop where what is measured is not what it is taken for."""
    if answer.model is None or answer.route == "failed":
        raise SystemExit(f"the model did not answer: {answer.text}")


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def table(figures: Mapping[str, str]) -> str:
    """A line a figure."""
    return "\n".join(f"{name:58}{value}" for name, value in figures.items())


if __name__ == "__main__":
    main()

"""A process that is killed while it answers: the next one continues, and nothing is done or paid for twice."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import SecretStr

from agent.conversations import open_conversations, prune_conversations
from agent.llm.models import ChatModels, open_models
from agent.ports import Answer
from tests.agent.conftest import by_forms, remembered
from tests.fakes.dying import JOINED, NODES, THREAD, WHAT, WHICH, Asking, answer_and_die, open_agent
from tests.fakes.gemini import FakeGemini, Received, Reply, calls, fills, hangs, running_gemini, says
from tests.fakes.postgres import make_database
from tests.forks import ForkServer
from tests.selection import mark_all_but

pytestmark = pytest.mark.asyncio(loop_scope="module")  # the models live in one loop

QUESTION = "how do orders get paid while the bank is busy?"
IN_PARTS = "how do orders get paid, and who sends the parcels?"  # by steps that need nothing of each other
OFF_TOPIC = "which shoes suit a summer wedding?"
FOUND = {"find_symbol": {"name": "Order.pay"}}
# Who asks a model, by how the prompt begins.
TASKS = {
    "You decide how": "router",
    "You judge which": "grade_documents",
    "You plan": "planner",
    "You research": "executor_llm",
    "You judge whether": "refinery",
    "You answer": "synthesis",
    "You check claims": "check_citations",
}
JUDGED = {
    "refinery": {"decision": "FINISH"},
    "check_citations": {"verdicts": [{"claim": 1, "verdict": "supported"}]},
}
ANSWERING = "answering"  # as synthesis, with tools


def task_of(request: Received) -> str:
    task = next(task for words, task in TASKS.items() if request.prompt.startswith(words))
    return ANSWERING if task == "synthesis" and "tools" in request.body else task


def script(request: Received) -> Reply:
    """Answer by what is asked alone: the same question asked again after a crash gets the same answer."""
    prompt = request.prompt
    match task_of(request):
        case "router":
            return fills(_way(prompt))
        case "grade_documents":
            return fills({"verdict": "rewrite", "relevant": [1], "better_query": "payment delay"})
        case "planner":
            return fills({"steps": ["Find what pays an order"]})
        case "executor_llm":
            has_called = any("functionCall" in part for said in request.body["contents"] for part in said["parts"])
            is_second = "sends a parcel" in request.prompt.partition("The step")[2]
            found = {"find_symbol": {"name": "Session.send"}} if is_second else FOUND
            return says("Order.pay pays, shop/orders.py.") if has_called else calls(*found.items())
        case "refinery" | "check_citations" as judge:
            return fills(JUDGED[judge])
        case _:
            return (
                _act(request)
                if "tools" in request.body
                # Nothing of it is in the lines, so that the claim is read again.
                else says("Money leaves every customer quietly by `pay` [E1], and it is sent again while it can be.")
            )


def _act(request: Received) -> Reply:
    """Call a tool, ask back, have a plan made, and then answer: all by function calls."""
    if "Notes of the research" in request.prompt:
        return says("The `Order` is paid through its session by `pay` [E1], and it is sent again while it can be.")
    if OFF_TOPIC in request.prompt:
        return calls(("not_about_the_code", {}))
    if IN_PARTS in request.prompt:
        return calls(("make_plan", {"steps": ["Find what pays an order", "Find what sends a parcel"]}))
    if WHAT in request.prompt:
        return calls(("make_plan", {"steps": ["Find what pays an order"]}))
    has_called = any("functionCall" in part for said in request.body["contents"] for part in said["parts"])
    return calls(("ask_person", {"question": WHICH})) if has_called else calls(("grep", {"pattern": "time.sleep"}))


def _way(prompt: str) -> dict[str, object]:
    """Search, call a tool, ask back, and then investigate."""
    if WHAT in prompt:
        return {"route": "investigate"}
    if "What tools said" in prompt:
        return {"route": "clarify", "clarification": WHICH}
    if "A query that may find more" in prompt:
        return {"route": "use_tool", "calls": [{"tool": "grep", "arguments": '{"pattern": "time.sleep"}'}]}
    return {"route": "retrieve", "requests": [{"query": "bank"}]}


@dataclass(frozen=True, kw_only=True)
class Whole:
    """What a turn comes to that nobody disturbs."""

    question: str
    answer: Answer
    calls: Counter[str]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Processes to have turns killed in, the models that the next process has, and the Gemini behind both."""

    forks: ForkServer
    gemini: FakeGemini
    models: ChatModels
    way: str = "forms"
    url: str | None = None

    async def undisturbed(self, question: str, database: Path) -> Whole:
        self._choose_way()
        async with open_agent(database, self.url, self.models) as agent:
            answer = await Asking(agent=agent, database=database, way=self.way).put(question)
        return Whole(question=question, answer=answer, calls=self.paid())

    async def killed(self, database: Path, point: str, whole: Whole) -> Counter[str]:
        """Have a turn killed and taken up again; it ends as if undisturbed. Returns what was paid for beyond that."""
        self._choose_way()
        told = (self.gemini.url, str(database), self.url, point, whole.question, self.way)
        assert await self.forks.end_of(answer_and_die, *told) == -signal.SIGKILL
        async with open_agent(database, self.url, self.models) as agent:
            answer = await Asking(agent=agent, database=database, way=self.way).take_up()
            history = await remembered(agent, THREAD)
        assert (answer.text, answer.citations) == (whole.answer.text, whole.answer.citations)
        assert [(one["question"], one["answer"]) for one in history] == [(whole.question, answer.text)]
        assert await self._count_left(database) == [1, 0, 0]
        assert self.paid() >= whole.calls
        return self.paid() - whole.calls

    async def _count_left(self, database: Path) -> list[int]:
        """How many checkpoints, writes of tasks and texts of evidence the daily sweep leaves."""
        async with open_conversations(database, SecretStr(self.url) if self.url else None) as saver:
            await prune_conversations(saver, before=0.0)
            tables = (*saver.checkpoint_tables[:2], "evidence")
            return [(await saver.rows(f"SELECT count(*) FROM {table}"))[0][0] for table in tables]

    def _choose_way(self) -> None:
        self.gemini.received.clear()
        for chat in self.models.main:
            chat.calls_tools = self.way != "forms"

    def paid(self) -> Counter[str]:
        return Counter(map(task_of, self.gemini.received))


@pytest.fixture(scope="module")
def gemini() -> Iterator[FakeGemini]:
    with running_gemini() as fake:
        fake.script = script
        yield fake


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def models(gemini: FakeGemini) -> AsyncIterator[ChatModels]:
    async with open_models(google_api_key=SecretStr("k"), google_base_url=gemini.url) as opened:
        yield by_forms(opened)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(forks: ForkServer, gemini: FakeGemini, models: ChatModels) -> Bench:
    return Bench(forks=forks, gemini=gemini, models=models)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    done = await bench.undisturbed(QUESTION, tmp_path_factory.mktemp("whole") / "c.db")
    assert set(done.calls) == set(TASKS.values())
    return done


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tools_bench(bench: Bench) -> Bench:
    return replace(bench, way="tools")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tools_whole(tools_bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    done = await tools_bench.undisturbed(QUESTION, tmp_path_factory.mktemp("whole") / "c.db")
    assert done.calls == {ANSWERING: 4, "executor_llm": 2}
    return done


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def joined_bench(bench: Bench) -> Bench:
    return replace(bench, way="joined")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def joined_whole(joined_bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    done = await joined_bench.undisturbed(QUESTION, tmp_path_factory.mktemp("whole") / "c.db")
    assert done.calls == {ANSWERING: 4, "executor_llm": 2}
    assert list(done.answer.commits) == [*JOINED]
    assert all(one.repository in JOINED for one in done.answer.citations)
    assert done.answer.citations
    return done


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def small_talk(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return await bench.undisturbed("hello!", tmp_path_factory.mktemp("whole") / "c.db")


ON_THE_WAY = [name for name in NODES if name != "out_of_scope"]
PAID = ["router", "grade_documents", "tool_executor", "planner", "executor_llm", "tool_node", "refinery", "synthesis"]
BOUNDARIES = [*(f"{name}<" for name in ON_THE_WAY), *(f"{name}>" for name in PAID), "conversation_memory>"]
LATER = ["clarify<2", "human_check<2", "router<4", "executor_llm>2"]
ASKED = [f"{name}{sign}" for name in ("asked", "replied") for sign in ("<", "+", "<2", "+2")]
BESIDE = [
    *("pin<", "pin>", "pin<2", "pin>2", "pin<3", "take<", "begin>", "take>", "take<2", "take>2", "take<3", "take>3"),
    *("human_check_required!", "human_check_required!2", "end<", "end>", "answer!", "answer!2", "answer!3"),
]
IN_A_TOOL = ["tool_start!", "tool_start!2", "tool_executor|", "tool_node|"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("point", [*BOUNDARIES, *LATER, *ASKED, *BESIDE, *IN_A_TOOL])
async def test_killed_between_nodes_nothing_is_paid_for_twice(
    bench: Bench, whole: Whole, tmp_path: Path, point: str
) -> None:
    assert await bench.killed(tmp_path / "c.db", point, whole) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("node", TASKS.values())
async def test_killed_before_an_answer_is_saved_only_that_is_asked_again(
    bench: Bench, whole: Whole, tmp_path: Path, node: str
) -> None:
    assert await bench.killed(tmp_path / "c.db", f"{node}|", whole) == {node: 1}


@pytest.mark.exhaustive
@pytest.mark.parametrize("piece", ["token!3", "token!9"])  # the first two are questions back
async def test_killed_in_mid_stream_the_answer_is_written_anew(
    bench: Bench, whole: Whole, tmp_path: Path, piece: str
) -> None:
    assert await bench.killed(tmp_path / "c.db", piece, whole) == {"synthesis": 1}


@pytest.mark.exhaustive
@pytest.mark.parametrize("point", ["out_of_scope<", "out_of_scope>"])
async def test_killed_in_small_talk_it_is_answered_once(
    bench: Bench, small_talk: Whole, tmp_path: Path, point: str
) -> None:
    assert await bench.killed(tmp_path / "c.db", point, small_talk) == {}


# The model that answers with tools

BY_TOOLS = [
    "security_gateway<",
    "input_preprocessor<",
    "router<",
    "retrieval<",
    "grade_documents<",
    *(f"setup_executor{sign}" for sign in ("<", ">", "<2", ">2", "<3", ">3", "<4", ">4")),
    *(f"executor_llm{sign}" for sign in ("<", ">", ">2", "<3", ">3", ">4", ">5", "<6", ">6")),
    *(f"tool_node{sign}" for sign in ("<", ">", "|", "<2", ">2", "|2")),
    *(f"{node}{sign}" for node in ("clarify", "planner", "human_check", "aggregate", "refinery") for sign in "<>"),
    *("router<2", "check_citations<", "check_citations>", "conversation_memory<", "conversation_memory>"),
    *("asked+", "replied+", "asked+2", "replied+2", "tool_start!", "tool_start!2", "tool_end!"),
]


@pytest.mark.parametrize("point", mark_all_but(["tool_node|"], BY_TOOLS))
async def test_killed_between_rounds_nothing_is_paid_for_twice(
    tools_bench: Bench, tools_whole: Whole, tmp_path: Path, point: str
) -> None:
    assert await tools_bench.killed(tmp_path / "c.db", point, tools_whole) == {}


AT_A_REPLY = {
    "executor_llm|": ANSWERING,
    "executor_llm|2": ANSWERING,
    "executor_llm|3": ANSWERING,
    "executor_llm|4": "executor_llm",
    "executor_llm|6": ANSWERING,
    "token!3": ANSWERING,  # the first two are questions back
}


@pytest.mark.parametrize("point", mark_all_but(["executor_llm|3"], [*AT_A_REPLY]))
async def test_killed_before_a_round_is_saved_only_that_is_asked_again(
    tools_bench: Bench, tools_whole: Whole, tmp_path: Path, point: str
) -> None:
    assert await tools_bench.killed(tmp_path / "c.db", point, tools_whole) == {AT_A_REPLY[point]: 1}


# Steps side by side, and what is not about the code


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole_in_parts(tools_bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    done = await tools_bench.undisturbed(IN_PARTS, tmp_path_factory.mktemp("whole") / "c.db")
    assert done.calls == {ANSWERING: 2, "executor_llm": 4}
    return done


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole_off_topic(tools_bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    done = await tools_bench.undisturbed(OFF_TOPIC, tmp_path_factory.mktemp("whole") / "c.db")
    assert done.calls == {ANSWERING: 1}
    return done


SIDE_BY_SIDE = [
    *(f"{node}{sign}" for node in ("planner", "human_check", "aggregate", "refinery") for sign in "<>"),
    *(f"setup_executor{sign}" for sign in ("<2", ">2", "<3", ">3")),
    *(f"executor_llm{sign}" for sign in ("<2", ">2", "<3", ">3", "<4", ">4")),
    *(f"tool_node{sign}" for sign in ("<", "|", ">")),
    *("tool_start!", "tool_start!2", "tool_end!", "tool_end!2", "asked+", "replied+"),
]


@pytest.mark.parametrize("point", mark_all_but(["tool_node|"], SIDE_BY_SIDE))
async def test_killed_between_steps_side_by_side_nothing_is_paid_for_twice(
    tools_bench: Bench, whole_in_parts: Whole, tmp_path: Path, point: str
) -> None:
    assert await tools_bench.killed(tmp_path / "c.db", point, whole_in_parts) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "point", [*(f"{node}{sign}" for node in ("executor_llm", "out_of_scope", "conversation_memory") for sign in "<>")]
)
async def test_killed_while_it_declines_nothing_is_paid_for_twice(
    tools_bench: Bench, whole_off_topic: Whole, tmp_path: Path, point: str
) -> None:
    assert await tools_bench.killed(tmp_path / "c.db", point, whole_off_topic) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("point", "has_called"), [("reply>", False), ("reply>3", True)])
async def test_killed_while_a_step_waits_for_its_reply_only_that_is_asked_again(
    tools_bench: Bench, whole_in_parts: Whole, tmp_path: Path, point: str, has_called: bool
) -> None:
    held: list[Received] = []

    def hold_one(request: Received) -> Reply:
        is_second = "The step" in request.prompt and "sends a parcel" in request.prompt.partition("The step")[2]
        if is_second and not held and ("functionResponse" in str(request.body["contents"])) == has_called:
            held.append(request)
            return hangs()
        return script(request)

    tools_bench.gemini.script = hold_one
    try:
        again = await tools_bench.killed(tmp_path / "c.db", point, whole_in_parts)
    finally:
        tools_bench.gemini.script = script

    assert len(held) == 1
    assert again == {"executor_llm": 1}


# Two repositories

ACROSS = [
    "begin>",
    "retrieval<",
    "setup_executor>",
    "tool_node|",
    "asked+",
    "executor_llm<3",
    "check_citations<",
    "end<",
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("point", ACROSS)
async def test_killed_in_a_run_about_two_repositories_nothing_is_paid_for_twice(
    joined_bench: Bench, joined_whole: Whole, tmp_path: Path, point: str
) -> None:
    assert await joined_bench.killed(tmp_path / "c.db", point, joined_whole) == {}


@pytest.mark.exhaustive
async def test_killed_in_mid_answer_about_two_repositories_it_is_written_anew(
    joined_bench: Bench, joined_whole: Whole, tmp_path: Path
) -> None:
    assert await joined_bench.killed(tmp_path / "c.db", "token!3", joined_whole) == {ANSWERING: 1}


# Conversations in Postgres: each kind of point once or twice

IN_POSTGRES = [
    *("begin>", "retrieval<", "executor_llm>", "tool_node|", "asked<", "asked+", "replied<", "replied+", "planner>"),
    *("aggregate<", "check_citations<", "end<", "end>"),
]


@pytest_asyncio.fixture(loop_scope="module")
async def postgres_bench(tools_bench: Bench) -> AsyncIterator[Bench]:
    async with make_database() as url:
        yield replace(tools_bench, url=url)


@pytest.mark.exhaustive
@pytest.mark.needs("postgres")
@pytest.mark.parametrize("point", IN_POSTGRES)
async def test_killed_over_postgres_nothing_is_paid_for_twice(
    postgres_bench: Bench, tools_whole: Whole, tmp_path: Path, point: str
) -> None:
    assert await postgres_bench.killed(tmp_path / "c.db", point, tools_whole) == {}


@pytest.mark.exhaustive
@pytest.mark.needs("postgres")
@pytest.mark.parametrize(("point", "task"), [("executor_llm|3", ANSWERING), ("executor_llm|4", "executor_llm")])
async def test_killed_over_postgres_before_a_round_is_saved_only_that_is_asked_again(
    postgres_bench: Bench, tools_whole: Whole, tmp_path: Path, point: str, task: str
) -> None:
    assert await postgres_bench.killed(tmp_path / "c.db", point, tools_whole) == {task: 1}


@pytest.mark.exhaustive
@pytest.mark.needs("postgres")
async def test_killed_over_postgres_between_steps_side_by_side_nothing_is_paid_for_twice(
    postgres_bench: Bench, whole_in_parts: Whole, tmp_path: Path
) -> None:
    assert await postgres_bench.killed(tmp_path / "c.db", "setup_executor>3", whole_in_parts) == {}

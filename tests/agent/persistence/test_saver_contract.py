"""The contract of conversation databases: free steps may wait, and a step that was paid for is never lost."""

from __future__ import annotations

import asyncio
import operator
import time
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from agent.conversations import prune_conversations
from agent.errors import CheckpointError, CheckpointOvertaken
from agent.persistence.conversation_saver import ConversationSaver
from agent.persistence.evidence_store import EvidenceStore, RunClaim
from tests.agent.persistence.conftest import OpenSaver
from tests.fakes.id_clock import IdClock
from tests.waiting import wait_for_end


def in_thread(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


CONFIG = in_thread("t")


async def put(saver: ConversationSaver, config: RunnableConfig = CONFIG, **values: Any) -> RunnableConfig:
    versions: dict[str, Any] = dict.fromkeys(values, "1")
    checkpoint: Any = {**empty_checkpoint(), "channel_values": values, "channel_versions": versions}
    return await saver.aput(config, checkpoint, {}, versions)


def id_of(config: RunnableConfig) -> str:
    return str(config["configurable"]["checkpoint_id"])


async def steps_in(open_conversations: OpenSaver, config: RunnableConfig = CONFIG) -> list[str]:
    """The checkpoints that another process would find, oldest first."""
    async with open_conversations() as other:
        return [id_of(found.config) async for found in other.alist(config)][::-1]


async def test_the_newest_checkpoint_of_a_thread_is_read_or_the_one_named(conversations: ConversationSaver) -> None:
    older = await put(conversations, text="old", many=["old"])
    newer = await put(conversations, text="new", many=["new"], nothing=None, number=1.5, flag=True)
    await put(conversations, in_thread("other"), text="theirs")

    found, named = await conversations.aget_tuple(CONFIG), await conversations.aget_tuple(older)

    assert found is not None
    assert named is not None
    assert (found.config, named.config) == (newer, older)
    assert await conversations.aget_tuple(in_thread("unknown")) is None


async def test_values_of_every_kind_come_back(conversations: ConversationSaver) -> None:
    values: dict[str, Any] = {
        "text": "漢 %s ? 'x'",
        "many": [{"a": 1, "b": ["c", None]}],
        "number": 1.5,
        "flag": True,
        "whole": 2**60,
    }
    await put(conversations, CONFIG, **values)

    found = await conversations.aget_tuple(CONFIG)

    assert found is not None
    assert found.checkpoint["channel_values"] == values


@pytest.mark.parametrize("broken", ["half of a \ud83d pair", "a \0 within"])
async def test_text_that_no_database_takes_costs_no_step(conversations: ConversationSaver, broken: str) -> None:
    await put(conversations, text=broken, many=[broken], after="whole")
    await EvidenceStore(conversations).of("t").keep("e1", broken)

    found = await conversations.aget_tuple(CONFIG)

    assert found is not None
    assert found.checkpoint["channel_values"]["after"] == "whole"
    assert found.checkpoint["channel_values"]["text"].startswith(broken[:2])


async def test_a_step_that_cost_nothing_is_written_when_the_run_is_over(open_conversations: OpenSaver) -> None:
    async with open_conversations() as saver:
        async with saver.defer_checkpoints("t"):
            for _ in range(3):
                newest = await put(saver)
            assert await steps_in(open_conversations) == []
        assert await steps_in(open_conversations) == [id_of(newest)]


async def test_a_step_that_was_paid_for_is_written_at_once(open_conversations: OpenSaver) -> None:
    async with open_conversations() as saver, saver.defer_checkpoints("t"):
        await put(saver)
        saver.flush_next("t")
        paid = await put(saver)
        await put(saver)
        assert await steps_in(open_conversations) == [id_of(paid)]


async def test_what_a_step_changed_that_was_not_written_is_there_with_the_next_that_is(
    conversations: ConversationSaver,
) -> None:
    async with conversations.defer_checkpoints("t"):
        first: Any = {**empty_checkpoint(), "channel_values": {"a": ["1"]}, "channel_versions": {"a": "1"}}
        at = await conversations.aput(CONFIG, first, {}, {"a": "1"})
        values = {"a": ["1"], "b": ["2"]}
        second: Any = {**empty_checkpoint(), "channel_values": values, "channel_versions": {"a": "1", "b": "2"}}
        await conversations.aput(at, second, {}, {"b": "2"})

    found = await conversations.aget_tuple(CONFIG)

    assert found is not None
    assert found.checkpoint["channel_values"] == {"a": ["1"], "b": ["2"]}


async def test_reading_a_thread_in_mid_run_loses_no_step_that_is_paid_for(open_conversations: OpenSaver) -> None:
    async with open_conversations() as saver, saver.defer_checkpoints("t"):
        free = await put(saver, many=["free"])
        saver.flush_next("t")
        found = await saver.aget_tuple(CONFIG)
        paid = await put(saver, many=["paid"])
        assert found is not None
        assert found.config == free
        assert await steps_in(open_conversations) == [id_of(free), id_of(paid)]


async def test_what_a_person_is_asked_is_written_with_the_step_it_belongs_to(open_conversations: OpenSaver) -> None:
    async with open_conversations() as saver, saver.defer_checkpoints("t"):
        step = await put(saver)
        await saver.aput_writes(step, [("answer", "not yet")], "task", "~__pregel_pull, router")
        assert await steps_in(open_conversations) == []
        await saver.aput_writes(step, [("__interrupt__", "which one?")], "task", "~__pregel_pull, clarify")
        async with open_conversations() as other:
            found = await other.aget_tuple(CONFIG)
    assert found is not None
    assert found.config == step
    assert found.pending_writes == [("task", "__interrupt__", "which one?")]


async def test_a_cancelled_run_is_written_as_far_as_it_came(open_conversations: OpenSaver) -> None:
    async def run(saver: ConversationSaver, ready: asyncio.Event) -> None:
        async with saver.defer_checkpoints("t"):
            await put(saver)
            ready.set()
            await asyncio.Event().wait()

    async with open_conversations() as saver:
        ready = asyncio.Event()
        running = asyncio.create_task(run(saver, ready))
        await ready.wait()
        running.cancel()
        await wait_for_end(running, "the end of running")
        assert running.cancelled()
        assert len(await steps_in(open_conversations)) == 1
        await put(saver)
        assert len(await steps_in(open_conversations)) == 2


@pytest.mark.parametrize("turns", range(6))
async def test_a_run_that_is_cancelled_while_it_writes_loses_nothing_that_was_paid_for(
    open_conversations: OpenSaver, turns: int
) -> None:
    ids: list[str] = []

    async def run(saver: ConversationSaver) -> None:
        async with saver.defer_checkpoints("t"):
            saver.flush_next("t")
            checkpoint = empty_checkpoint()
            ids.append(checkpoint["id"])
            await saver.aput(CONFIG, checkpoint, {}, {})
            await asyncio.Event().wait()

    async with open_conversations() as saver:
        running = asyncio.create_task(run(saver))
        for _ in range(1 + turns * 3):
            await asyncio.sleep(0)
        running.cancel()
        await wait_for_end(running, "the end of running")
        assert await steps_in(open_conversations) == ids


async def test_pruning_keeps_the_newest_checkpoint_of_that_thread_whole(conversations: ConversationSaver) -> None:
    for number in range(3):
        newest = await put(conversations, text=str(number), many=[number], kept=["the same"])
        await conversations.aput_writes(newest, [("answer", number)], "task")
    for _ in range(2):
        await put(conversations, in_thread("other"), many=["theirs"])
    evidence = EvidenceStore(conversations)
    await evidence.of("t").keep("e1", "text")

    await conversations.prune_thread("t", evidence.make_drop_statement("t"))

    (left,) = [found async for found in conversations.alist(CONFIG)]
    assert left.config == newest
    assert left.checkpoint["channel_values"]["text"] == "2"
    assert left.pending_writes == [("task", "answer", 2)]
    assert await evidence.of("t").texts(["e1"]) == {}
    others = [found async for found in conversations.alist(in_thread("other"))]
    assert [found.checkpoint["channel_values"] for found in others] == [{"many": ["theirs"]}] * 2


async def test_what_fails_half_way_changes_nothing(conversations: ConversationSaver) -> None:
    for _ in range(3):
        await put(conversations)

    with pytest.raises(CheckpointError):
        await conversations.prune_thread("t", ("DELETE FROM no_such_table", ()))

    assert len([found async for found in conversations.alist(CONFIG)]) == 3


async def test_a_thread_that_is_deleted_is_gone_and_no_other(conversations: ConversationSaver) -> None:
    at = await put(conversations, many=["x"])
    await conversations.aput_writes(at, [("answer", "x")], "task")
    await put(conversations, in_thread("other"))

    await conversations.adelete_thread("t")

    assert await conversations.aget_tuple(CONFIG) is None
    assert await conversations.aget_tuple(in_thread("other")) is not None


async def test_many_threads_are_written_at_once(conversations: ConversationSaver) -> None:
    threads = [f"thread {number}" for number in range(30)]

    await asyncio.gather(*(put(conversations, in_thread(thread), many=[thread]) for thread in threads))

    found = await asyncio.gather(*(conversations.aget_tuple(in_thread(thread)) for thread in threads))
    assert [one and one.checkpoint["channel_values"] for one in found] == [{"many": [thread]} for thread in threads]


class Talk(TypedDict):
    """What the graph of these tests carries."""

    said: Annotated[list[str], operator.add]
    calls: int


def make_graph(saver: ConversationSaver) -> Any:
    def begin(state: Talk) -> dict[str, Any]:
        return {"said": ["begun"], "calls": state.get("calls", 0) + 1}

    def ask(_: Talk) -> dict[str, Any]:
        return {"said": [str(interrupt("which one?"))]}

    graph: Any = StateGraph(Talk)
    graph.add_node("begin", begin)
    graph.add_node("ask", ask)
    return graph.add_edge(START, "begin").add_edge("begin", "ask").compile(checkpointer=saver)


async def test_a_run_that_waits_for_a_person_goes_on_in_another_process(open_conversations: OpenSaver) -> None:
    async with open_conversations() as saver, saver.defer_checkpoints("t"):
        await make_graph(saver).ainvoke({"said": []}, CONFIG, durability="sync")

    async with open_conversations() as saver:
        graph = make_graph(saver)
        waiting = (await graph.aget_state(CONFIG)).interrupts
        async with saver.defer_checkpoints("t"):
            done = await graph.ainvoke(Command(resume="the second"), CONFIG, durability="sync")

    assert [one.value for one in waiting] == ["which one?"]
    assert done == {"said": ["begun", "the second"], "calls": 1}


async def test_only_what_nobody_goes_on_with_is_forgotten(conversations: ConversationSaver) -> None:
    old = await put(conversations, in_thread("old"), many=["x"])
    await conversations.aput_writes(old, [("answer", "x")], "task")
    between = time.time() + 60
    young: Any = {**empty_checkpoint(), "id": "f" * 8, "channel_values": {"many": ["y"]}}
    await conversations.aput(in_thread("young"), young, {}, {})
    for thread in ("old", "young", "left by a crash"):
        await EvidenceStore(conversations).of(thread).keep("e1", "text")

    assert await prune_conversations(conversations, before=between) == 2

    tables = (*conversations.side_tables, "checkpoints")
    kept = {thread for table in tables for (thread,) in await conversations.rows(f"SELECT thread_id FROM {table}")}
    assert kept == {"young"}
    assert await conversations.rows("SELECT thread FROM evidence") == [("young",)]


async def test_a_run_that_was_overtaken_while_it_stalled_changes_nothing_any_more(
    open_conversations: OpenSaver,
) -> None:
    async with open_conversations() as stalled, open_conversations() as other:
        begun = await put(stalled)
        with pytest.raises(CheckpointOvertaken):
            async with stalled.defer_checkpoints("t"):
                stalled.flush_next("t")
                first = await put(stalled, begun, text="first")
                async with other.defer_checkpoints("t"):
                    finished = await put(other, first, text="finished")
                await other.prune_thread("t")
                with pytest.raises(CheckpointOvertaken):
                    await stalled.aput_writes(
                        first, [("__interrupt__", "which one?")], "task", "~__pregel_pull, clarify"
                    )
                await put(stalled, first, text="second")
                with pytest.raises(CheckpointOvertaken):
                    await stalled.aget_tuple(CONFIG)

        assert await steps_in(open_conversations) == [id_of(finished)]
        assert await other.rows(f"SELECT task_id FROM {other.side_tables[0]}") == []
        found = await stalled.aget_tuple(CONFIG)
        assert found is not None
        assert found.checkpoint["channel_values"] == {"text": "finished"}


async def test_a_run_that_stalled_does_not_bring_a_forgotten_conversation_back(open_conversations: OpenSaver) -> None:
    async with open_conversations() as stalled, open_conversations() as other:
        begun = await put(stalled)
        with pytest.raises(CheckpointOvertaken):
            async with stalled.defer_checkpoints("t"):
                await put(stalled, begun)
                await other.adelete_thread("t")
        assert await steps_in(open_conversations) == []


async def test_of_two_runs_that_go_on_from_one_step_at_once_one_is_overtaken(open_conversations: OpenSaver) -> None:
    async def go_on(saver: ConversationSaver, claim: RunClaim, config: RunnableConfig) -> None:
        async with saver.defer_checkpoints("t", claim):
            saver.flush_next("t")
            await put(saver, config)

    async with open_conversations() as one, open_conversations() as other:
        newest = await put(one)
        for _ in range(5):
            claims = await asyncio.gather(one.claim_run("t"), other.claim_run("t"))
            runs = zip((one, other), claims, strict=True)
            ends = await asyncio.gather(*(go_on(*run, newest) for run in runs), return_exceptions=True)
            assert [type(end) for end in ends if end is not None] == [CheckpointOvertaken]
            found = await one.aget_tuple(CONFIG)
            assert found is not None
            newest = found.config
        assert len(await steps_in(open_conversations)) == 6


# Runs that have lost their thread


@pytest.mark.parametrize("late", ["evidence", "drop", "prune", "forget", "step", "writes"])
async def test_a_run_that_has_lost_its_thread_changes_nothing_of_any_kind(
    open_conversations: OpenSaver, late: str
) -> None:
    async with open_conversations() as stalled, open_conversations() as other:
        older = await put(stalled, text="older")
        newest = await put(stalled, older, text="newest")
        claim = await stalled.claim_run("t")
        evidence = EvidenceStore(stalled)
        await evidence.of("t", claim).keep("e1", "text")
        await other.claim_run("t")
        before = await read_all(other)

        with pytest.raises(CheckpointOvertaken):
            match late:
                case "evidence":
                    await evidence.of("t", claim).keep("e1", "another text")
                case "drop":
                    await evidence.drop("t", claim)
                case "prune":
                    await stalled.prune_thread("t", evidence.make_drop_statement("t"), claim=claim)
                case "forget":
                    await stalled.adelete_thread("t", claim=claim)
                case _:
                    async with stalled.defer_checkpoints("t", claim):
                        if late == "step":
                            await put(stalled, newest, text="late")
                        else:
                            await stalled.aput_writes(newest, [("__interrupt__", "which one?")], "task", "~, clarify")

        assert await read_all(other) == before


async def test_a_forgotten_thread_is_not_that_of_the_run_before(open_conversations: OpenSaver) -> None:
    async with open_conversations() as stalled, open_conversations() as other:
        claim = await stalled.claim_run("t")
        await other.adelete_thread("t")
        await other.claim_run("t")

        with pytest.raises(CheckpointOvertaken):
            await EvidenceStore(stalled).of("t", claim).keep("e1", "text")


async def test_a_claim_that_is_in_use_is_not_pruned_and_one_that_is_idle_goes_with_all_else(
    conversations: ConversationSaver,
) -> None:
    idle = await conversations.claim_run("idle")
    between = time.time() + 0.001
    async with conversations.defer_checkpoints("idle", idle):
        await put(conversations, in_thread("idle"))
    await conversations.claim_run("begun")

    assert await prune_conversations(conversations, before=between - 60) == 0
    await conversations.write("UPDATE run_tokens SET used_at = used_at - 100 WHERE thread_id = ?", ("idle",))
    assert await prune_conversations(conversations, before=between - 60) == 1

    assert await conversations.rows("SELECT thread_id FROM run_tokens") == [("begun",)]
    assert await conversations.aget_tuple(in_thread("idle")) is None
    with pytest.raises(CheckpointOvertaken):
        await conversations.prune_thread("idle", claim=idle)


async def read_all(saver: ConversationSaver) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of a database, but for when a run has last used its claim."""
    tables = {"checkpoints": "*", "evidence": "*", "run_tokens": "token", **dict.fromkeys(saver.side_tables, "*")}
    return {
        table: sorted(await saver.rows(f"SELECT {columns} FROM {table}"), key=str) for table, columns in tables.items()
    }


# Clocks of processes


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_run_is_overtaken_and_gone_on_with_however_the_clocks_of_both_processes_go(
    open_conversations: OpenSaver, hours: int
) -> None:
    async with open_conversations() as stalled, open_conversations() as other:
        late, early = IdClock(0), IdClock(3600 * hours)
        with pytest.raises(CheckpointOvertaken):
            async with stalled.defer_checkpoints("t"):
                with late:
                    stalled.flush_next("t")
                    first = await put(stalled, text="first")
                with early:
                    async with other.defer_checkpoints("t"):
                        found = await other.aget_tuple(CONFIG)
                        assert found is not None
                        assert found.config == first
                        finished = await put(other, await put(other, found.config, text="second"), text="third")
                    await other.prune_thread("t")
                with late:
                    await put(stalled, first, text="late")

        assert await steps_in(open_conversations) == [id_of(finished)]


@pytest.mark.parametrize("hours", [-1, 1])
async def test_the_newest_checkpoint_is_the_last_written_however_the_clocks_of_processes_go(
    open_conversations: OpenSaver, hours: int
) -> None:
    clocks = [IdClock(0), IdClock(3600 * hours), IdClock(-3600 * hours)]
    async with open_conversations() as saver:
        graph, config = make_echo(saver), {"configurable": {"thread_id": "t"}}
        for turn in range(6):
            with clocks[turn % 3]:
                async with saver.defer_checkpoints("t"):
                    said = await graph.ainvoke({"said": [f"{turn}"]}, config, durability="sync")
                assert said == {"said": [str(number) for number in range(turn + 1)]}
                await saver.prune_thread("t")
        assert len(await steps_in(open_conversations)) == 1


def make_echo(saver: ConversationSaver) -> Any:
    """A graph that remembers what was said."""

    class Said(TypedDict):
        said: Annotated[list[str], operator.add]

    builder = StateGraph(Said)
    builder.add_node("hear", lambda _: {})
    builder.add_edge(START, "hear")
    return builder.compile(checkpointer=saver)

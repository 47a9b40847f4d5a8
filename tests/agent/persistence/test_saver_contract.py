"""The contract of conversation databases: a run continues where the one before was, and a late one changes nothing."""

from __future__ import annotations

import asyncio
import operator
import time
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from agent.conversations import prune_conversations
from agent.errors import CheckpointError, CheckpointOvertaken
from agent.persistence.conversation_saver import ConversationSaver, locate_checkpoints
from agent.persistence.evidence_store import EvidenceStore, RunClaim
from tests.agent.persistence.conftest import OpenSaver
from tests.fakes.id_clock import IdClock
from tests.waiting import wait_for, wait_for_end


class Talk(TypedDict):
    """What the graph of these tests carries."""

    said: Annotated[list[str], operator.add]
    calls: int
    text: str


def build_talk() -> Any:
    """A graph that counts its beginnings, and then asks who runs it."""

    def begin(state: Talk) -> dict[str, Any]:
        return {"said": ["begun"], "calls": state.get("calls", 0) + 1}

    def ask(_: Talk) -> dict[str, Any]:
        return {"said": [str(interrupt("which one?"))]}

    graph: Any = StateGraph(Talk)
    graph.add_node("begin", begin)
    graph.add_node("ask", ask)
    return graph.add_edge(START, "begin").add_edge("begin", "ask")


def build_echo() -> Any:
    """A graph that remembers what was said."""
    graph: Any = StateGraph(Talk)
    graph.add_node("hear", lambda _: {})
    return graph.add_edge(START, "hear")


async def run(
    saver: ConversationSaver,
    builder: Any,
    given: Any,
    thread: str = "t",
    *,
    claim: RunClaim | None = None,
    durability: Literal["sync", "exit"] = "sync",
) -> Any:
    """Run a graph in a conversation, under a new claim where none is given."""
    claim = claim or await saver.claim_run(thread)
    async with saver.open_checkpoints() as checkpoints:
        graph = builder.compile(checkpointer=checkpoints)
        return await graph.ainvoke(given, locate_checkpoints(claim.checkpoints), durability=durability)


async def read(saver: ConversationSaver, thread: str = "t") -> Any:
    """The newest values of a conversation."""
    async with saver.open_checkpoints() as checkpoints:
        found = await checkpoints.aget_tuple(locate_checkpoints((await saver.find_newest(thread))[0]))
    return found and {
        key: value for key, value in found.checkpoint["channel_values"].items() if key in Talk.__annotations__
    }


async def put_unclaimed(saver: ConversationSaver, name: str, said: str, *, at: str = "") -> RunnableConfig:
    """Put a checkpoint where no claim says, as earlier versions did, and as a late run does."""
    values = {"said": [said]}
    checkpoint: Any = {**empty_checkpoint(), "channel_values": values, "channel_versions": {"said": "1"}}
    async with saver.open_checkpoints() as checkpoints:
        return await checkpoints.aput(
            locate_checkpoints(name), checkpoint | ({"id": at} if at else {}), {}, {"said": "1"}
        )


async def list_checkpoint_threads(saver: ConversationSaver) -> set[str]:
    return {name for table in saver.checkpoint_tables for (name,) in await saver.rows(f"SELECT thread_id FROM {table}")}


# Runs that follow each other


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_a_conversation_goes_on_in_another_process(
    open_conversations: OpenSaver, durability: Literal["sync", "exit"]
) -> None:
    for turn in range(3):
        async with open_conversations() as saver:
            said = (await run(saver, build_echo(), {"said": [f"{turn}"]}, durability=durability))["said"]
            assert said == [str(number) for number in range(turn + 1)]
            assert await list_checkpoint_threads(saver) == {(await saver.find_newest("t"))[0]}


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_a_run_that_waits_for_a_person_goes_on_in_another_process(
    open_conversations: OpenSaver, durability: Literal["sync", "exit"]
) -> None:
    async with open_conversations() as saver:
        await run(saver, build_talk(), {"said": []}, durability=durability)

    async with open_conversations() as saver:
        await saver.claim_run("t")  # by a process that was killed before it did anything
        done = await run(saver, build_talk(), Command(resume="the second"), durability=durability)

    assert done == {"said": ["begun", "the second"], "calls": 1}


@pytest.mark.parametrize("name", ["t", "t#5"])
async def test_a_conversation_of_an_earlier_version_goes_on_unless_it_is_called_like_a_claim(
    conversations: ConversationSaver, name: str
) -> None:
    at = await put_unclaimed(conversations, name, "before")
    async with conversations.open_checkpoints() as checkpoints:
        await checkpoints.aput_writes(at, [("said", ["by a task"])], "task")

    claim = await conversations.claim_run(name)

    assert await read(conversations, name) == ({"said": ["before"]} if name == "t" else None)
    async with conversations.open_checkpoints() as checkpoints:
        found = await checkpoints.aget_tuple(locate_checkpoints(claim.checkpoints))
    assert (found and found.pending_writes) == ([("task", "said", ["by a task"])] if name == "t" else None)


@pytest.mark.parametrize("broken", ["half of a \ud83d pair", "a \0 within"])
async def test_text_that_no_database_takes_costs_no_step(conversations: ConversationSaver, broken: str) -> None:
    claim = await conversations.claim_run("t")
    await EvidenceStore(conversations).of("t", claim).keep("e1", broken)
    await run(conversations, build_echo(), {"said": ["whole"], "text": broken}, claim=claim)

    found = await read(conversations)

    assert found["said"] == ["whole"]
    assert found["text"].startswith(broken[:2])


async def test_many_conversations_are_written_at_once(conversations: ConversationSaver) -> None:
    threads = [f"thread {number}" for number in range(30)]

    await asyncio.gather(*(run(conversations, build_echo(), {"said": [thread]}, thread) for thread in threads))

    found = await asyncio.gather(*(read(conversations, thread) for thread in threads))
    assert [one["said"] for one in found] == [[thread] for thread in threads]


@pytest.mark.parametrize("turns", range(6))
async def test_a_run_that_is_cancelled_leaves_nothing_that_others_wait_for(
    open_conversations: OpenSaver, turns: int
) -> None:
    async with open_conversations() as saver, open_conversations() as other:
        running = asyncio.create_task(run(saver, build_echo(), {"said": ["cancelled"]}))
        for _ in range(turns * 20):
            await asyncio.sleep(0)
        running.cancel()
        await wait_for_end(running, "the end of running")
        await saver.rows("SELECT 1")  # after the claim, which is carried out all the same
        for each in (other, saver):
            assert (await run(each, build_echo(), {"said": ["whole"]}))["said"][-1] == "whole"


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_run_goes_on_from_the_last_written_however_the_clocks_of_processes_go(
    conversations: ConversationSaver, hours: int
) -> None:
    clocks = [IdClock(0), IdClock(3600 * hours), IdClock(-3600 * hours)]
    for turn in range(6):
        with clocks[turn % 3]:
            said = (await run(conversations, build_echo(), {"said": [f"{turn}"]}))["said"]
        assert said == [str(number) for number in range(turn + 1)]


# Runs that have lost their conversation


async def test_a_run_that_was_overtaken_while_it_stalled_changes_nothing_that_is_read(
    open_conversations: OpenSaver,
) -> None:
    reached, wakes = asyncio.Event(), asyncio.Event()

    async def stall(_: Talk) -> dict[str, Any]:
        reached.set()
        await wakes.wait()
        return {"said": ["late"]}

    stalling: Any = StateGraph(Talk)
    stalling.add_node("hear", stall)
    stalling.add_edge(START, "hear")
    async with open_conversations() as stalled, open_conversations() as other:
        late = await stalled.claim_run("t")
        running = asyncio.create_task(run(stalled, stalling, {"said": ["begun"]}, claim=late))
        await wait_for(reached.wait(), "the stall")

        finished = (await run(other, build_echo(), {"said": ["finished"]}))["said"]
        wakes.set()
        await wait_for_end(running, "the end of the late run")

        assert running.result()["said"] == ["begun", "late"]
        assert (await read(stalled))["said"] == finished == ["begun", "finished"]
        with pytest.raises(CheckpointOvertaken):
            await stalled.check_claim(late)
        await prune_conversations(other, before=0.0)
        assert await list_checkpoint_threads(other) == {(await other.find_newest("t"))[0]}


@pytest.mark.parametrize("late", ["evidence", "drop", "forget"])
async def test_a_run_that_has_lost_its_conversation_changes_nothing_of_any_kind(
    open_conversations: OpenSaver, late: str
) -> None:
    async with open_conversations() as stalled, open_conversations() as other:
        await run(other, build_echo(), {"said": ["before"]})
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
                    await evidence.drop(claim)
                case _:
                    await stalled.forget("t", claim)

        assert await read_all(other) == before


async def test_of_runs_that_claim_a_conversation_at_once_the_last_has_it(open_conversations: OpenSaver) -> None:
    async with open_conversations() as one, open_conversations() as other:
        await run(one, build_echo(), {"said": ["before"]})
        for _ in range(5):
            claims = await asyncio.gather(one.claim_run("t"), other.claim_run("t"), return_exceptions=True)
            assert {type(claim) for claim in claims} <= {RunClaim, CheckpointOvertaken}
            newest = await one.find_claim("t")
            assert newest in claims
            assert newest is not None
            assert (await other.find_newest("t"))[0] == newest.checkpoints
            assert await read(other) == {"said": ["before"]}


async def test_a_forgotten_conversation_is_not_that_of_the_run_before(open_conversations: OpenSaver) -> None:
    async with open_conversations() as stalled, open_conversations() as other:
        await run(other, build_echo(), {"said": ["theirs"]}, "t#x")
        claim = await stalled.claim_run("t")
        await run(stalled, build_echo(), {"said": ["before"]}, claim=claim)
        await EvidenceStore(stalled).of("t", claim).keep("e1", "text")
        await put_unclaimed(stalled, "t", "of an earlier version")
        await other.forget("t")
        assert await list_checkpoint_threads(other) == {(await other.find_newest("t#x"))[0]}

        await run(stalled, build_echo(), {"said": ["late"]}, claim=claim)
        await other.claim_run("t")

        assert await read(other) is None
        with pytest.raises(CheckpointOvertaken):
            await EvidenceStore(stalled).of("t", claim).keep("e1", "text")
        assert await EvidenceStore(other).of("t").texts(["e1"]) == {}


# What is swept


async def test_only_what_nobody_goes_on_with_is_forgotten(conversations: ConversationSaver) -> None:
    old = await put_unclaimed(conversations, "old", "x")
    async with conversations.open_checkpoints() as checkpoints:
        await checkpoints.aput_writes(old, [("said", ["x"])], "task")
    await put_unclaimed(conversations, "gone#3", "late")
    between = time.time() + 60
    await put_unclaimed(conversations, "young", "y", at="f" * 8)
    claim = await conversations.claim_run("claimed")
    await put_unclaimed(conversations, f"claimed#{claim.number - 1}", "late")
    await conversations.write("UPDATE conversations SET used_at = used_at + 100")
    for thread in ("old", "young", "claimed", "left by a crash"):
        await EvidenceStore(conversations).of(thread).keep("e1", "text")
    await run(conversations, build_echo(), {"said": ["z"]}, claim=claim)

    assert await prune_conversations(conversations, before=between) == 3

    assert await list_checkpoint_threads(conversations) == {"young", claim.checkpoints}
    assert {thread for (thread,) in await conversations.rows("SELECT thread FROM evidence")} == {"young", "claimed"}


async def test_a_conversation_in_use_is_not_pruned_and_an_idle_one_goes_with_all_else(
    conversations: ConversationSaver,
) -> None:
    idle = await conversations.claim_run("idle")
    await run(conversations, build_echo(), {"said": ["x"]}, claim=idle)
    await EvidenceStore(conversations).of("idle", idle).keep("e1", "text")
    before = time.time() - 60
    await conversations.claim_run("begun")

    assert await prune_conversations(conversations, before=before) == 0
    await conversations.write("UPDATE conversations SET used_at = used_at - 100 WHERE thread = ?", ("idle",))
    assert await prune_conversations(conversations, before=before) == 1

    assert await conversations.rows("SELECT thread FROM conversations") == [("begun",)]
    assert await list_checkpoint_threads(conversations) == set()
    assert await conversations.rows("SELECT thread FROM evidence") == []
    with pytest.raises(CheckpointOvertaken):
        await conversations.check_claim(idle)


async def test_what_fails_half_way_changes_nothing(conversations: ConversationSaver) -> None:
    claim = await conversations.claim_run("t")

    with pytest.raises(CheckpointError):
        await conversations.write_all([("DELETE FROM conversations", ()), ("DELETE FROM no_such_table", ())])

    assert await conversations.find_claim("t") == claim


async def read_all(saver: ConversationSaver) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of a database, except when a run has last used its claim."""
    tables = {
        "evidence": "*",
        "conversations": "thread, claim, checkpoints",
        **dict.fromkeys(saver.checkpoint_tables, "*"),
    }
    return {
        table: sorted(await saver.rows(f"SELECT {columns} FROM {table}"), key=str) for table, columns in tables.items()
    }

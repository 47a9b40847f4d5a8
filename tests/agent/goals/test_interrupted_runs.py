"""Goal runs that are interrupted: killed anywhere they continue from there, stopped they leave nothing running."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from agent.errors import CheckpointOvertaken, UnknownRun
from agent.persistence.checkpointer import open_saver
from tests.agent.conftest import SECRET
from tests.agent.goals.conftest import KILLED, MENDED, GoalBench, Ran
from tests.agent.test_overtaken import StallingSaver
from tests.fakes.code import COMMIT
from tests.fakes.dying_goals import run_and_die
from tests.fakes.gemini import Received, calls, hangs, says
from tests.forks import ForkServer
from tests.selection import mark_all_but
from tests.waiting import wait_for

WRITE = ("file_write", {"path": "parser.py", "content": MENDED})
NOTES = ("file_write", {"path": "notes.txt", "content": "kept\n"})
# A node begins, has returned but is not saved, or is saved.
POINTS = [f"{node}{sign}1" for node in ("plan", "act", "evaluate") for sign in "<|>"]


@pytest.mark.parametrize("point", mark_all_but(["act|1"], [*POINTS, "plan<2", "act|2", "command!1", "command!3"]))
async def test_a_run_that_is_killed_goes_on_where_it_was(
    bench: GoalBench, forks: ForkServer, tmp_path: Path, point: str
) -> None:
    bench.gemini.replies.extend([calls(NOTES), calls(WRITE)])
    bench.gemini.script = lambda _: calls(NOTES, WRITE)  # asked again, where the reply was not saved
    database = tmp_path / "killed.db"
    code = await forks.end_of(run_and_die, bench.gemini.url, str(database), str(tmp_path), point)
    assert code == -signal.SIGKILL
    paid = len(bench.gemini.received)

    ran = await bench.take_up(database)

    assert ran.verdict.achieved
    assert set(ran.verdict.changed) == {"notes.txt", "parser.py"}
    assert len(bench.gemini.received) <= 3
    assert len(bench.gemini.received) - paid <= 2


async def test_a_process_that_stalled_changes_nothing_of_the_run_that_another_one_has_ended(
    bench: GoalBench, tmp_path: Path
) -> None:
    bench.gemini.replies.append(calls(NOTES, WRITE))
    bench.gemini.script = lambda _: says("done")
    async with open_saver(tmp_path / "c.db") as one, open_saver(tmp_path / "c.db") as two:
        stall = StallingSaver(one, 4)
        agent, other = replace(bench, saver=one).open_agent(), replace(bench, saver=two).open_agent()
        proposal = await agent.propose(KILLED)
        stalled = asyncio.create_task(collect(agent.start(proposal, thread="goal", run_id="run")))
        await wait_for(stall.reached.wait(), "stall.reached")

        ended = await collect(other.resume("run", thread="goal"))
        stall.wakes.set()
        with pytest.raises(CheckpointOvertaken):
            await stalled

        again = await collect(other.resume("run", thread="goal"))
    assert ended.verdict.achieved == again.verdict.achieved
    assert bench.copies.open_now == 0


async def test_a_command_that_hangs_is_stopped_and_leaves_nothing_behind(bench: GoalBench) -> None:
    bench.gemini.script = lambda _: calls(("bash_exec", {"command": "sleep 300 & sleep 300"}))
    agent = bench.open_agent()
    proposal = await agent.propose(KILLED)
    running = asyncio.create_task(collect(agent.start(proposal, thread="goal", run_id="run")))
    while not any("sleep 300" in line for line in bench.sandbox.lines):
        await wait_for(bench.sandbox.started.wait(), "bench.sandbox.started")
        bench.sandbox.started.clear()

    assert await agent.stop("run")
    ran = await wait_for(running, "the end of running")

    assert (ran.answer.route, ran.answer.text) == ("stopped", "Stopped, as you asked.")
    assert bench.sandbox.running == set()
    assert bench.copies.open_now == 0
    with pytest.raises(UnknownRun):
        await collect(agent.resume("run", thread="goal"))


async def test_a_model_that_hangs_is_stopped(bench: GoalBench) -> None:
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    def script(_: object) -> object:
        loop.call_soon_threadsafe(asked.set)
        return hangs()

    bench.gemini.script = script  # type: ignore[assignment]
    agent = bench.open_agent()
    proposal = await agent.propose(KILLED)
    running = asyncio.create_task(collect(agent.start(proposal, thread="goal", run_id="run")))
    await wait_for(asked.wait(), "asked")

    assert await agent.stop("run")

    assert (await wait_for(running, "the end of running")).answer.route == "stopped"


@pytest.mark.parametrize(("reply", "achieved"), [("approve", True), ("abort", False)])
async def test_a_person_is_asked_after_each_iteration_where_wanted(
    bench: GoalBench, reply: str, achieved: bool
) -> None:
    bench.gemini.replies.extend([calls(NOTES), calls(WRITE)])

    waiting = await bench.run(replace(KILLED, hitl=True))

    assert waiting.answer.route == "paused"
    assert "Changed so far: `notes.txt`" in waiting.answer.text
    ran = await collect(bench.open_agent().resume("run", thread="goal", reply=reply))
    assert ran.verdict.achieved is achieved
    assert ran.verdict.ended_by == ("" if achieved else "a person ended it")


async def test_what_is_indexed_meanwhile_is_not_read_by_a_run(bench: GoalBench) -> None:
    bench.gemini.replies.append(calls(NOTES))
    await bench.run(replace(KILLED, hitl=True))
    bench.commit = replace(COMMIT, sha="ab" * 20)
    bench.gemini.replies.extend([calls(("grep", {"pattern": "parse"}), ("file_read", {"path": "notes.txt"}))])
    bench.gemini.script = lambda _: calls(WRITE)

    for _ in range(2):
        ran = await collect(bench.open_agent().resume("run", thread="goal", reply="approve"))

    first, second, third = bench.gemini.received
    assert {"grep", "file_read", "bash_exec"} <= list_tools(first)
    assert "read_file" not in list_tools(first)
    assert list_tools(second) == {"bash_exec", "file_read", "file_list", "file_write", "run_pytest"}
    assert "    1 kept" in str(third.body)
    assert ran.verdict.achieved
    assert ran.verdict.commit == COMMIT.sha


async def test_a_finished_run_gives_its_verdict_again(bench: GoalBench) -> None:
    bench.gemini.replies.extend([calls(NOTES, WRITE)])
    first = await bench.run(KILLED)

    again = await collect(bench.open_agent().resume("run", thread="goal"))

    assert again.verdict == first.verdict
    assert len(bench.gemini.received) == 1


@pytest.mark.exhaustive
async def test_the_conversation_with_the_model_is_bounded_with_its_first_message_kept(bench: GoalBench) -> None:
    bench.gemini.script = lambda _: calls(*[("file_list", {"path": "."})] * 8)

    await bench.run(replace(KILLED, max_iterations=8))

    last = bench.gemini.received[-1]
    assert "mend the parser" in last.prompt
    run = await bench.open_agent()._runner.find_run("goal")
    assert run is not None
    assert len(run.state["messages"]) <= 50  # 40 that the model was sent, and the results of its last calls


async def test_a_run_says_nothing_of_secrets(bench: GoalBench) -> None:
    secret = ("file_write", {"path": "notes.txt", "content": f"password = {SECRET}\n"})
    bench.gemini.replies.extend([calls(secret, WRITE, ("bash_exec", {"command": f"echo {SECRET}; cat notes.txt"}))])
    bench.gemini.script = lambda _: says("Nothing.")

    ran = await bench.run(KILLED)

    told = [event.payload for event in ran.events if event.kind not in {"goal_end", "step_end", "model_end"}]
    assert SECRET not in str(told)
    assert SECRET not in str([request.body for request in bench.gemini.received[1:]]).replace(str(secret), "")


def list_tools(request: Received) -> set[str]:
    return {one["name"] for tools in request.body["tools"] for one in tools["functionDeclarations"]}


async def collect(events: object) -> Ran:
    return Ran([event async for event in events])  # type: ignore[attr-defined]

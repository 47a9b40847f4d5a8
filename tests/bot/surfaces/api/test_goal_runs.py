"""Goal runs over the HTTP API: asked for, approved by those who may, followed, and ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from bot.storage.rate_limits import QuestionLimits
from tests.agent.conftest import SECRET
from tests.agent.goals.conftest import MENDED
from tests.agent.goals.test_goal_runs import claim_test
from tests.bot.surfaces.goal_worlds import open_team
from tests.fakes.gemini import FakeGemini, Received, Reply, calls, running_gemini

WRITE = calls(("file_write", {"path": "parser.py", "content": MENDED + f"# {SECRET}\n"}))
DISPROVED = calls(("file_write", {"path": "test_citebot_claim.py", "content": claim_test(8)}))
MEND = {
    "goal": "pytest", "task": "make the parser accept empty input", "arguments": {"select": ["test_parser.py"]},
    "repository": "shop",
}  # fmt: skip
CLAIM = {"goal": "claim", "task": "parse('7') returns [8]", "repository": "shop"}


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    with running_gemini() as fake:
        yield fake


async def test_who_may_approves_what_another_has_asked_for_and_both_follow_it(
    tmp_path: Path, gemini: FakeGemini
) -> None:
    gate = Event()

    def write_once_allowed(_: Received) -> Reply:
        gate.wait()
        return WRITE

    gemini.replies.append(calls(("bash_exec", {"command": "cat parser.py"})))
    gemini.script = write_once_allowed
    async with open_team(tmp_path, gemini) as team:
        status, asked = await team.call("ben", body=MEND)
        assert (status, asked["state"], asked["may_approve"]) == (200, "proposed", False)
        assert "`python -m pytest test_parser.py`" in asked["text"]
        run, approval = asked["id"], {"decision": "approve", "proposal": asked["proposal"]}
        assert (await team.call("ben", f"/{run}/resume", approval))[0] == 403
        assert [(await team.call(who, f"/{run}"))[1]["code"] for who in ("kim", "eve")] == ["unknown_run"] * 2
        status, problem = await team.call("dan", f"/{run}/resume", approval | {"proposal": "another"})
        assert (status, problem["code"]) == (409, "not_proposed")
        assert (team.bench.sandbox.lines, (await team.call("dan", f"/{run}"))[1]["may_approve"]) == ([], True)

        assert (await team.call("dan", f"/{run}/resume", approval))[1]["state"] == "waiting"
        async for state in team.follow("ben", run):
            if "Iteration 2" in state["text"]:
                assert (state["state"], "Not reached: 1 failure, 1 passed" in state["text"]) == ("running", True)
                gate.set()
        end = await team.see_end("dan", run)

        assert end == state
        assert (end["state"], end["achieved"], end["may_abort"]) == ("ended", True, False)
        assert "**Reached.**" in end["text"]
        assert "+    return [int(part) for part in text.split(',') if part]" in end["patch"]["text"]
        assert SECRET not in str(end)
        status, problem = await team.call("dan", f"/{run}/resume", approval)
        assert (status, problem["code"]) == (409, "not_proposed")


async def test_a_run_is_aborted_as_a_proposal_and_in_progress(tmp_path: Path, gemini: FakeGemini) -> None:
    gemini.script = lambda _: calls(("bash_exec", {"command": "sleep 271.8281"}))
    async with open_team(tmp_path, gemini) as team:
        _, asked = await team.call("ben", body=MEND)
        abort = {"decision": "abort", "proposal": asked["proposal"]}
        await team.call("ben", f"/{asked['id']}/resume", abort)
        end = await team.see_end("ben", asked["id"])
        assert (end["text"], end["achieved"]) == ("Nothing was run: it was not approved.", None)

        _, asked = await team.call("ann", body=MEND)
        await team.call("ann", f"/{asked['id']}/resume", {"decision": "approve", "proposal": asked["proposal"]})
        async for state in team.follow("ann", asked["id"]):
            if "sleep 271" in state["text"] and state["state"] == "running":
                await team.call("ann", f"/{asked['id']}/resume", abort)
        assert "Stopped, as you asked." in state["text"]
        assert not team.bench.sandbox.running


async def test_what_can_come_to_nothing_is_refused_and_a_repeated_request_asks_once(
    tmp_path: Path, gemini: FakeGemini
) -> None:
    async with open_team(tmp_path, gemini, QuestionLimits(per_minute=5, per_day=5)) as team:
        status, problem = await team.call("ben", body=MEND | {"arguments": {"select": ["../elsewhere"]}})
        assert (status, problem["code"]) == (422, "refused")
        assert "cannot be made of this (select" in problem["detail"]
        status, problem = await team.call("ben", body=MEND | {"repository": "cellar"})
        assert (status, problem["code"]) == (404, "unknown_repository")

        first, second = [await team.call("ben", body=CLAIM, **{"Idempotency-Key": "one"}) for _ in range(2)]
        assert first == second
        assert first[1]["state"] == "proposed"
        assert (await team.call("ben", body=CLAIM))[1]["id"] != first[1]["id"]
        status, problem = await team.call("ben", body=CLAIM)
        assert (status, problem["code"]) == (429, "limit")


async def test_words_that_mean_something_in_chats_are_a_task_like_any_other(tmp_path: Path, gemini: FakeGemini) -> None:
    gemini.script = lambda _: DISPROVED
    async with open_team(tmp_path, gemini) as team:
        for task in ("stop", "approve"):
            _, asked = await team.call("ann", body=MEND | {"task": task})
            assert f"`{task}`" in asked["text"]
            await team.call("ann", f"/{asked['id']}/resume", {"decision": "approve", "proposal": asked["proposal"]})
            end = await team.see_end("ann", asked["id"])
            assert "Checked with" in end["text"]

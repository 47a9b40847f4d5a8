"""Whole goal runs before a Gemini with a script: they reach their goal, or say why they did not."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from agent.errors import GoalUnreachable
from agent.goals.checks.goal_registry import KINDS, GoalRegistry
from agent.goals.goal import Goal, GoalDeps, GoalRequest, GoalResult, GoalState
from agent.limits import TurnLimits
from agent.llm.models import ChatModels
from tests.agent.goals.conftest import MENDED, PARSER, REQUEST, GoalBench
from tests.fakes.gemini import Failure, Reply, calls, fills, says
from tests.fakes.repositories import GitRepo

WRITE = ("file_write", {"path": "parser.py", "content": MENDED})


async def test_a_failing_test_is_mended_and_the_patch_applies(bench: GoalBench, tmp_path: Path) -> None:
    bench.gemini.replies.extend([calls(("file_read", {"path": "parser.py"})), calls(WRITE), says("Done.")])

    ran = await bench.run()

    assert ran.verdict.achieved
    assert ran.verdict.iterations == 2
    assert ran.verdict.changed == ("parser.py",)
    assert "**Reached.**" in ran.answer.text
    repository = GitRepo(tmp_path / "repository")
    for path, text in PARSER.items():
        repository.write(path, text)
    repository.commit()
    subprocess.run(["git", "apply"], cwd=repository.root, input=ran.verdict.patch, check=True)  # noqa: ASYNC221
    assert (repository.root / "parser.py").read_text() == MENDED
    assert bench.copies.open_now == 0


@pytest.mark.exhaustive
async def test_every_command_is_shown_and_recorded(bench: GoalBench) -> None:
    bench.gemini.replies.extend([calls(("bash_exec", {"command": "ls"})), calls(WRITE)])

    ran = await bench.run()

    shown = [payload["line"] for payload in ran.payloads("command")]
    test = "python -m pytest test_parser.py"
    assert shown == [test, "ls", test]  # after `ls` nothing has changed, and nothing is checked again
    assert ran.verdict.commands == tuple(shown)


@pytest.mark.exhaustive
async def test_an_iteration_is_told_with_what_the_check_found(bench: GoalBench) -> None:
    bench.gemini.replies.extend([calls(("bash_exec", {"command": "ls"})), calls(WRITE)])

    ran = await bench.run()

    assert [payload["achieved"] for payload in ran.payloads("goal_check")] == [False, True]
    assert [payload["decision"] for payload in ran.payloads("iteration_complete")] == ["go on", "achieved"]
    assert "test_parser.py::test_empty" in bench.gemini.received[1].prompt
    assert "invalid literal for int()" in bench.gemini.received[0].prompt


@pytest.mark.exhaustive
async def test_iterations_that_are_used_up_end_the_run_with_the_patch_so_far(bench: GoalBench) -> None:
    wrong = calls(("file_write", {"path": "parser.py", "content": "parse = None\n"}))
    bench.gemini.script = lambda _: wrong

    ran = await bench.run(replace(REQUEST, max_iterations=2))

    assert not ran.verdict.achieved
    assert ran.verdict.ended_by == "its 2 iterations are used up"
    assert ran.verdict.changed == ("parser.py",)
    assert not ran.answer.found


@pytest.mark.exhaustive
async def test_a_budget_that_is_used_up_ends_the_run(bench: GoalBench) -> None:
    bench.limits = TurnLimits(calls=1)
    bench.gemini.script = lambda _: calls(("bash_exec", {"command": "true"}))

    ran = await bench.run()

    assert ran.verdict.ended_by == "the budget of the run is used up"
    assert len(bench.gemini.received) == 1


@pytest.mark.exhaustive
async def test_changed_tests_do_not_count(bench: GoalBench) -> None:
    cheats = [
        ("file_write", {"path": "test_parser.py", "content": "def test_empty():\n    pass\n"}),
        ("file_write", {"path": "conftest.py", "content": "import os\nos._exit(0)\n"}),
        ("file_write", {"path": "sitecustomize.py", "content": "import os\nos._exit(0)\n"}),
        (
            "file_write",
            {"path": "pytest.ini", "content": "[pytest]\naddopts = --deselect test_parser.py::test_empty\n"},
        ),
    ]
    bench.gemini.replies.append(calls(*cheats))
    bench.gemini.script = lambda _: says("It passes now.")

    ran = await bench.run(replace(REQUEST, max_iterations=2))

    assert not ran.verdict.achieved
    assert ran.verdict.patch == b""
    assert "conftest.py" in ran.verdict.reason


@pytest.mark.exhaustive
async def test_a_test_run_that_dies_with_success_has_not_passed(bench: GoalBench) -> None:
    dying = {"path": "parser.py", "content": "import os\nos._exit(0)\n"}
    bench.gemini.script = lambda _: calls(("file_write", dying))

    ran = await bench.run(replace(REQUEST, max_iterations=1))

    assert not ran.verdict.achieved
    assert "ended before its report did" in ran.verdict.reason


async def test_what_is_met_already_is_said_without_asking_a_model(bench: GoalBench) -> None:
    ran = await bench.run(replace(REQUEST, arguments={"select": ["test_parser.py::test_numbers"]}))

    assert (ran.verdict.achieved, ran.verdict.patch) == (True, b"")
    assert f"Already met at {ran.verdict.commit[:7]}: nothing to do." in ran.answer.text
    assert bench.gemini.received == []


async def test_a_model_that_does_nothing_twice_ends_the_run(bench: GoalBench) -> None:
    bench.gemini.script = lambda _: says("I think that is fine.")

    ran = await bench.run()

    assert not ran.verdict.achieved
    assert (len(bench.gemini.received), ran.verdict.iterations) == (2, 2)
    assert ran.verdict.ended_by == "the model called nothing and changed nothing, twice in a row"
    assert ran.payloads("command") == ran.payloads("command")[:1]


@pytest.mark.exhaustive
async def test_links_out_of_the_repository_and_submodules_are_in_no_patch(bench: GoalBench) -> None:
    link = "ln -s /etc/passwd out; ln -s ../../x up; ln -s parser.py inside; echo '[submodule \"x\"]' > .gitmodules"
    bench.gemini.replies.append(calls(("bash_exec", {"command": link}), WRITE))

    ran = await bench.run()

    assert ran.verdict.changed == ("inside", "parser.py")
    assert ran.verdict.refused == (".gitmodules", "out", "up")
    assert "**Left out of the patch**" in ran.answer.text
    assert b"/etc/passwd" not in ran.verdict.patch


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("nowhere.py", "nowhere.py at this commit"),
        ("test_parser.py::test_nothing", "pytest does not take"),
        ("parser.py", "selects no tests at this commit"),
    ],
)
async def test_a_selection_that_is_none_is_refused_in_a_sentence(bench: GoalBench, select: str, words: str) -> None:
    ran = await bench.run(replace(REQUEST, arguments={"select": [select]}))

    assert ran.answer.route == "failed"
    assert words in ran.answer.text
    assert bench.gemini.received == []


@pytest.mark.exhaustive
async def test_an_import_that_the_sandbox_lacks_is_named(bench: GoalBench) -> None:
    bench.copies = type(bench.copies)({**PARSER, "parser.py": "import a_library_nobody_has\n"}, bench.copies._root)

    ran = await bench.run()

    assert ran.answer.route == "failed"
    assert "`import a_library_nobody_has` fails" in ran.answer.text


@pytest.mark.parametrize(
    ("goal", "arguments", "words"),
    [
        ("fame", {}, "There are: pytest, command, claim, types, lint."),
        ("pytest", {"select": []}, "select"),
        ("pytest", {"select": ["--pdb"]}, "selects no tests"),
        ("pytest", {"select": ["../other/test_a.py"]}, "selects no tests"),
        ("pytest", {"select": ["/etc/test_a.py"]}, "selects no tests"),
        ("command", {"argv": []}, "argv"),
        ("claim", {"claim": " "}, "The claim is empty"),
        ("types", {"paths": ["/etc"]}, "no path inside"),
    ],
)
@pytest.mark.exhaustive
async def test_a_goal_that_cannot_be_made_is_refused_before_anything_runs(
    bench: GoalBench, goal: str, arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(GoalUnreachable, match=words):
        await bench.open_agent().propose(GoalRequest(goal=goal, arguments=arguments, task="x"))


async def test_without_a_model_a_goal_run_says_that_it_needs_one(bench: GoalBench) -> None:
    bench.models = ChatModels()

    with pytest.raises(GoalUnreachable, match="needs a language model"):
        await bench.open_agent().propose(REQUEST)


@pytest.mark.exhaustive
async def test_a_proposal_says_what_will_run_where_and_within_which_limits(bench: GoalBench) -> None:
    text = (await bench.open_agent().propose(REQUEST)).to_text()

    assert "`python -m pytest test_parser.py`" in text
    assert "make the parser accept empty input" in text
    assert "At most 4 iterations, 30 minutes, 100 calls" in text


@pytest.mark.parametrize(
    "reply",
    [
        calls(("file_write", {"path": "../escape.py", "content": "x"})),
        calls(("file_write", {"path": "/tmp/escape.py", "content": "x"})),
        calls(("file_write", {"path": "a.py", "content": "x" * 1_000_000})),
        calls(("file_write", {"content": 3})),
        calls(("no_such_tool", {})),
        calls(("web_search", {"query": "x"})),
        calls(*[("file_list", {})] * 12),
        Reply(finish="MALFORMED_FUNCTION_CALL"),
    ],
    ids=["above", "absolute", "megabyte", "types", "unknown", "outside", "many", "malformed"],
)
@pytest.mark.exhaustive
async def test_a_call_that_cannot_be_made_is_explained_to_the_model(bench: GoalBench, reply: Reply) -> None:
    bench.gemini.replies.extend([reply, reply, calls(WRITE)])

    ran = await bench.run()

    assert ran.verdict.achieved
    assert ran.verdict.changed == ("parser.py",)


@pytest.mark.exhaustive
async def test_a_part_of_a_file_is_replaced_where_it_stands_once(bench: GoalBench) -> None:
    part = {"path": "parser.py", "content": "split(',') if part]", "replaces": "split(',')]"}
    bench.gemini.replies.append(calls(("file_write", part)))

    ran = await bench.run()

    assert ran.verdict.achieved
    assert b"+    return [int(part) for part in text.split(',') if part]\n" in ran.verdict.patch


class FileThere(BaseModel):
    """A file."""

    path: str


class FileThereGoal(Goal[FileThere]):
    """A goal of a test's own."""

    name = "file"
    arguments = FileThere

    async def check(self, state: GoalState, deps: GoalDeps) -> GoalResult:
        there = any(one.path == self.args.path.encode() for one in deps.workspace.copy.read_changes())
        return GoalResult(achieved=there, reason="It is there." if there else "It is not there.")

    def system_prompt(self) -> str:
        return f"Make the file {self.args.path}."

    def describe_command(self) -> str:
        return f"test -e {self.args.path}"


@pytest.mark.exhaustive
async def test_a_goal_of_a_kind_of_its_own_needs_nothing_but_its_class(bench: GoalBench) -> None:
    bench.goals = GoalRegistry([*KINDS, FileThereGoal])
    bench.gemini.replies.extend([calls(("file_write", {"path": "new/notes.txt", "content": "x\n"}))])

    ran = await bench.run(GoalRequest(goal="file", arguments={"path": "new/notes.txt"}, task="make notes"))

    assert ran.verdict.achieved
    assert ran.verdict.changed == ("new/notes.txt",)


ALIKE = """
class AssertionErrorAlike(Exception): pass
def test_claim_holds(): raise AssertionErrorAlike
def test_claim_does_not_hold(): pass
"""


def claim_test(value: int) -> str:
    return (
        "from parser import parse\n\n\n"
        "def call():\n    return parse('7')\n\n\n"
        f"def test_claim_holds():\n    assert call() == [{value}]\n\n\n"
        f"def test_claim_does_not_hold():\n    assert call() != [{value}]\n"
    )


@pytest.mark.parametrize(("value", "verdict", "word"), [(7, "true", "True."), (8, "false", "False.")])
async def test_a_claim_is_shown_to_be_true_or_false_by_a_test(
    bench: GoalBench, value: int, verdict: str, word: str
) -> None:
    test = {"path": "test_citebot_claim.py", "content": claim_test(value)}
    bench.gemini.replies.append(calls(("file_write", test), ("file_write", {"path": "parser.py", "content": "x"})))
    task = f"parse('7') returns [{value}]"

    ran = await bench.run(GoalRequest(goal="claim", arguments={"claim": task}, task=task))

    assert ran.verdict.details["verdict"] == verdict
    assert [one["raised"] for one in ran.verdict.details["failures"]] == ["AssertionError"]
    assert ran.payloads("goal_check")[0]["label"] == "Found out"
    assert f"**{word}**" in ran.answer.text
    assert f"assert call() == [{value}]" in ran.answer.text
    assert "Executed: `parser.py:parse`" in ran.answer.text
    assert "What the run reported" in ran.answer.text
    assert ran.verdict.changed == ("test_citebot_claim.py",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("def test_claim_holds():\n    assert True\n", "There have to be the tests"),
        ("def test_claim_holds(): pass\ndef test_claim_does_not_hold(): pass\n", "Both tests pass"),
        ("def test_claim_holds(): 1 / 0\ndef test_claim_does_not_hold(): pass\n", "by its assertion"),
        (ALIKE, "by its assertion"),
        ("def test_claim_holds(): assert 0\ndef test_claim_does_not_hold(): pass\n", "Not shown: There have to be"),
        (claim_test(8).replace("return parse('7')", "parse('7')\n    return [8]"), "Not shown: `call` returns"),
        ("import nothing_at_all\n", "did not finish"),
    ],
)
@pytest.mark.exhaustive
async def test_tests_that_say_nothing_about_a_claim_leave_it_open(bench: GoalBench, content: str, words: str) -> None:
    bench.gemini.script = lambda _: calls(("file_write", {"path": "test_citebot_claim.py", "content": content}))

    ran = await bench.run(GoalRequest(goal="claim", arguments={"claim": "x"}, task="x", max_iterations=1))

    assert not ran.verdict.achieved
    assert words in ran.verdict.reason
    assert "**Not found out.**" in ran.answer.text


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (
            fills({"asserts_claim": False, "difference": "It asserts the opposite."}),
            "does not assert the claim. It asserts",
        ),
        (Failure(status=400), "no model has read whether the test asserts the claim"),
    ],
)
async def test_a_test_that_is_not_confirmed_to_assert_the_claim_leaves_it_open(
    bench: GoalBench, reading: Reply | Failure, words: str
) -> None:
    bench.gemini.reading = reading
    bench.gemini.script = lambda _: calls(("file_write", {"path": "test_citebot_claim.py", "content": claim_test(8)}))
    claim = "parse('7') never returns [8]"

    ran = await bench.run(GoalRequest(goal="claim", arguments={"claim": claim}, task=claim, max_iterations=1))

    assert not ran.verdict.achieved
    assert words in ran.verdict.reason
    assert "**Not found out.**" in ran.answer.text


@pytest.mark.exhaustive
async def test_a_command_is_to_succeed(bench: GoalBench) -> None:
    bench.gemini.replies.append(calls(("file_write", {"path": "new.txt", "content": "x"})))

    ran = await bench.run(GoalRequest(goal="command", arguments={"argv": ["sh", "-c", "cat new.txt"]}, task="make it"))

    assert ran.verdict.achieved


@pytest.mark.exhaustive
async def test_changes_of_what_a_command_names_are_told_to_be_left_out(bench: GoalBench) -> None:
    bench.gemini.script = lambda _: calls(("file_write", {"path": "new.txt", "content": "x"}))
    request = GoalRequest(
        goal="command", arguments={"argv": ["test", "-e", "new.txt"]}, task="make it", max_iterations=1
    )

    ran = await bench.run(request)

    assert not ran.verdict.achieved
    assert ran.verdict.reason == "It ended with exit code 1. Left out of the check: your changes of new.txt."


@pytest.mark.exhaustive
async def test_a_claim_is_proposed_as_what_it_is(bench: GoalBench) -> None:
    text = (await bench.open_agent().propose(GoalRequest(goal="claim", arguments={"claim": "x"}, task="x"))).to_text()

    assert (
        "Two tests, of the claim and of its opposite, are written and decide about it; they are run by this: `" in text
    )


@pytest.mark.exhaustive
async def test_a_command_that_waits_for_input_gets_none(bench: GoalBench) -> None:
    bench.gemini.script = lambda _: says("I do not know.")

    ran = await bench.run(
        GoalRequest(goal="command", arguments={"argv": ["sh", "-c", "read line"]}, task="x", max_iterations=1)
    )

    assert "exit code 1" in ran.verdict.reason


@pytest.mark.exhaustive
async def test_a_program_that_is_not_there_is_named(bench: GoalBench) -> None:
    ran = await bench.run(GoalRequest(goal="command", arguments={"argv": ["env", "no-such-program"]}, task="x"))

    assert ran.answer.route == "failed"
    assert "is no program that the sandbox has" in ran.answer.text

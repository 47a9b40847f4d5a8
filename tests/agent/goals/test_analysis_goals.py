"""The goals that mypy and ruff find less: fixed code reaches them, silenced or new findings do not."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent.goals.goal import GoalRequest
from tests.agent.goals.conftest import PARSER, GoalBench
from tests.fakes import pyright
from tests.fakes.gemini import calls, says
from tests.fakes.unconfined import UnconfinedSandbox

pytestmark = pytest.mark.exhaustive

LINT = GoalRequest(goal="lint", arguments={"paths": ["."]}, task="mend what ruff finds", max_iterations=1)
TYPES = GoalRequest(goal="types", arguments={"paths": ["typed.py"]}, task="mend the types", max_iterations=1)
UNUSED = "import os\n\n\ndef parse(text):\n    return text\n"
PYRIGHT = pyright.__file__
WRONG = "def double(number: int) -> str:\n    return 2 * number\n"


def with_files(bench: GoalBench, files: dict[str, str]) -> GoalBench:
    copies = type(bench.copies)({**PARSER, **files}, bench.copies._root)
    return replace(bench, copies=copies)


@pytest.mark.parametrize(
    ("request_", "path", "before", "after", "achieved"),
    [
        (LINT, "parser.py", UNUSED, UNUSED.removeprefix("import os\n\n\n"), True),
        (LINT, "parser.py", UNUSED, UNUSED.replace("import os", "import os  # noqa"), False),
        (LINT, "parser.py", UNUSED, UNUSED.replace("import os", "import sys"), False),
        (LINT, "ruff.toml", "", 'lint.ignore = ["F401"]\n', False),
        (TYPES, "typed.py", WRONG, WRONG.replace("2 * number", "str(2 * number)"), True),
        (TYPES, "typed.py", WRONG, WRONG.replace("number\n", "number  # type: ignore\n"), False),
        (TYPES, "typed.py", WRONG, "def (:\n", False),
    ],
    ids=["mended", "silenced", "exchanged", "settings", "typed", "ignored", "broken"],
)
async def test_fewer_findings_and_none_new_are_wanted(
    bench: GoalBench, request_: GoalRequest, path: str, before: str, after: str, achieved: bool
) -> None:
    files = {"parser.py": UNUSED, **({path: before} if before else {})}
    bench.gemini.replies.append(calls(("file_write", {"path": path, "content": after})))

    ran = await with_files(bench, files).run(request_)

    assert ran.answer.route == "goal"
    assert ran.verdict.achieved is achieved, ran.verdict.reason


async def test_nothing_to_mend_is_said_before_a_model_is_asked(bench: GoalBench) -> None:
    bench.gemini.script = lambda _: says("Fine.")

    ran = await bench.run(LINT)

    assert ran.verdict.achieved
    assert "nothing to do. ruff finds nothing." in ran.answer.text
    assert bench.gemini.received == []


async def test_a_path_that_is_not_there_is_named_before_anything_is_looked_for(bench: GoalBench) -> None:
    ran = await bench.run(replace(LINT, arguments={"paths": ["parser.py", "sorce"]}))

    assert ran.answer.route == "failed"
    assert "There is no sorce at this commit." in ran.answer.text
    assert ran.payloads("command") == []


@pytest.mark.parametrize(
    ("after", "achieved", "reason"),
    [
        (WRONG.replace("2 * number", "str(2 * number)"), True, "0 findings, 1 at the commit"),
        (WRONG + WRONG.replace("double", "again"), False, "[reportReturnType]"),
        (WRONG.replace("number\n", "number  # pyright: ignore\n"), False, "silenced"),
        ("def (:\n", False, "New findings"),
    ],
    ids=["typed", "more", "ignored", "broken"],
)
async def test_pyright_finds_less(bench: GoalBench, tmp_path: Path, after: str, achieved: bool, reason: str) -> None:
    program = tmp_path / "programs" / "pyright"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{PYRIGHT}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    bench.gemini.replies.append(calls(("file_write", {"path": "typed.py", "content": after})))
    prepared = replace(with_files(bench, {"typed.py": WRONG}), sandbox=UnconfinedSandbox(program.parent))

    ran = await prepared.run(replace(TYPES, arguments={"paths": ["typed.py"], "tool": "pyright"}))

    assert ran.verdict.achieved is achieved, ran.verdict.reason
    assert reason in ran.verdict.reason
    assert "pyright --outputjson typed.py" in ran.verdict.commands


async def test_a_missing_pyright_is_named(bench: GoalBench) -> None:
    ran = await with_files(bench, {"typed.py": WRONG}).run(
        replace(TYPES, arguments={"paths": ["typed.py"], "tool": "pyright"})
    )

    assert ran.answer.route == "failed"
    assert "There is no pyright in the sandbox." in ran.answer.text

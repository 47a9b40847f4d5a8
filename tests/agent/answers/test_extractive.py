"""Extractive answers over small repositories, each made for one question."""

from __future__ import annotations

import re

import pytest

from agent.agent import Agent
from agent.persistence.checkpointer import SqliteConversations
from agent.ports import Answer
from tests.agent.conftest import answer_to, redact
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.shop import SHOP

LONG = "\n".join(f"        step_{number}()" for number in range(20))
BLUEPRINTS = {
    "src/app.py": f'''class App:
    """Keeps :class:`~src.plans.Plan` objects."""

    def __init__(self) -> None:
        self.plans = []

    def add_plan(self, plan, *, first=False):
        """Add a plan.

        It is kept.
        """
        if plan in self.plans:
            raise ValueError(
                "Cannot add a plan"
                " that is already there"
            )
        self.plans.append(plan)

    def run(self):
{LONG}
        self.add_plan(None)

    def _hidden(self):
        pass
''',
    "tests/test_app.py": """from src.app import App


class Plan:
    pass


def test_a_plan_is_added():
    App().add_plan(Plan())
""",
    "src/plans.py": "import os\n\nDEBUG = os.environ.get('PLAN_DEBUG')\n\n\nclass Plan:\n    name = ''\n",
    "docs/plans.md": "# Plans\n\nCannot add a plan that is already there: remove it first.\n",
}


async def ask(
    saver: SqliteConversations, question: str, *, files: dict[str, str] = BLUEPRINTS, thread: str = "t"
) -> Answer:
    answer = await answer_to(Agent(FakeLibrary(FakeCode(files)), saver, redact), question, thread)
    assert_verbatim(answer, files)
    return answer


def assert_verbatim(answer: Answer, files: dict[str, str]) -> None:
    """Every quoted block stands, except its indentation, in lines that the answer cites."""
    cited = [
        [line.strip() for line in files[one.path].splitlines()[one.start_line - 1 : one.end_line]]
        for one in answer.citations
    ]
    for block in re.findall(r"^(`{3,})\w*\n(.*?)\n\1$", answer.text, re.DOTALL | re.MULTILINE):
        lines = [line.strip() for line in block[1].split("\n")]
        runs = (span[at : at + len(lines)] for span in cited for at in range(len(span)))
        assert any(lines == run for run in runs), block[1]


async def test_a_class_is_shown_with_its_public_methods(saver: SqliteConversations) -> None:
    answer = await ask(saver, "where is App defined?")
    assert "`App` is defined in `src/app.py` [1], lines 1–43. *Keeps Plan objects.*" in answer.text
    assert "```python\nclass App:\n```" in answer.text
    assert "Methods, with their lines: `add_plan` (7), `run` (19)." in answer.text


async def test_the_code_itself_comes_before_its_tests(saver: SqliteConversations) -> None:
    answer = await ask(saver, "where is Plan?")
    assert answer.text.startswith("`Plan` is defined in `src/plans.py` [1]")
    assert "Also:\n\n- `Plan` in `tests/test_app.py:4` [2]" in answer.text


async def test_callers_in_the_code_come_before_those_in_tests(saver: SqliteConversations) -> None:
    answer = await ask(saver, "who calls add_plan?")
    assert [one.path for one in answer.citations[1:]] == ["src/app.py", "tests/test_app.py"]


@pytest.mark.parametrize("question", ["Cannot add a plan that is already there", 'why "Cannot add a plan that is"?'])
async def test_a_message_leads_to_the_lines_that_spell_it(saver: SqliteConversations, question: str) -> None:
    answer = await ask(saver, question)
    assert '1. `App.add_plan` in `src/app.py`\n   - 14 [1] `"Cannot add a plan"`\n   - 15 [2]' in answer.text


async def test_a_misspelt_name_leads_to_the_one_that_is_meant(saver: SqliteConversations) -> None:
    answer = await ask(saver, "where is ad_plan defined?")
    assert answer.text.startswith("No definition of `ad_plan` was found in the ")
    assert "Similar names: `App.add_plan`." in answer.text
    assert answer.citations[0].path == "src/app.py"
    assert (await ask(saver, "who calls it?")).text.count("`App.add_plan` [1]") == 1


async def test_an_environment_variable_leads_to_where_it_is_read(saver: SqliteConversations) -> None:
    answer = await ask(saver, "what is PLAN_DEBUG?")
    line = "3 [1] `DEBUG = os.environ.get('PLAN_DEBUG')`"
    assert answer.text == f"`PLAN_DEBUG` appears in 1 place:\n\n1. `src/plans.py`\n   - {line}"


@pytest.mark.parametrize("question", ["what does 0xBEEF mean for plans?", "what does --plan-file do?"])
async def test_a_text_that_is_nowhere_is_said_to_be_nowhere(saver: SqliteConversations, question: str) -> None:
    answer = await ask(saver, question)
    assert re.search(r"`(0xBEEF|--plan-file)` does not appear in the", answer.text) or answer.text.startswith(
        "No match in the "
    )
    assert "```" not in answer.text


async def test_words_of_the_question_are_not_remarked_on(saver: SqliteConversations) -> None:
    answer = await ask(saver, "how does kubernetes add plans?")
    assert "`kubernetes`" not in answer.text


async def test_a_name_is_not_looked_for_in_a_question_about_other_things(saver: SqliteConversations) -> None:
    answer = await ask(saver, "what happens when a Plan is added which is already there?")
    assert "1. *Plans* in `docs/plans.md`\n   - 3 [1] " in answer.text  # what explains it comes first
    assert "`def add_plan(self, plan, *, first=False):`" in answer.text


async def test_a_trace_of_another_version_leads_to_the_same_line(saver: SqliteConversations) -> None:
    trace = (
        'Traceback (most recent call last):\n  File "/usr/lib/src/app.py", line 300, in add_plan\n'
        "    self.plans.append(plan, 1)\nTypeError: append() takes one argument"
    )
    answer = await ask(saver, trace)
    assert "around line 17, in method `App.add_plan` [2] (the trace says line 300, of another version)" in answer.text


async def test_a_frame_without_its_line_shows_its_function(saver: SqliteConversations) -> None:
    trace = 'Traceback (most recent call last):\n  File "/usr/lib/src/app.py", line 2, in run\nTypeError: no'
    answer = await ask(saver, trace)
    assert "`src/app.py` [1], lines 19–32, in method `App.run` [2]" in answer.text


async def test_who_uses_a_file_is_answered_with_its_imports(saver: SqliteConversations) -> None:
    answer = await ask(saver, "who imports src/app.py?")
    assert "- module level in `tests/test_app.py:1` [1]: `from src.app import App`" in answer.text


async def test_the_second_place_of_an_answer_can_be_opened(saver: SqliteConversations) -> None:
    await ask(saver, "who calls add_plan?")
    answer = await ask(saver, "show me the second one")
    assert "`tests/test_app.py` [1], around line 9, in function `test_a_plan_is_added` [2]" in answer.text


async def test_a_language_that_is_not_there_is_said_to_be_missing(saver: SqliteConversations) -> None:
    await ask(saver, "where is App?")
    assert (await ask(saver, "and in Go?")).text == "There is no Go in the 4 files of `shop` at `c0ffeec`."


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("Wo ist parse_date definiert?", "shop/dates.py"),
        ("¿Dónde se define la clase Order?", "shop/orders.py"),
        ("où est défini load_order ?", "shop/orders.py"),
        ("parse_date 在哪里定义？", "shop/dates.py"),
        ("谁调用了 parse_date？", "shop/dates.py"),
        ("Wer ruft load_order auf?", "shop/orders.py"),
    ],
)
async def test_a_name_is_asked_for_in_other_languages(saver: SqliteConversations, question: str, path: str) -> None:
    answer = await ask(saver, question, files=SHOP)
    assert answer.route == "fast_path"
    assert answer.citations[0].path == path


async def test_a_name_beside_a_text_that_is_nowhere_leads(saver: SqliteConversations) -> None:
    answer = await ask(saver, "what does 'all plans are gone now' or add_plan do?")
    assert "`App.add_plan` is defined in `src/app.py` [1]" in answer.text


async def test_an_empty_file_is_said_to_hold_nothing(saver: SqliteConversations) -> None:
    answer = await ask(saver, "what is in src/__init__.py?", files={**BLUEPRINTS, "src/__init__.py": ""})
    assert "`src/__init__.py` [1] holds nothing." in answer.text
    assert "```" not in answer.text
    assert [one.path for one in answer.citations] == ["src/__init__.py"]


async def test_what_else_a_question_may_mean_comes_with_the_answer(saver: SqliteConversations) -> None:
    unclear = await ask(saver, "anything odd about `parse_date`", files=SHOP)
    clear = await ask(saver, "who calls parse_date?", files=SHOP, thread="other")

    assert unclear.meanings
    assert unclear.text.endswith(f"If you meant something else, ask: {' · '.join(unclear.meanings)}")
    assert all("`parse_date`" in meaning for meaning in unclear.meanings)
    assert clear.meanings == ()

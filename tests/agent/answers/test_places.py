"""A question of which the answer is not known is answered with four places, their lines, and nothing more."""

from __future__ import annotations

import re

import pytest

from agent.agent import Agent
from agent.answers.places import FRAME
from agent.persistence.checkpointer import SqliteConversations
from agent.ports import Answer
from tests.agent.conftest import answer_to, redact
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.shop import SHOP

CODE = "def check_pet(pet):\n    if not pet.name:\n        raise ValueError('validated in vain')\n"
LONG = f"    return validate(pets, {'x' * 200})\n"
SETTINGS = (
    "# How long a pet may wait for its papers.\nPET_WAIT = 30\nOTHER = 4\n\n\n"
    "def load(path):\n    return wait_for(pet, PET_WAIT)\n"
)


async def ask(saver: SqliteConversations, question: str, files: dict[str, str], thread: str = "t") -> Answer:
    answer = await answer_to(Agent(FakeLibrary(FakeCode(files)), saver, redact), question, thread)
    for cited in answer.citations:  # each printed line is cited on its own
        (line,) = files[cited.path].splitlines()[cited.start_line - 1 : cited.end_line]
        assert line.strip()[:40] in answer.text
    return answer


def places_of(answer: Answer) -> list[str]:
    return re.findall(r"^\d\. .*?`?([\w./-]+)`$", answer.text, re.MULTILINE)


async def test_four_files_are_shown_with_what_their_lines_lie_in(saver: SqliteConversations) -> None:
    files = {f"src/a{at}.py": f"def check_{at}(pets):\n    return pets.validated\n" for at in range(5)}
    answer = await ask(saver, "where are pets validated?", files)
    assert answer.text.startswith(f"{FRAME}\n\n1. `check_0` in `src/a0.py`\n   - 1 [1] `def check_0(pets):`\n")
    assert len(set(places_of(answer))) == 4
    assert "```" not in answer.text
    more = await ask(saver, "more", files)
    assert places_of(more) == ["src/a4.py"]


@pytest.mark.parametrize(
    "path",
    [
        "static/pets.css",
        "LICENSE",
        "locales/pets.json",
        "completions/pets.bash",
        "pets-lock.json",
        "generated/pets.js",
        "migrations/0001_pets.py",
        "tests/test_pets.py",
        "ROADMAP.md",
    ],
)
async def test_what_says_nothing_of_the_code_comes_last(saver: SqliteConversations, path: str) -> None:
    files = {path: "# pets validated: pets are validated\n" * 3, "src/checking.py": CODE}
    answer = await ask(saver, "where are pets validated?", files)
    assert places_of(answer) == ["src/checking.py", path]


async def test_tests_lead_where_they_are_asked_for(saver: SqliteConversations) -> None:
    files = {"tests/test_pets.py": "def test_pets():\n    assert validated(pets)\n", "src/checking.py": CODE}
    answer = await ask(saver, "where do tests make validated pets?", files)
    assert places_of(answer)[0] == "tests/test_pets.py"


async def test_a_page_leads_where_its_heading_says_how(saver: SqliteConversations) -> None:
    files = {
        "src/a.py": "def validate_pets(pets):\n    return 1\n",
        "src/b.py": "def validate_all(pets):\n    return 1\n",
        "docs/pets.md": "# All\n\n## Validating pets\n\nIn a box.\nEach pet by hand.\n\n```\n# Pets validated\n```\n",
    }
    answer = await ask(saver, "how are pets validated?", files)
    assert places_of(answer)[0] == "docs/pets.md"
    assert re.search(r"\d\. \*Validating pets\* in `docs/pets.md`\n   - 5 \[\d\] `In a box.`", answer.text)


async def test_a_value_is_printed_beside_the_line_that_names_it(saver: SqliteConversations) -> None:
    question = "how long may a pet wait for its papers by default?"
    answer = await answer_to(Agent(FakeLibrary(FakeCode({"src/settings.py": SETTINGS})), saver, redact), question, "t")
    assert "`PET_WAIT`, a setting, is `30` by default" in answer.text


@pytest.mark.parametrize(("between", "is_near"), [(2, True), (20, False)])
async def test_a_number_is_printed_with_the_line_near_it(
    saver: SqliteConversations, between: int, is_near: bool
) -> None:
    steps = "".join(f"    prepare_{at}(pet)\n" for at in range(between))
    code = f"def admit(pet):\n    # The vet looks at hungry animals, and then lets them in.\n{steps}    pause = 45\n"
    answer = await ask(saver, "how long until the vet lets hungry animals in?", {"src/admission.py": code})
    assert "lets them in" in answer.text
    assert ("`pause = 45`" in answer.text) is is_near


async def test_a_long_line_is_cut_at_its_end(saver: SqliteConversations) -> None:
    answer = await ask(saver, "where are pets validated?", {"src/a.py": f"def f(pets):\n{LONG}"})
    assert max(map(len, answer.text.split("\n"))) < 120
    assert "x…`" in answer.text


async def test_where_an_error_is_handled_is_not_where_it_is_defined(saver: SqliteConversations) -> None:
    files = {
        "src/errors.py": "class StopEarly(Exception):\n    pass\n",
        "src/run.py": "def run(step):\n    try:\n        step()\n    except StopEarly:\n        return None\n",
    }
    answer = await answer_to(Agent(FakeLibrary(FakeCode(files)), saver, redact), "where is StopEarly handled?", "t")
    assert "`src/run.py:4`" in answer.text


@pytest.mark.parametrize(
    ("question", "is_pointing"),
    [
        ("what time is standup?", True),
        ("who calls parse_date?", False),
        ("do we use django?", False),
        ("how do `parse_date` and the reminders work together?", False),
    ],
)
async def test_only_what_names_no_code_is_answered_by_pointing_alone(
    saver: SqliteConversations, question: str, is_pointing: bool
) -> None:
    answer = await answer_to(Agent(FakeLibrary(FakeCode(SHOP)), saver, redact), question)

    assert answer.is_pointing == is_pointing

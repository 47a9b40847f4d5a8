"""A question in words is answered with code that is about it: no stylesheet, licence or plan comes first."""

from __future__ import annotations

import pytest

from agent.agent import Agent
from agent.evidence.refs import count_distance, is_test_or_docs
from agent.persistence.checkpointer import SafeSqliteSaver
from tests.agent.conftest import answer_to, redact
from tests.fakes.code import FakeCode, FakeLibrary

CODE = "def check_pet(pet):\n    if not pet.name:\n        raise ValueError('validated in vain')\n"


@pytest.mark.parametrize(
    "path",
    [
        "static/pets.css",
        "LICENSE",
        "locales/pets.json",
        "completions/pets.bash",
        "templates/pets.html",
        "pets-lock.json",
        "generated/pets.js",
    ],
)
async def test_what_says_nothing_of_the_code_does_not_lead(saver: SafeSqliteSaver, path: str) -> None:
    files = {path: "pets validated: pets are validated\n" * 3, "src/checking.py": CODE}
    agent = Agent(FakeLibrary(FakeCode(files)), saver, redact)

    answer = await answer_to(agent, "how are pets validated?", "t")

    assert answer.citations[0].path == "src/checking.py"


async def test_a_plan_does_not_explain_how_it_is(saver: SafeSqliteSaver) -> None:
    files = {"ROADMAP.md": "# Now\n\nPets will be validated twice.\n", "src/checking.py": CODE}
    agent = Agent(FakeLibrary(FakeCode(files)), saver, redact)

    answer = await answer_to(agent, "how are pets validated?", "t")

    assert answer.citations[0].path == "src/checking.py"


async def test_the_definition_named_by_the_question_leads(saver: SafeSqliteSaver) -> None:
    files = {
        "src/a.py": "def handle(pets):\n    return [validate(pet) for pet in pets if pet.validated]\n",
        "src/b.py": "def validate_pets(owner):\n    return owner.all()\n",
    }
    agent = Agent(FakeLibrary(FakeCode(files)), saver, redact)

    answer = await answer_to(agent, "how are pets validated?", "t")

    assert answer.text.startswith("`validate_pets`, function in `src/b.py` [1]")


async def test_where_an_error_is_handled_is_not_where_it_is_defined(saver: SafeSqliteSaver) -> None:
    files = {
        "src/errors.py": "class StopEarly(Exception):\n    pass\n",
        "src/run.py": "def run(step):\n    try:\n        step()\n    except StopEarly:\n        return None\n",
    }
    agent = Agent(FakeLibrary(FakeCode(files)), saver, redact)

    answer = await answer_to(agent, "where is StopEarly handled?", "t")

    assert "`src/run.py:4`" in answer.text


def test_a_package_of_samples_is_code_below_the_main_sources() -> None:
    assert not is_test_or_docs("src/main/java/org/acme/samples/shop/Pet.java")
    assert is_test_or_docs("samples/shop/Pet.java")
    assert is_test_or_docs("docs/src/main/java/Pet.java")


def test_code_is_nearest_and_data_is_farthest() -> None:
    paths = ["a/yarn.lock", "tests/test_a.py", "views/a.html", "a.py"]

    assert sorted(paths, key=count_distance) == ["a.py", "views/a.html", "tests/test_a.py", "a/yarn.lock"]


async def test_a_document_that_only_has_the_words_of_a_long_question_does_not_explain_it(
    saver: SafeSqliteSaver,
) -> None:
    words = "The next thing: pets refresh their feed in time.\n"
    files = {
        "docs/api.md": f"# Returned fields\n\n{words}",
        "src/a.py": "def schedule_next_refresh(feed):\n    return 1\n",
    }
    agent = Agent(FakeLibrary(FakeCode(files)), saver, redact)

    answer = await answer_to(agent, "how is the next refresh time of a feed computed for pagers?", "t")

    assert answer.citations[0].path == "src/a.py"


async def test_a_page_that_says_no_more_than_the_best_code_does_not_lead(saver: SafeSqliteSaver) -> None:
    checks = {f"src/a{at}.py": f"def check_{at}(pets):\n    return pets.validated\n" for at in range(9)}
    files = {**checks, "docs/pets.md": "# Keeping pets\n\nA pet can be sold once its papers have been validated.\n"}
    agent = Agent(FakeLibrary(FakeCode(files)), saver, redact)

    answer = await answer_to(agent, "how are pets validated?", "t")

    assert answer.text.startswith("`check_0`, function in `src/a0.py` [1]")
    assert "- `docs/pets.md:1`" in answer.text


async def test_a_page_that_says_more_than_all_the_best_code_leads(saver: SafeSqliteSaver) -> None:
    lists = {f"src/a{at}.py": f"# How pets are kept.\ndef keep_{at}(pets):\n    return pets\n" for at in range(9)}
    files = {**lists, "docs/checks.md": "# Checks\n\nPets: validated by hand.\n"}
    agent = Agent(FakeLibrary(FakeCode(files)), saver, redact)

    answer = await answer_to(agent, "how are pets validated?", "t")

    assert answer.text.startswith("`docs/checks.md` [1], *Checks*")

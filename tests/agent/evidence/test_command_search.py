"""The commands that a repository names are found in its files, and the one that fits a question comes first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.agent import Agent
from agent.kinds.command_search import is_command_file, read_commands
from agent.persistence.checkpointer import SqliteConversations
from tests.agent.conftest import answer_to, redact
from tests.fakes.code import FakeCode, FakeLibrary

MAKEFILE = """VERSION := 1
.PHONY: test

# Run everything that is fast
test:
\t@python -m pytest -q

lint: deps ## Look for mistakes
\truff check .
%.o: %.c
\tcc $<
"""
README = """# Steps

Takes steps.

## Development

Set up an environment first:

```sh
python -m venv .venv
.venv/bin/pip install -e .
```

```python
make("nothing")
```

Building the style sheets
-------------------------

    npm run css

Or type `docker build -t steps .` for an image.
"""
PACKAGE = """{
  "packageManager": "pnpm@9",
  "scripts": {
    "test": "jest",
    "test:unit": "jest unit"
  }
}
"""
FILES = {
    "Makefile": MAKEFILE,
    "README.md": README,
    "package.json": PACKAGE,
    "tox.ini": "[tox]\nenvlist = py\n\n[testenv:docs]\ncommands = sphinx-build docs out\n",
    "justfile": "# Start the server\nserve port='80':\n    python serve.py\n",
    "composer.json": '{\n  "scripts": {\n    "phpstan": ["@php vendor/bin/phpstan"],\n'
    '    "post-install-cmd": "x"\n  }\n}\n',
    "Rakefile": "Rake::TestTask.new(:specs) do |test|\nend\n",
    "ReleaseSteps.md": "Run `mvn release:prepare` to begin.\n",
    "src/steps.py": "def step():\n    pass\n",
}


@pytest.mark.parametrize(
    ("path", "command", "line"),
    [
        ("Makefile", "make test", 5),
        ("Makefile", "make lint", 8),
        ("README.md", "python -m venv .venv", 10),
        ("README.md", ".venv/bin/pip install -e .", 10),
        ("README.md", "npm run css", 21),
        ("README.md", "docker build -t steps .", 23),
        ("package.json", "pnpm run test:unit", 5),
        ("tox.ini", "tox -e docs", 4),
        ("justfile", "just serve", 2),
        ("composer.json", "composer phpstan", 3),
        ("Rakefile", "rake specs", 1),
        ("ReleaseSteps.md", "mvn release:prepare", 1),
    ],
)
def test_a_command_is_found_where_its_file_names_it(path: str, command: str, line: int) -> None:
    found = {one.text: one for one in read_commands(path, FILES[path])}

    assert found[command].start_line == line


@pytest.mark.parametrize("path", ["README.md", "Makefile"])
def test_nothing_but_commands_is_taken_for_one(path: str) -> None:
    texts = [one.text for one in read_commands(path, FILES[path])]

    assert not any('make("nothing")' in text or "%" in text or ".PHONY" in text for text in texts)


SESSION = """Running the Tests
-----------------

To run the tests, use the ``pytest`` command.

.. code-block:: none

    $ pytest

    ========= test session starts =========
    rootdir: /home/user/Projects/tutorial
    collected 23 items

    tests/test_factory.py ..        [100%]

To begin ::

    # clone the repository
    $ git clone https://example.com/steps
    $ cd steps
"""


def test_what_a_command_printed_is_no_command() -> None:
    found = read_commands("docs/tests.rst", SESSION)

    assert [(one.text, one.start_line, one.end_line, one.about) for one in found] == [
        ("pytest", 8, 8, "Running the Tests To run the tests, use the ``pytest`` command."),
        ("git clone https://example.com/steps", 19, 20, "Running the Tests To begin"),
    ]


def test_what_is_said_beside_a_target_goes_with_it() -> None:
    about = {one.text: one.about for one in read_commands("Makefile", MAKEFILE)}

    assert about == {"make test": "Run everything that is fast", "make lint": "Look for mistakes"}


@pytest.mark.parametrize(
    ("question", "command", "place"),
    [
        ("how do I run the tests?", "make test", "Makefile"),
        ("how do I build the css", "npm run css", "README.md"),
        ("how do I run only the unit tests?", "pnpm run test:unit", "package.json"),
        ("how do I start the server locally?", "just serve", "justfile"),
        ("wie führe ich die tests aus?", "make test", "Makefile"),
    ],
)
async def test_the_command_comes_first_and_where_it_stands_next(
    saver: SqliteConversations, question: str, command: str, place: str
) -> None:
    agent = Agent(FakeLibrary(FakeCode(FILES)), saver, redact)

    answer = await answer_to(agent, question, "t")

    assert answer.text.startswith(f"`{command}` [1], ")
    assert answer.citations[0].path == place
    assert len(answer.text.splitlines()) <= 30


@pytest.mark.parametrize(
    ("question", "command"),
    [
        ("how do I run the tests?", "make test"),
        ("how do I run the tests with coverage?", "npm run test-cov"),
        ("how do i fix lint errors automatically", "npm run lint:fix"),
        ("how do I build the docs?", "make docs"),
    ],
)
async def test_what_starts_or_installs_a_command_says_nothing_of_it(
    saver: SqliteConversations, question: str, command: str
) -> None:
    files = {
        "Makefile": "help:\n\techo docs\n\ntest:\n\tphpunit\n\ndocs:\n\tsphinx-build docs\n",
        "README.md": "# Use\n\n```sh\n> cd steps/tests\n> steps\n```\n\n```sh\ngit checkout steps\n```\n",
        "docs/testing.rst": "Testing\n-------\n\nRun the tests with the test server:\n\n    pip install test-server\n",
        "package.json": '{"scripts": {\n"test-cov": "nyc mocha",\n"lint": "eslint .",\n'
        '"lint:fix": "eslint . --fix"\n}}\n',
    }

    answer = await answer_to(Agent(FakeLibrary(FakeCode(files)), saver, redact), question)

    assert answer.text.startswith(f"`{command}` [1], ")
    assert "cd steps" not in answer.text
    assert "git checkout" not in answer.text


async def test_all_targets_are_listed_for_a_question_after_them(saver: SqliteConversations) -> None:
    agent = Agent(FakeLibrary(FakeCode({"Makefile": MAKEFILE})), saver, redact)

    answer = await answer_to(agent, "which make targets are there?", "t")

    assert answer.text.startswith("The repository names 2 commands:")
    assert "- `make lint` [2]: *Look for mistakes*" in answer.text


async def test_a_question_about_what_no_command_names_is_searched_for(saver: SqliteConversations) -> None:
    files = {**FILES, "src/ledger.py": "def start_transaction(ledger):\n    ledger.begin_transaction()\n"}
    agent = Agent(FakeLibrary(FakeCode(files)), saver, redact)

    answer = await answer_to(agent, "how do we start a ledger transaction?", "t")

    assert "src/ledger.py" in answer.text


@given(st.sampled_from(sorted(FILES)), st.text(max_size=300))
def test_no_text_of_a_build_file_is_refused_with_an_error(path: str, text: str) -> None:
    for one in read_commands(path, text):
        assert 1 <= one.start_line <= one.end_line
    assert is_command_file(path) is not path.endswith("steps.py")

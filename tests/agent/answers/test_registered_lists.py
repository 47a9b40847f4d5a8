"""Answers that list what is registered, from a question in words to the text, over a real index."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.agent import Agent
from agent.answers.places import FRAME
from agent.persistence.checkpointer import open_saver
from agent.ports import Answer, CodeSearch
from indexer.index import CodeIndex
from indexer.secrets import redact_secrets
from tests.agent.conftest import answer_to
from tests.fakes.frameworks import FRAMEWORKS
from tests.fakes.repositories import GitRepo

CLI = """parser.add_argument("-H", "--hidden", action="store_true", help="Look into hidden files.")
parser.add_argument("--max-depth", type=int, default=3, help="How deep to look.")
parser.add_argument("--threads", default=4, help="How many threads.")
"""
SETTINGS = """# Seconds between two orders.
ORDER_DELAY = 5
DB_HOST = os.getenv("DB_HOST", "localhost")
DB_PORT = os.getenv("DB_PORT", "5432")
MAIL_FROM = os.getenv("MAIL_FROM")
"""
EXPORTERS = """class Exporter: ...


class CsvExporter(Exporter): ...


class TsvExporter(CsvExporter): ...
"""
ROUTES = "".join(f'@app.get("/items/{number:02}")\ndef item_{number:02}(): ...\n' for number in range(40))
SHOP: Mapping[str, str] = {
    "shop/cli.py": CLI,
    "shop/settings.py": SETTINGS,
    "shop/exporters.py": EXPORTERS,
    "shop/views.py": '@app.get("/orders")\ndef list_orders():\n    """Show all orders."""\n\n\n'
    '@app.post("/orders/<id>/ship")\ndef ship(id): ...\n\n\n@app.get("/health")\ndef health(): ...\n',
    "tests/test_views.py": '@app.get("/only/for/tests")\ndef fake(): ...\n',
    "tests/test_export.py": "from shop.exporters import Exporter\n\n\nclass FakeExporter(Exporter): ...\n",
    "docs/settings.md": "# Settings\n\n| Name | Default | Description |\n|---|---|---|\n"
    "| `MAIL_FROM` | `shop@example.org` | Who sends mails. |\n",
}  # fmt: skip


class OneIndex:
    """A library of one real index."""

    def __init__(self, index: CodeIndex) -> None:
        self._index = index

    async def pin(self, repository: str | None = None) -> CodeSearch:
        """Return the newest generation, whatever the name."""
        return await self._index.pin()


async def ask(tmp_path: Path, *questions: str, files: Mapping[str, str] = SHOP) -> list[Answer]:
    """Index files, and put questions about them in one conversation."""
    repository = GitRepo(tmp_path / "shop")
    for path, text in files.items():
        repository.write(path, text)
    repository.commit()
    index = await CodeIndex.open(repository.root, home=tmp_path / "home")
    try:
        await index.refresh()
        async with open_saver(tmp_path / "conversations.db") as saver:
            agent = Agent(OneIndex(index), saver, redact_secrets)
            return [await answer_to(agent, question) for question in questions]
    finally:
        await index.aclose()


def list_names(answer: Answer) -> list[str]:
    return re.findall(r"^(?:- |(?=`[^`]+`(?:, an?| is) ))`([^`]+)`", answer.text, re.MULTILINE)


async def test_endpoints_are_counted_and_listed_with_what_answers_them_those_of_tests_last(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "which endpoints are there?")

    assert "3 endpoints are registered in 1 file, and 1 more in tests and examples:" in answer.text
    assert "- `GET /orders` [1], `list_orders`: *Show all orders.*" in answer.text
    assert list_names(answer) == ["GET /orders", "POST /orders/<id>/ship", "GET /health", "GET /only/for/tests"]
    assert [(one.path, one.start_line) for one in answer.citations][:2] == [("shop/views.py", 1), ("shop/views.py", 6)]


async def test_more_goes_on_with_the_list_until_each_endpoint_was_named_once(tmp_path: Path) -> None:
    answers = await ask(tmp_path, "list all routes", "more", "more", files={"app.py": ROUTES})

    assert [f"GET /items/{number:02}" for number in range(40)] == [n for each in answers for n in list_names(each)]
    assert 'say "more"' not in answers[-1].text


async def test_only_the_endpoints_that_the_question_is_about_are_listed(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "which endpoints are there for orders?")

    assert "2 endpoints for `orders` (of 4 in all) are registered in 1 file:" in answer.text
    assert list_names(answer) == ["GET /orders", "POST /orders/<id>/ship"]


async def test_options_are_listed_with_defaults_and_what_they_are_for(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "what command line options are there?")

    assert "3 command-line options in 1 file:" in answer.text
    assert "- `--max-depth` = `3` [2]: *How deep to look.*" in answer.text


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("what flags does shop have for hidden files?", ["-H, --hidden"]),
        ("which env vars begin with DB_?", ["DB_HOST", "DB_PORT"]),
        ("what MAIL_* env vars are there?", ["MAIL_FROM"]),
        ("which setting controls the order delay?", ["ORDER_DELAY"]),
        ("what environment variables are read?", ["DB_HOST", "DB_PORT", "MAIL_FROM"]),
        ("welche umgebungsvariablen gibt es?", ["DB_HOST", "DB_PORT", "MAIL_FROM"]),
    ],
)
async def test_a_narrowed_question_gets_the_options_that_its_words_are_about(
    tmp_path: Path, question: str, names: list[str]
) -> None:
    [answer] = await ask(tmp_path, question)

    assert list_names(answer) == names


@pytest.mark.parametrize(
    ("question", "sentence", "place"),
    [
        ("what is the default of ORDER_DELAY?", "`ORDER_DELAY`, a setting, is `5` by default [1].", "shop/settings.py"),
        ("what does --max-depth default to?", "`--max-depth`, a command-line option, is `3` by default", "shop/cli.py"),
        ("what's the default value for MAIL_FROM", "is `shop@example.org` by default [1].", "docs/settings.md"),
        ("what is the default of DB_PORT", '`DB_PORT`, an environment variable, is `"5432"`', "shop/settings.py"),
    ],
)  # fmt: skip
async def test_the_default_of_an_option_is_said_at_once_and_cited_where_it_stands(
    tmp_path: Path, question: str, sentence: str, place: str
) -> None:
    [answer] = await ask(tmp_path, question)

    assert sentence in answer.text
    assert answer.citations[0].path == place


async def test_options_that_there_are_not_are_searched_for_and_not_made_up(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "which options are there for telepathy?")

    assert "by default" not in answer.text
    assert "of 9 in all" not in answer.text


async def test_subclasses_are_listed_the_direct_ones_first(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "list all subclasses of Exporter")

    assert "2 types inherit from `Exporter`, 1 of them directly, as far as the syntax tells" in answer.text
    assert list_names(answer) == ["CsvExporter", "TsvExporter", "FakeExporter"]
    assert "- `TsvExporter` [2], through `CsvExporter`" in answer.text


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("which commands are there?", "manage.py ship"),
        ("list all celery tasks", "clean_up"),
        ("which events are emitted?", "order_placed"),
        ("what database tables are there?", "shop_order"),
        ("which models are there?", "Order"),
        ("what routes are there for orders?", "GET /orders"),
    ],
)
async def test_each_kind_of_registration_is_asked_for_by_its_own_nouns(
    tmp_path: Path, question: str, name: str
) -> None:
    answers = await ask(tmp_path, question, "more", "more", files={p: text for p, (text, _) in FRAMEWORKS.items()})

    assert name in [each for answer in answers for each in list_names(answer)]


async def test_markup_in_a_default_or_a_help_text_stays_text(tmp_path: Path) -> None:
    files = {"cli.py": 'parser.add_argument("--x", default="`](http://evil.example)[1]", help="<b>**now**</b> [2]")\n'}

    [answer] = await ask(tmp_path, "what flags are there?", files=files)

    assert "](http://evil.example)" not in re.sub(r"(`+).*?\1", "", answer.text)
    assert len(answer.citations) == 1


MANY_EVENTS = "".join(f"event_{number:02} = Signal()\n" for number in range(40))
KNOBS: Mapping[str, str] = {
    "shop/settings.py": "".join(f"{name} = {value}\n" for name, value in (
        ("S3_BUCKET", '"orders"'), ("S3_REGION", '"eu"'), ("RETRY_TIMES", "3"),
    )),
    "shop/urls.py": "".join(
        f'@app.get("/api/{version}/{name}")\ndef {name}_{version}(): ...\n'
        for version in ("v1", "v2") for name in ("orders", "items")
    ),
    "Rakefile": "desc 'Count all'\ntask :stock do\nend\nnamespace :release do\n  task :tag do\n  end\nend\n",
    "events/signals.py": MANY_EVENTS,
}  # fmt: skip


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("which settings configure S3 / object storage?", ["S3_BUCKET", "S3_REGION"]),
        ("which settings are there for retries and what are their defaults?", ["RETRY_TIMES"]),
        ("all routes under /api/v2?", ["GET /api/v2/orders", "GET /api/v2/items"]),
        ("which order endpoints does the api have?", ["GET /api/v1/orders", "GET /api/v2/orders"]),
        ("which rake tasks are defined?", ["rake stock", "rake release:tag"]),
        ("what commands (cli) does the shop binary have?", ["rake stock", "rake release:tag"]),
    ],
)
async def test_a_list_is_narrowed_by_what_the_words_mean(tmp_path: Path, question: str, names: list[str]) -> None:
    [answer] = await ask(tmp_path, question, files=KNOBS)

    assert list_names(answer) == names


async def test_a_long_list_of_mere_names_has_several_in_a_row_and_is_whole(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "qué señales (signals) hay?", files=KNOBS)

    assert "40 events are registered in 1 file:" in answer.text
    assert re.findall(r"event_\d\d", answer.text) == [f"event_{number:02}" for number in range(40)]
    assert len(answer.text.splitlines()) < 20


VALUES: Mapping[str, str] = {
    "read.h": "/* Deepest nesting of a reply. */\n#define READER_MAX_REPLY_DEPTH 1024\n",
    "shop/Connection.java": "class Connection {\n    Connection() {\n        timeoutMillis = 30000; // 30 seconds\n"
    "        maxBodySize = 1024 * 1024;\n    }\n}\n",
    "tests/test_connection.py": "timeout_millis = 5\n",
}


@pytest.mark.parametrize(
    ("question", "lines"),
    [
        ("what is the default max nesting depth of replies?", ["#define READER_MAX_REPLY_DEPTH 1024"]),
        ("default connect timeout and max body size?", ["timeoutMillis = 30000;", "maxBodySize = 1024 * 1024;"]),
        ("what is the default maxBodySize?", ["maxBodySize = 1024 * 1024;"]),
    ],
)
async def test_a_value_that_no_option_has_is_shown_where_the_code_sets_it(
    tmp_path: Path, question: str, lines: list[str]
) -> None:
    [answer] = await ask(tmp_path, question, files=VALUES)

    assert answer.text.startswith(FRAME)
    assert [line for line in lines if line not in answer.text] == []
